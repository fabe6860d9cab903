"""Compiled, the masks of dropout are drawn in another way: compiled and eager steps differ.

source: pytorch/pytorch#192635, #142853, #172206
vary: compile=--compile={}:0,1
answers: restart same, compile differs
cause: compile|generator|draws|dropout
"""

import torch
from case import finish, option, update

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4), torch.nn.Dropout(0.5)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
trained = torch.compile(model) if option("compile", 0) else model
assert isinstance(trained, torch.nn.Module)
for _ in range(6):
    update(trained, optimizer, torch.randn(16, 8))
finish(model)
