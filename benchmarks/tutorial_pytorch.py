"""The tutorial's loop in PyTorch.

torchvision's data set, a DataLoader with four workers, eager steps.
"""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torchvision import datasets, transforms

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, Baseline, begin


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.drop = nn.Dropout2d()
        self.dense1 = nn.Linear(320, 50)
        self.dense2 = nn.Linear(50, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.drop(self.conv2(x)), 2))
        x = functional.relu(self.dense1(x.flatten(1)))
        x = functional.dropout(x, training=self.training)
        return functional.log_softmax(self.dense2(x), dim=1)


def seed_worker(_: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def loader(baseline: Baseline, train: bool) -> torch.utils.data.DataLoader:
    pipeline = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    return torch.utils.data.DataLoader(
        datasets.MNIST(str(baseline.dataset.folder), train=train, transform=pipeline),
        batch_size=baseline.batch_size if train else 64,
        shuffle=train,
        num_workers=baseline.workers,
        worker_init_fn=seed_worker,
        generator=torch.Generator().manual_seed(SEED),
    )


def accuracy(network: nn.Module, batches: torch.utils.data.DataLoader) -> float:
    network.eval()
    with torch.no_grad():
        correct = sum(int((network(images).argmax(1) == labels).sum()) for images, labels in batches)
    return correct / 10_000


def main() -> None:
    baseline = begin()
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    network = Net()
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    train_loader = loader(baseline, train=True)
    for _ in range(baseline.epochs):
        network.train()
        for images, labels in baseline.timed(iter(train_loader)):
            optimizer.zero_grad()
            loss = functional.nll_loss(network(images), labels)
            loss.backward()
            optimizer.step()
    weights = [weight.detach().numpy() for weight in network.parameters()]
    reached = accuracy(network, loader(baseline, train=False)) if baseline.whole else None
    baseline.finish(torch.__version__, weights, reached)


if __name__ == "__main__":
    main()
