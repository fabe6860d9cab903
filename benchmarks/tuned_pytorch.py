"""A loop in PyTorch, tuned by hand.

Images ready on the device, channels last, a fused optimizer, eager steps.
"""

import numpy as np
import torch
from torch.nn import functional

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, begin
from benchmarks.tutorial_pytorch import Net
from repro.trainers.loop.data import MEAN, STD


def ready(images: np.ndarray) -> torch.Tensor:
    """Images uint8 [N, 28, 28] -> normalized float32 [N, 1, 28, 28]."""
    return ((torch.from_numpy(images.copy()).float() / 255 - MEAN) / STD).unsqueeze(1)


def main() -> None:
    baseline = begin()
    torch.set_num_threads(baseline.threads)
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    data = baseline.dataset
    images, labels = ready(data.train_images), torch.from_numpy(data.train_labels).long()
    network = Net().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, fused=True)

    def train(batches: np.ndarray) -> None:
        network.train()
        for batch in torch.from_numpy(batches):
            optimizer.zero_grad()
            loss = functional.nll_loss(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()

    baseline.call(train)
    network.eval()
    with torch.no_grad():
        right = network(ready(data.test_images)).argmax(1).numpy() == data.test_labels
    weights = [weight.detach().numpy() for weight in network.parameters()]
    baseline.finish(torch.__version__, weights, float(right.mean()) if baseline.whole else None)


if __name__ == "__main__":
    main()
