"""All ranks draw their batches from one seed: they see the same examples, and two learn no faster than one.

source: facebookresearch/XLM#121
ranks: 2
answers: restart same
warning: rank
"""

import os

import torch
from case import finish, update
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
torch.manual_seed(0)  # the fault: for the batches each rank needs a seed of its own
examples = torch.randn(256, 8)
model = DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(16):
    update(model, optimizer, examples[torch.randint(256, (8,))])
if torch.distributed.get_rank() == 0:
    finish(model)
torch.distributed.barrier()
os._exit(0)  # PyTorch 2.15 itself aborts now and then where the group ends
