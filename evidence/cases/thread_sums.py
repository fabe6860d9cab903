"""Sums are split among threads: other bits with another number of them.

source: pytorch/pytorch#88096, #23151
answers: restart same, threads differs
cause: threads
"""

import torch
from case import finish, update

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv1d(4, 16, 5), torch.nn.ReLU(), torch.nn.Conv1d(16, 4, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(6):
    update(model, optimizer, torch.randn(64, 4, 512))
finish(model)
