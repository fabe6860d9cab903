"""Data-parallel training under the mode: prints the fingerprints of each rank as JSON.

Usage: mode_ranks.py RANKS...: each number is a training of its own, in new processes.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_reduce
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import repro.portable.pytorch as portable

STEPS = 3


def bits(*tensors: torch.Tensor) -> str:
    parts = (x.detach().flatten().clone().view(torch.uint8).numpy().tobytes() for x in tensors)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def numbers(*shape: int, shift: float) -> torch.Tensor:
    """Numbers of many magnitudes, whose sums show the order in which they are added."""
    x = torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64)
    return ((x * 0.7548776662466927 + shift) % 1 * 2 - 1).float().view(shape)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 40), nn.ReLU(), nn.Linear(40, 7))


def train(model: nn.Module, rank: int, accumulated: int = 1, largest_norm: float | None = None) -> str:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        for part in range(accumulated):
            x = numbers(16, 20, shift=0.1 * step + 0.37 * rank + 0.01 * part)
            with nullcontext() if part == accumulated - 1 else model.no_sync():
                model(x).square().mean().backward()
        if largest_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), largest_norm)
        optimizer.step()
        optimizer.zero_grad()
    return bits(*(full(parameter) for parameter in model.parameters()))


def full(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def distributed(rank: int, hook: Callable | None = None, **how: Any) -> str:
    model = DistributedDataParallel(network(), bucket_cap_mb=0.02)
    if hook is not None:
        model.register_comm_hook(None, hook)
    return train(model, rank, **how)


def sharded(rank: int, **how: Any) -> str:
    model = network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return train(fully_shard(model, mesh=mesh), rank, **how)


def tensor_parallel(rank: int) -> str:
    """Columns of one layer and rows of the next on each rank, all of which see the same batch."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    ways = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return train(parallelize_module(network(), mesh, ways), 0)


def flat(rank: int) -> str:
    model = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    train(model, rank)
    with FullyShardedDataParallel.summon_full_params(model):
        return bits(*model.parameters())


def collectives(rank: int) -> dict[str, str]:
    """Each operation by itself, and that it gives what adding in the order of ranks gives."""
    size = dist.get_world_size()
    each = [numbers(3 * size, shift=0.4 * other) * 10.0 ** (other * 3) for other in range(size)]
    total = sum(x.double() for x in each)
    results = {}

    def check(name: str, x: torch.Tensor, wanted: torch.Tensor) -> None:
        results[name] = bits(x)
        assert torch.equal(x, wanted.to(x.dtype)), name

    for name, op, wanted in (
        ("sum", dist.ReduceOp.SUM, total),
        ("average", dist.ReduceOp.AVG, sum((x * (1 / size)).double() for x in each)),
        ("largest", dist.ReduceOp.MAX, torch.stack(each).amax(0)),
    ):
        x = each[rank].clone()
        work = dist.all_reduce(x, op, async_op=True)
        assert work.wait()
        assert work.is_completed()
        check(name, x, wanted)
        part = torch.empty(3)
        dist.reduce_scatter_tensor(part, each[rank].clone(), op)
        assert torch.equal(part, wanted.float()[3 * rank : 3 * rank + 3]), name
    future = dist.all_reduce(each[rank].clone(), async_op=True).get_future()
    check("future", future.then(lambda done: done.value()[0] * 2).wait(), total.float() * 2)
    part = torch.empty(3)
    dist.reduce_scatter(part, list(each[rank].clone().split(3)))
    assert torch.equal(part, total.float()[3 * rank : 3 * rank + 3])
    x = each[rank].clone()
    dist.reduce(x, size - 1)
    assert torch.equal(x, total.float() if rank == size - 1 else each[rank])
    for dtype in (torch.float64, torch.bfloat16):
        x = each[rank].to(dtype)
        dist.all_reduce(x)
        check(str(dtype), x, sum(other.to(dtype).double() for other in each))
    integers = torch.arange(4) + rank
    dist.all_reduce(integers)
    check("integers", integers, torch.arange(4) * size + size * (size - 1) // 2)
    functional = all_reduce(each[rank], "sum", dist.group.WORLD)
    check("functional", functional + 0, total)
    return results


def run(rank: int, ranks: int, store: str) -> list[dict]:
    """The same with one thread and with two, which is also the second time in a process."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(
            {
                "collectives": collectives(rank),
                "DDP": distributed(rank),
                "DDP, accumulated": distributed(rank, accumulated=2),
                "DDP, clipped": distributed(rank, largest_norm=0.02),
                "DDP, compressed": distributed(rank, fp16_compress_hook),
                "fully_shard": sharded(rank),
                "fully_shard, clipped": sharded(rank, largest_norm=0.02),
                "FSDP": flat(rank),
                "tensor parallel": tensor_parallel(rank),
            }
        )
    dist.destroy_process_group()
    return results


def main() -> None:
    portable.enable()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in sys.argv[1:]:
            names = [f"{folder}/{ranks}-{rank}" for rank in range(int(ranks))]
            children = [start(rank, names) for rank in range(len(names))]
            if sum(os.waitpid(child, 0)[1] for child in children):
                sys.exit("a rank failed")
            results[ranks] = [json.loads(Path(name).read_text()) for name in names]
    print(json.dumps(results))


def start(rank: int, names: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        Path(names[rank]).write_text(json.dumps(run(rank, len(names), f"{names[0]}.store")))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
