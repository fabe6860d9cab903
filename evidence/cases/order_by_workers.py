"""A stream is split among workers, which take turns: the order of the examples depends on their number.

source: Smith42/astroPT PR 70
vary: workers=--workers={}:1,2
answers: restart same, workers differs
cause: (worker|batches come in another order|another batch|order).*
"""

from collections.abc import Iterator

import torch
from case import finish, option, update
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset[torch.Tensor]):
    """Eight files of eight examples; each worker reads its own ones."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        first, count = (worker.id, worker.num_workers) if worker else (0, 1)
        for file in range(first, 8, count):
            yield from torch.sin(torch.arange(8.0)[None] * (8 * file + torch.arange(8.0)[:, None]))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for batch in DataLoader(Shards(), 4, num_workers=option("workers", 1)):
            update(model, optimizer, batch)
    finish(model)
