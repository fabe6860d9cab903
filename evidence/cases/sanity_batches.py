"""Validation before training draws from the global generator: the number of its batches changes the training.

source: Lightning-AI/pytorch-lightning#6988, PR 7014
vary: sanity=--sanity={}:0,2
answers: restart same, sanity differs
cause: generator|drew|draws
"""

import torch
from case import finish, option, update
from torch.utils.data import DataLoader

torch.manual_seed(0)
examples, held_out = torch.randn(64, 8), torch.randn(32, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with torch.no_grad():
    for number, batch in enumerate(DataLoader(held_out, 8)):  # even unshuffled, a loader draws a seed for its workers
        if number == option("sanity", 0):
            break
        model(batch + 0.01 * torch.randn_like(batch))
for _ in range(2):
    for batch in DataLoader(examples, 8, shuffle=True):
        update(model, optimizer, batch)
finish(model)
