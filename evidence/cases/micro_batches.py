r"""Resumed by the number of steps, the loader is not advanced by the micro-batches of each step.

source: EleutherAI/gpt-neox PR 308
answers: restart same, kill differs
cause: batch.*(that|those) of steps? \d+|place in the data
"""

import torch
from case import finish, restored, save
from torch.utils.data import DataLoader

WINDOW = 4

torch.manual_seed(0)
loader = DataLoader(torch.randn(960, 8), 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
step = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    step = kept["step"]
skipped = step  # the fault: steps, not micro-batches
for number, batch in enumerate(loader):
    if number < skipped:
        continue
    (model(batch).square().mean() / WINDOW).backward()
    if number % WINDOW == WINDOW - 1:
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 4 == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step)
    if step == 30:
        break
finish(model)
