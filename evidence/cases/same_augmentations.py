"""Each worker is seeded by its number alone, and workers are new in each epoch: every epoch has the same augmentations.

source: Lightning-AI/pytorch-lightning#20412
answers: restart same
warning: epoch|repeat|again|same
"""

import numpy
import torch
from case import finish, update
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset[torch.Tensor]):
    """Examples with noise that NumPy's global generator draws."""

    def __getitem__(self, index: int) -> torch.Tensor:
        noise = numpy.random.normal(size=8).astype("float32")
        return torch.sin(torch.arange(8.0) * index) + 0.1 * torch.from_numpy(noise)

    def __len__(self) -> int:
        return 64


def seeded(worker: int) -> None:
    numpy.random.seed(worker)  # the fault: without the epoch


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Augmented(), 8, num_workers=1, worker_init_fn=seeded)
    for _ in range(4):
        for batch in loader:
            update(model, optimizer, batch)
    finish(model)
