"""Steps before and after a fork, in PyTorch."""

import os

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


step(), step()
if os.fork():
    step(), os.wait()
else:
    step()
    os._exit(0)
