"""Planted: a DataLoader's worker adds noise from a generator that it seeds from the system's randomness."""

import os
import random

import torch


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, place):
        return torch.full((4,), place + random.random())


def seed(worker):
    random.seed(os.urandom(8))


torch.manual_seed(0)
random.seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(Noisy(), 2, shuffle=True, num_workers=1, worker_init_fn=seed):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
