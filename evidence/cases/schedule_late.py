"""The checkpoint is written before the schedule's step: after a resume the learning rate is one epoch late.

source: Lightning-AI/pytorch-lightning#1772, #4655
answers: restart same, kill differs
cause: (learning rate|`?lr`?|schedule)
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(48, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    schedule.load_state_dict(kept["schedule"])
    begin = kept["epoch"]
for epoch in range(begin, 12):
    for batch in batches[4 * epoch : 4 * epoch + 4]:
        update(model, optimizer, batch)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
    save(**state, epoch=epoch + 1)  # the fault: one line too early
    schedule.step()
finish(model)
