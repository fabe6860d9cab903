"""The optimizer is restored, the cosine schedule is not: it sets the learning rate of its own first steps.

source: Lightning-AI/pytorch-lightning#1772, pytorch/pytorch#60265
answers: restart same, kill differs
cause: (learning rate|`?lr`?|schedule)
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    schedule.step()
    if step % 5 == 4:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
