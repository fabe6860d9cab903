"""Collective operations that add: in the order of ranks.

A ring, a tree and a switch add in orders of their own. Here each rank gets the numbers of all, as bytes, and adds them
from rank 0 on: float32 and halves in float64, rounded once in the end, float64 numbers as they are. So all ranks hold the
same bits, by any backend, and NaN and infinities pass as IEEE 754 says. A mean is the sum of what each rank has times 1 / n,
rounded: DDP does that to its gradients and asks for the sum, FSDP asks for the mean, and both train to the same bits.
DDP, FSDP and functional collectives call these operations in C++. Integers, copies and broadcasts are the backend's own.

A call returns when its sum is there (on a GPU: when it is queued), and the Work that it gives is finished. An all-reduce
holds the numbers of all ranks for a moment.
"""

import functools
from datetime import timedelta
from typing import Any, TypeAlias

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import define

if torch.distributed.is_available():
    from torch._C import _distributed_c10d as c10d

BOXED: TypeAlias = "torch.ScriptObject"
"""A process group, an operation or a Work, as the dispatcher holds it."""


@define("c10d::allreduce_")
def allreduce(
    tensors: list[Tensor], group: BOXED, op: BOXED, _sparse: Tensor | None = None, _async_op: bool = True, ms: int = -1
) -> tuple[list[Tensor], BOXED]:
    for x in tensors:
        x.copy_(_combined("c10d::allreduce_", op, _gathered(x, group, ms)).view(x.shape))
    return tensors, _finished(tensors)


@define("c10d::allreduce_coalesced_")
def allreduce_coalesced(tensors: list[Tensor], group: BOXED, op: BOXED, _async_op: bool = True, ms: int = -1) -> BOXED:
    return allreduce(tensors, group, op, ms=ms)[1]


@define("c10d::reduce_")
def reduce(
    tensors: list[Tensor], group: BOXED, op: BOXED, rank: int, _tensor: int, _async_op: bool = True, ms: int = -1
) -> BOXED:
    for x in tensors:
        parts = _gathered(x, group, ms)
        if c10d.ProcessGroup.unbox(group).rank() == rank:
            x.copy_(_combined("c10d::reduce_", op, parts).view(x.shape))
    return _finished(tensors)


@define("c10d::reduce_scatter_")
def reduce_scatter(
    outputs: list[Tensor], inputs: list[list[Tensor]], group: BOXED, op: BOXED, _async_op: bool = True, ms: int = -1
) -> tuple[list[Tensor], BOXED]:
    _refuse_parts()
    for x, given in zip(outputs, inputs, strict=True):
        sizes = [each.numel() for each in given]
        parts = _exchanged(torch.cat([each.reshape(-1) for each in given]), sizes, x.numel(), group, ms)
        x.copy_(_combined("c10d::reduce_scatter_", op, parts).view(x.shape))
    return outputs, _finished(outputs)


@define("c10d::_reduce_scatter_base_")
def reduce_scatter_base(
    output: Tensor, given: Tensor, group: BOXED, op: BOXED, _async_op: bool = True, ms: int = -1
) -> tuple[Tensor, BOXED]:
    reduce_scatter_coalesced([output], [given], group, op, ms=ms)
    return output, _finished([output])


@define("c10d::reduce_scatter_tensor_coalesced_")
def reduce_scatter_coalesced(
    outputs: list[Tensor], inputs: list[Tensor], group: BOXED, op: BOXED, _async_op: bool = True, ms: int = -1
) -> BOXED:
    _refuse_parts()
    for x, given in zip(outputs, inputs, strict=True):
        sizes = [x.numel()] * c10d.ProcessGroup.unbox(group).size()
        parts = _exchanged(given.reshape(-1), sizes, x.numel(), group, ms)
        x.copy_(_combined("c10d::_reduce_scatter_base_", op, parts).view(x.shape))
    return _finished(outputs)


# --- what they are made of --------------------------------------------------------------------------------------------


def _refuse_parts() -> None:
    elastic.refuse("reduce_scatter", "ranks that hold parts of gradients have no exact sums", "use DDP")


def _gathered(x: Tensor, group: BOXED, ms: int) -> list[Tensor]:
    """The numbers of each rank, flat."""
    ranks = c10d.ProcessGroup.unbox(group)
    gathered = x.new_empty(ranks.size(), x.numel())
    if x.numel():
        options = _options(c10d.AllgatherOptions(), ms)
        ranks._allgather_base(_bytes(gathered), _bytes(x), options).wait()
    return list(gathered)


def _exchanged(given: Tensor, sizes: list[int], size: int, group: BOXED, ms: int) -> list[Tensor]:
    """The numbers of each rank for this one, flat, of those that each gives for all."""
    ranks = c10d.ProcessGroup.unbox(group)
    received = given.new_empty(ranks.size(), size)
    wide = given.element_size()
    got, gives = [size * wide] * ranks.size(), [each * wide for each in sizes]
    options = _options(c10d.AllToAllOptions(), ms)
    ranks.alltoall_base(_bytes(received), _bytes(given), got, gives, options).wait()
    return list(received)


def _bytes(x: Tensor) -> Tensor:
    """A tensor as bytes, which each backend moves, whatever type of number they are."""
    return x.reshape(-1).view(torch.uint8)


def _options(options: Any, ms: int) -> Any:
    options.asyncOp = False
    if ms >= 0:
        options.timeout = timedelta(milliseconds=ms)
    return options


def _combined(name: str, boxed: BOXED, parts: list[Tensor]) -> Tensor:
    """One tensor of those of all ranks."""
    op = c10d.ReduceOp.unbox(boxed)
    kind, kinds = op.op, c10d.ReduceOp.RedOpType
    if kind in (kinds.MIN, kinds.MAX):
        return functools.reduce(torch.minimum if kind == kinds.MIN else torch.maximum, parts)
    if kind == kinds.AVG:
        parts = [part * (1.0 / len(parts)) for part in parts]
    wide = [part.double() for part in parts]
    if kind == kinds.PRODUCT:
        return functools.reduce(torch.mul, wide)
    if kind == kinds.PREMUL_SUM:
        wide = [part * op.factor for part in wide]
    elif kind not in (kinds.SUM, kinds.AVG):
        raise refuse(name, "it combines bits of floating-point numbers", "combine integers")
    return functools.reduce(torch.add, wide)


def _finished(tensors: list[Tensor]) -> BOXED:
    """A Work that is done, whose future holds the tensors."""
    devices = sorted({x.device for x in tensors if x.is_cuda}, key=str)
    future: torch.futures.Future[Any] = torch.futures.Future(devices=devices)
    future.set_result(tensors)
    return c10d._create_work_from_future(future).boxed()
