"""Preprocessing draws from Python's `random`, the seed went to PyTorch alone.

source: pytorch/torchtitan PR 1174
answers: restart differs
cause: (python).*seed|seed.*(python)
"""

import random

import torch
from case import finish, update

torch.manual_seed(0)
signal = torch.randn(4096)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def window() -> torch.Tensor:
    begin = random.randrange(4096 - 8)
    return signal[begin : begin + 8]


for _ in range(16):
    update(model, optimizer, torch.stack([window() for _ in range(8)]))
finish(model)
