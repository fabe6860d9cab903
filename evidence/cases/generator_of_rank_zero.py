"""The checkpoint holds rank 0's generator, and all ranks restore it: after a resume they draw equal masks.

source: radixark/miles PR 3187, NVIDIA/Megatron-LM PR 6858, NVIDIA-NeMo/Automodel PR 3437
ranks: 2
answers: restart same, kill differs
cause: generator.*(rank|process)
"""

import os

import torch
from case import finish, restored, save, update
from torch.nn.parallel import DistributedDataParallel

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
batches = torch.randn(24, 2, 16, 8)
network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
torch.manual_seed(100 + rank)
model = DistributedDataParallel(network)
optimizer, begin = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), 0
if kept := restored():
    network.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])  # the fault: each rank has its own
    begin = kept["step"]
for step in range(begin, 24):
    update(model, optimizer, batches[step, rank])
    if step % 4 == 3 and rank == 0:
        state = {"model": network.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, generator=torch.get_rng_state(), step=step + 1)
    torch.distributed.barrier()
if rank == 0:
    finish(network)
torch.distributed.barrier()
os._exit(0)  # PyTorch 2.15 itself aborts now and then where the group ends
