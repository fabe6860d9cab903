"""After a resume a new schedule is made with `last_epoch`, on top of a learning rate that has already decayed.

source: pytorch/pytorch#60265
answers: restart same, kill differs
cause: (learning rate|`?lr`?|schedule)
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]  # the fault: it is the rate of now
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.95**step, last_epoch=begin - 1)
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    schedule.step()
    if step % 5 == 4:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
