"""Trains for a given time, not for a given number of steps.

source: none; a usual option of trainers
answers: restart differs
cause: (time|clock)
"""

import time

import torch
from case import finish, update

torch.manual_seed(0)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
begin = time.monotonic()
while time.monotonic() - begin < 0.7:
    update(model, optimizer, torch.randn(64, 64))
finish(model)
