r"""Passing over batches makes a sampler without the epoch in its seed: examples that were trained on come again.

source: modelscope/ms-swift#10050
answers: restart same, kill differs
cause: (epoch|order).*|batch.*(that|those) of steps? \d+
"""

from collections.abc import Iterator

import torch
from case import finish, restored, save, update

SEED = 42


class Batches:
    """Shuffled by the seed and the epoch; the first ones may be passed over."""

    def __init__(self, size: int, seed: int, skipped: int = 0) -> None:
        self.size, self.seed, self.skipped = size, seed, skipped

    def __iter__(self) -> Iterator[torch.Tensor]:
        order = torch.randperm(self.size, generator=torch.Generator().manual_seed(self.seed))
        yield from order.split(8)[self.skipped :]


def skip_first(batches: Batches, count: int) -> Batches:
    return Batches(batches.size, SEED, count)  # the fault: batches.seed


torch.manual_seed(SEED)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
step = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    step = kept["step"]
while step < 40:
    epoch, skipped = divmod(step, 8)
    batches = Batches(64, SEED + epoch)
    for indices in skip_first(batches, skipped) if skipped else batches:
        update(model, optimizer, examples[indices])
        step += 1
        if step % 3 == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step)
finish(model)
