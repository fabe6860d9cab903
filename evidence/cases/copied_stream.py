"""An iterable data set does not look which worker it is in: each example comes once from every worker.

source: huggingface/datasets#5360, #3423, #6594
answers: restart same
warning: twice|more than once|times|duplicate|worker|again
"""

from collections.abc import Iterator

import torch
from case import finish, update
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset[torch.Tensor]):
    """The examples of a file, one after another."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        for number in range(64):  # the fault: all of them, in each worker
            yield torch.sin(torch.arange(8.0) * number)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for batch in DataLoader(Lines(), 8, num_workers=2):
            update(model, optimizer, batch)
    finish(model)
