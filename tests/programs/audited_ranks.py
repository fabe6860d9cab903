"""Two ranks of PyTorch, for torchrun, which exchange gradients by gloo: 8 steps, and a checkpoint after each 4."""

import argparse
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn import functional

STEPS, EVERY, BATCH = 8, 4, 8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    inputs, labels = torch.randn(STEPS * 2 * BATCH, 6), torch.randint(3, (STEPS * 2 * BATCH,))
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    path, step = options.out / "checkpoint.pt", 0
    if options.resume:
        kept = torch.load(path)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        step = kept["step"]
    model = nn.parallel.DistributedDataParallel(network)
    while step < STEPS:
        first = (2 * step + rank) * BATCH
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs[first : first + BATCH]), labels[first : first + BATCH]).backward()
        optimizer.step()
        step += 1
        if step % EVERY == 0 and rank == 0:
            torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
