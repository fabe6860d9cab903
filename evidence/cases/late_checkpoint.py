r"""Checkpoint N is written after step N + 1, so one step is done twice.

source: AI-Hypercomputer/maxdiffusion PR 484
answers: restart same, kill differs
cause: batch.*(that|those) of steps? \d+|(twice|again|once more)|one step
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step)  # the fault: step + 1
finish(model)
