"""Examples are collected in a set of tensors, whose order follows from where they lie in memory.

source: NeuroDiffGym/neurodiffeq PR 209, nengo/nengo#74
answers: restart differs
cause: where objects lie in memory decides
"""

import torch
from case import finish, update

torch.manual_seed(0)
examples = {torch.randn(8) for _ in range(64)}  # the fault
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(2):
    order = list(examples)
    for begin in range(0, 64, 8):
        update(model, optimizer, torch.stack(order[begin : begin + 8]))
finish(model)
