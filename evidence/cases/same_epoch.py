"""`set_epoch` is never called: all epochs come in one order.

source: pytorch/pytorch#31771, #11324
answers: restart same
warning: epoch.*order|order.*epoch|same batches
"""

import torch
from case import finish, update
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
sampler = DistributedSampler(examples, num_replicas=1, rank=0, shuffle=True, seed=0)  # type: ignore[arg-type]
loader = DataLoader(examples, 8, sampler=sampler)
for _ in range(4):  # the fault: no sampler.set_epoch
    for batch in loader:
        update(model, optimizer, batch)
finish(model)
