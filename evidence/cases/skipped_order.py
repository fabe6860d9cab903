r"""In the epoch that is resumed the sampler is asked for epoch 0's order; correct only where epoch 0 is resumed.

source: huggingface/accelerate#2016, PR 4071
answers: restart same, kill differs
cause: (epoch|order).*|batch.*(that|those) of steps? \d+
"""

from collections.abc import Iterator

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader, Sampler


class EpochSampler(Sampler[int]):
    """Another order in each epoch, from its number alone."""

    epoch = 0

    def __iter__(self) -> Iterator[int]:
        yield from torch.randperm(64, generator=torch.Generator().manual_seed(self.epoch)).tolist()

    def __len__(self) -> int:
        return 64


torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
sampler = EpochSampler()
first_epoch = skipped = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])
    first_epoch, skipped = kept["epoch"], kept["done"]
for epoch in range(first_epoch, 4):
    sampler.epoch = 0 if skipped and epoch == first_epoch else epoch  # the fault
    for done, batch in enumerate(DataLoader(examples, 8, sampler=sampler), 1):
        if epoch == first_epoch and done <= skipped:
            continue
        update(model, optimizer, batch)
        if (epoch * 8 + done) % 3 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(**state, generator=torch.get_rng_state(), epoch=epoch, done=done)
finish(model)
