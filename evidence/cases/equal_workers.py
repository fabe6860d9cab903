"""The data set has a NumPy generator of its own, which is copied into each worker: all workers draw equal numbers.

source: pytorch/pytorch#5059, open-mmlab/OpenPCDet#886, facebookresearch/fairseq#1383
answers: restart same
warning: worker
"""

import numpy
import torch
from case import finish, update
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset[torch.Tensor]):
    """Random windows of one long signal."""

    def __init__(self) -> None:
        self.signal = torch.randn(4096)
        self.random = numpy.random.default_rng(0)  # the fault: one for all workers

    def __getitem__(self, index: int) -> torch.Tensor:
        begin = int(self.random.integers(4096 - 8))
        return self.signal[begin : begin + 8]

    def __len__(self) -> int:
        return 64


if __name__ == "__main__":
    torch.manual_seed(0)
    crops = Crops()
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for batch in DataLoader(crops, 8, num_workers=2):
            update(model, optimizer, batch)
    finish(model)
