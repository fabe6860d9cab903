"""Parameters are collected in a set, so after a resume the momentum of one goes to another of the same shape.

source: HorizonRobotics/alf PR 891, lucidrains/DALLE2-pytorch PR 116
answers: restart same, kill differs
cause: (optimizer|momentum).*(another|other) (parameter|weight|tensor)|belongs to|of other parameters
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6)))
weights = {name for name, _ in model.named_parameters() if name.endswith("weight")}
biases = {name for name, _ in model.named_parameters()} - weights
groups = [
    {"params": [model.get_parameter(name) for name in weights], "weight_decay": 0.01},  # the fault: sorted(weights)
    {"params": [model.get_parameter(name) for name in biases], "weight_decay": 0.0},
]
optimizer, begin = torch.optim.SGD(groups, lr=0.05, momentum=0.9), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
