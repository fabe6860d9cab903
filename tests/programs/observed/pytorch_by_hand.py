"""Trainings with PyTorch whose updates are written by hand: no optimizer is made.

Each prints its name, its number of steps, and the hashes of its last weights.
"""

import torch
from hashes import report

COUNT = 4
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8)

torch.ones(3, requires_grad=True).sum().backward()  # no training: these stay as they are
model = torch.nn.Linear(4, 1)
for _ in range(COUNT):
    model.zero_grad()
    (model(x)[:, 0] - y).pow(2).mean().backward()
    with torch.no_grad():
        for tensor in model.parameters():
            tensor -= 0.1 * tensor.grad
report("in place", COUNT, {name: tensor.detach().numpy() for name, tensor in model.named_parameters()})

weight = torch.zeros(4, requires_grad=True)
for _ in range(COUNT):
    (x @ weight - y).pow(2).mean().backward()
    weight = (weight - 0.1 * weight.grad).detach().requires_grad_()
report("anew", COUNT, {"leaf 0": weight.detach().numpy()})
