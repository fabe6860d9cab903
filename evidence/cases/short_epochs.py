"""A worker keeps the position that it was resumed from: every epoch after a resume is as short as the first.

source: huggingface/datasets#7447
answers: restart same, kill differs
cause: (ends after step|sooner|short|steps|position|place in the data|later in the epoch).*
"""

from collections.abc import Iterator

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader, IterableDataset


class Resumable(IterableDataset[torch.Tensor]):
    """Examples from a position on."""

    def __init__(self, begin: int) -> None:
        self.begin = begin

    def __iter__(self) -> Iterator[torch.Tensor]:
        for number in range(self.begin, 64):  # the fault: belongs to the first epoch after a resume alone
            yield torch.sin(torch.arange(8.0) * number)


torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
first_epoch = done = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    first_epoch, done = kept["epoch"], kept["done"]
loader = DataLoader(Resumable(8 * done), 8, num_workers=1, persistent_workers=True)
for epoch in range(first_epoch, 5):
    for batch in loader:
        update(model, optimizer, batch)
        done += 1
        if (epoch * 8 + done) % 3 == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch, done=done)
    done = 0
finish(model)
