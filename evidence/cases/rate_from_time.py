"""The learning rate follows the time that has passed, not the number of the step.

source: alan-turing-institute/autocast PR 388
answers: restart differs
cause: from the time that has passed
"""

import math
import time

import torch
from case import finish, update

torch.manual_seed(0)
begun = time.monotonic()
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for batch in batches:
    passed = min((time.monotonic() - begun) / 4, 1.0)
    optimizer.param_groups[0]["lr"] = 0.05 * (1 + math.cos(math.pi * passed))  # the fault
    update(model, optimizer, batch)
    time.sleep(0.01)
finish(model)
