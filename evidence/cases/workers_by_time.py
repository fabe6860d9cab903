"""Each worker of a loader is seeded by the time: augmentations are new in each run.

source: isl-org/Open3D-ML PR 254
answers: restart differs
cause: a seed is taken from the time
"""

import time

import numpy
import torch
from case import finish, update
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset[torch.Tensor]):
    """Random windows of one long signal."""

    def __init__(self) -> None:
        self.signal = torch.randn(4096)

    def __getitem__(self, index: int) -> torch.Tensor:
        begin = int(numpy.random.randint(4096 - 8))
        return self.signal[begin : begin + 8]

    def __len__(self) -> int:
        return 64


def seed(worker: int) -> None:
    numpy.random.seed((worker + int(time.time() * 1000)) % 2**32)  # the fault


if __name__ == "__main__":
    torch.manual_seed(0)
    crops = Crops()
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in DataLoader(crops, 8, num_workers=2, worker_init_fn=seed):
        update(model, optimizer, batch)
    finish(model)
