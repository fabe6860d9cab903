"""The optimizer is made anew as a run resumes, after the schedule was: the schedule sets the rate of the old one.

source: Lightning-AI/pytorch-lightning#12812, XPixelGroup/BasicSR#327
answers: restart same, kill differs
cause: (stays|`?lr`?|schedule)
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer, begin = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), 0
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
if kept := restored():
    model.load_state_dict(kept["model"])
    schedule.load_state_dict(kept["schedule"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # the fault
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    schedule.step()
    if step % 4 == 3:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, schedule=schedule.state_dict(), step=step + 1)
finish(model)
