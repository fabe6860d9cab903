"""The generators are restored before batches are passed over; the examples draw random numbers as they are passed over.

source: huggingface/transformers#39215, PR 46628
answers: restart same, kill differs
cause: (drew|drawn|draws|skip|passed over).*
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset[torch.Tensor]):
    """Examples with noise that is drawn each time."""

    def __init__(self) -> None:
        self.examples = torch.randn(64, 8)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.examples[index] + 0.1 * torch.randn(8)

    def __len__(self) -> int:
        return len(self.examples)


torch.manual_seed(0)
noisy = Noisy()
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
first_epoch = skipped = 0
kept = restored()
if kept:
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    first_epoch, skipped = kept["epoch"], kept["done"]
for epoch in range(first_epoch, 4):
    loader = DataLoader(noisy, 8, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    if kept and epoch == first_epoch:
        torch.set_rng_state(kept["generator"])  # the fault: belongs behind the batches that are passed over
    for done, batch in enumerate(loader, 1):
        if epoch == first_epoch and done <= skipped:
            continue
        update(model, optimizer, batch)
        if (epoch * 8 + done) % 3 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(**state, generator=torch.get_rng_state(), epoch=epoch, done=done)
finish(model)
