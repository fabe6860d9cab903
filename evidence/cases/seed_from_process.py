"""The seed is the number of the process.

source: none; a usual line of programs that train beside each other
answers: restart differs
cause: a seed is taken from the time, the process number
"""

import os

import torch
from case import finish, update

torch.manual_seed(os.getpid())  # the fault
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(16):
    update(model, optimizer, torch.randn(16, 8))
finish(model)
