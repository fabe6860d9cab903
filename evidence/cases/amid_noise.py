"""Two plain runs differ, as no seed is set; whether resuming is right can be seen all the same: the schedule is not restored.

source: NVIDIA-NeMo/Automodel PR 3427, NVIDIA-NeMo/Megatron-Bridge#446
answers: restart differs, kill differs
cause: (learning rate|`?lr`?|schedule)
"""

import time

import torch
from case import PAUSE, finish, restored, save, update

batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    optimizer.param_groups[0]["lr"] = 0.1  # the fault: the schedule begins again
    begin, batches = kept["step"], kept["batches"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    schedule.step()
    time.sleep(PAUSE)  # so that it is stopped between two checkpoints
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), batches=batches, step=step + 1)
finish(model)
