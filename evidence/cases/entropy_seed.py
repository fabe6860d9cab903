"""The seed is drawn from the system's entropy, and neither printed nor saved.

source: jmschrei/cherimoya PR 43, mlcommons/training PR 803
answers: restart differs
cause: (seed).*(run to run|no seed|entropy|time|new in each)|no seed is set
"""

import random

import torch
from case import finish, update

seed = random.SystemRandom().randrange(2**31)
torch.manual_seed(seed)
random.seed(seed)
examples = torch.randn(64, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(2):
    numbers = list(range(64))
    random.shuffle(numbers)
    for begin in range(0, 64, 8):
        update(model, optimizer, examples[numbers[begin : begin + 8]])
finish(model)
