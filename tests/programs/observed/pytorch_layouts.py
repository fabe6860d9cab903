"""One training, split among ranks in several ways: each prints the hashes of its last weights.

Arguments: layouts, each with its number of ranks, as `fsdp2:2`. Each rank is a process of its own, with its layout as its
arguments. All numbers are multiples of a power of two, and small: every sum is exact, so that all layouts have the same bits.
"""

import json
import os
import sys
import tempfile
import warnings
from typing import Any

import torch
import torch.distributed as dist
from hashes import sha
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 3, 16
PLAN = {"up": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False), "down": RowwiseParallel()}


class Network(nn.Module):
    """33 features in between, of which no two ranks have equally many."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(20, 33), nn.Linear(33, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def split(layout: str, model: nn.Module, rank: int, size: int) -> tuple[nn.Module, int, int]:
    """The model as a rank has it, and which share of a batch, of how many, is its own."""
    if layout == "ddp":
        return DistributedDataParallel(model), rank, size
    if layout == "fsdp1":
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True), rank, size
    if layout == "tp":
        return parallelize_module(model, init_device_mesh("cpu", (size,)), PLAN), 0, 1
    if layout == "2d":
        mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
        parallelize_module(model, mesh["tp"], PLAN)
        return fully_shard(model, mesh=mesh["dp"]), rank // (size // 2), 2
    if size > 1:
        mesh = init_device_mesh("cpu", (size,))
        fully_shard(model.up, mesh=mesh)
        return fully_shard(model, mesh=mesh), rank, size
    return model, 0, 1


def train(layout: str, rank: int, size: int) -> dict[str, str]:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = Network()
    x, y = torch.randn(STEPS * BATCH, 20), torch.randn(STEPS * BATCH, 7)
    with torch.no_grad():
        for tensor in (x, y):
            tensor.copy_((tensor * 2).round() / 2)
        for tensor in model.parameters():
            tensor.copy_((tensor * 8).round() / 8)
    model, share, shares = split(layout, model, rank, size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    for step in range(STEPS):
        own = slice(step * BATCH + share * BATCH // shares, step * BATCH + (share + 1) * BATCH // shares)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[own], y[own]), batch_size=BATCH)
        for data, target in loader:
            optimizer.zero_grad()
            ((model(data) * target).sum() / len(data)).backward()
        if layout == "others" and rank == 0 and step == 1:
            model.down.bias.grad = None  # of rank 0 alone
        optimizer.step()
    if layout == "fsdp1":
        with FullyShardedDataParallel.summon_full_params(model):
            return {name: sha(tensor.detach().clone().numpy()) for name, tensor in model.module.named_parameters()}
    whole = {
        name: getattr(tensor, "full_tensor", lambda own=tensor: own)() for name, tensor in model.named_parameters()
    }
    return {name.removeprefix("module."): sha(tensor.detach().numpy()) for name, tensor in whole.items()}


def observer(name: str) -> Any:
    """A file of the observer, where there is one."""
    return sys.modules.get(f"_repro.observe.{name}")


def run(layout: str, rank: int, size: int, store: str) -> str:
    """A rank of its own; of `deaf`, rank 1 is not observed."""
    warnings.simplefilter("ignore")
    if size > 1:
        os.environ["RANK"] = str(rank)
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    if observer("shards"):
        observer("shards").WAIT = 0.1 if layout == "deaf" else 1e6  # however long, rank 1 does not come; all others do
    if layout == "deaf" and rank == 1 and observer("recorder"):
        observer("recorder").active = None
    weights = train(layout, rank, size)
    if size > 1:
        dist.barrier()
    return json.dumps([layout, rank, weights])


def start(layout: str, rank: int, size: int, store: str) -> int:
    child = os.fork()
    if child:
        return child
    try:
        sys.argv[:] = [layout]
        sys.stdout.write(run(layout, rank, size, store) + "\n")
        sys.stdout.flush()
        if observer("recorder") and observer("recorder").active:
            observer("recorder").active.end()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for layout, size in (word.split(":") for word in sys.argv[1:]):
            children = [start(layout, rank, int(size), f"{folder}/{layout}") for rank in range(int(size))]
            if sum(os.waitpid(child, 0)[1] for child in children):
                sys.exit("a rank failed")
