"""Two ranks of PyTorch, for torchrun: on resuming, rank 1 does not restore its generator."""

import argparse
import os
import time
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path)
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.AdamW(model.parameters())
begin = 0
if options.resume:
    begin = min(max(int(file.stem) for file in options.out.glob(f"{one}/*.pt")) for one in range(2))
    kept = torch.load(options.out / str(rank) / f"{begin}.pt")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    if rank == 0:
        torch.set_rng_state(kept["generator"])
(options.out / str(rank)).mkdir(exist_ok=True)
for step in range(begin + 1, 13):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "generator": torch.get_rng_state()}
    torch.save(kept, options.out / str(rank) / "new")
    (options.out / str(rank) / "new").rename(options.out / str(rank) / f"{step}.pt")
    time.sleep(0.1)
torch.distributed.barrier()
os._exit(0)  # PyTorch 2.15 itself aborts now and then where the group ends
