"""Ranks of DDP under `elastic`: they exchange sums over samples before these are rounded, in the place of gradients."""

from contextlib import ExitStack
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import elastic as definitions
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops


def install(undo: ExitStack) -> None:
    """Each model that is handed to DDP exchanges sums, until `undo` is closed."""
    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    own = DistributedDataParallel.__init__
    undo.callback(_forget)

    @wraps(own)
    def begin(model: Any, module: Any, *arguments: Any, **options: Any) -> None:
        for layer in module.modules():
            _check(layer)
        own(model, module, *arguments, **options)
        ranks = torch.distributed.get_world_size(model.process_group)
        if ranks & (ranks - 1):
            raise elastic.refused(f"{ranks} ranks: one over their number is not exact", "take 2, 4, 8, ... ranks")
        if elastic.setting.shared and elastic.setting.share != 1.0 / ranks:
            raise elastic.refused("models of several numbers of ranks", "hand all of them to DDP alike")
        elastic.setting.share = 1.0 / ranks
        for parameter in model.parameters():
            elastic.setting.shared[parameter] = True
        model.register_comm_hook(model.process_group, exchange)

    own_forward = torch.nn.SyncBatchNorm.forward

    @wraps(own_forward)
    def forward(layer: Any, x: Tensor) -> Tensor:
        if torch.distributed.is_initialized():
            _check(layer)
        return own_forward(layer, x)

    replace(undo, DistributedDataParallel, "__init__", begin)
    replace(undo, torch.nn.SyncBatchNorm, "forward", forward)


def _check(layer: Any) -> None:
    """RefusedError for SyncBatchNorm in training: PyTorch has it on GPUs alone, and its own error knows no other way."""
    if isinstance(layer, torch.nn.SyncBatchNorm) and layer.training:
        raise elastic.refused("SyncBatchNorm: samples of all ranks are normalized together", "use group or layer norm")


def _forget() -> None:
    elastic.setting.share = 1.0
    elastic.setting.shared.clear()


def exchange(group, bucket):  # DDP looks at annotations
    """DDP's hook for some gradients: their sums over all ranks, each rounded once."""
    _exchange(group, bucket)
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


@with_native_ops
def _exchange(group: Any, bucket: Any) -> None:
    known = [elastic.leaves.get(parameter) for parameter in bucket.parameters()]
    if not all(leaf and leaf.own for leaf in known):
        raise elastic.refused("a parameter has no gradient on this rank", "use all parameters in each step")
    for leaf in known:
        leaf.own = elastic.made(leaf.own)
    parts = [(leaf, width) for leaf in known for width in sorted(leaf.own)]
    places = _joined([leaf.own[width][2] for leaf, width in parts], group, torch.distributed.ReduceOp.MAX)
    for (leaf, width), place in zip(parts, places, strict=True):
        leaf.own[width] = run(definitions.at, leaf.own[width], place)
    for index in (0, 1):
        totals = _joined([leaf.own[width][index] for leaf, width in parts], group, torch.distributed.ReduceOp.SUM)
        for (leaf, width), total in zip(parts, totals, strict=True):
            leaf.own[width] = (*leaf.own[width][:index], total, *leaf.own[width][index + 1 :])
    for leaf, gradient in zip(known, bucket.gradients(), strict=True):
        leaf.before, leaf.own = elastic.added(leaf.before, leaf.own), {}
        gradient.copy_(leaf.total().view(gradient.shape))


def _joined(tensors: list[Tensor], group: Any, op: Any) -> list[Tensor]:
    """Float64 tensors over all ranks, in one exchange."""
    flat = torch.cat([each.reshape(-1) for each in tensors])
    torch.distributed.all_reduce(flat, op, group=group)
    return [
        part.view(each.shape)
        for part, each in zip(flat.split([each.numel() for each in tensors]), tensors, strict=True)
    ]
