"""Tensors as plain memory, which compiled kernels read.

A tensor may be more than its memory: the negative of it, a tensor that stands for another one, or one without any.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from repro.portable.arguments import refuse
from repro.portable.compiler.nodes import mapped

TYPES = {Tensor, nn.Parameter}
REMEDY = "give a plain tensor of its numbers"


def watched() -> bool:
    """True if something sees each of PyTorch's operations, as a TorchDispatchMode does.

    UsageError if it records or replaces them: kernels are not operations of PyTorch.
    """
    if not (torch._C._len_torch_dispatch_stack() or torch._C._is_tracing()):
        return False
    modes = [type(mode) for mode in _get_current_dispatch_mode_stack()]
    tracers = [mode.__name__ for mode in modes if mode.is_infra_mode()] or ["torch.jit.trace"][: torch._C._is_tracing()]
    if tracers:
        raise refuse("PyTorch", f"{tracers[0]} cannot see portable functions; call them outside, or use torch.compile")
    return True


def plain(arguments: Any) -> Any:
    """Replaces tensors in nested arguments by ones whose memory holds their numbers. UsageError if there is no such memory."""
    return arguments if _are_plain(arguments) else mapped(arguments, Tensor, _plain)


def _are_plain(arguments: Any) -> bool:
    for each in arguments:
        if isinstance(each, Tensor):
            if type(each) not in TYPES or each.is_neg() or not _in_memory(each):
                return False
        elif isinstance(each, (tuple, list)) and not _are_plain(each):
            return False
    return True


def _in_memory(tensor: Tensor) -> bool:
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:  # a layout of another kind, or a wrapper of torch.func
        return False


def _plain(tensor: Tensor) -> Tensor:
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        raise refuse("PyTorch", f"a tensor is a {type(tensor).__name__}, which is not plain memory; {REMEDY}")
    if tensor.layout is not torch.strided:
        raise refuse("PyTorch", f"a tensor is {tensor.layout}; {REMEDY}")
    if tensor._is_zerotensor():
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    plain = tensor.as_subclass(Tensor).resolve_conj().resolve_neg()
    if not (_in_memory(plain) or plain.is_meta or plain.numel() == 0):
        raise refuse("PyTorch", f"a tensor {list(plain.shape)} has no memory of its own; {REMEDY}")
    return plain


def overlap(tensors: Iterable[Tensor]) -> bool:
    """True if an element of memory belongs to two of these tensors, or twice to one; all are of one type."""
    clusters: list[list[Tensor]] = []
    device, end = None, 0
    for tensor in sorted(filter(_in_memory, tensors), key=lambda each: (str(each.device), each.data_ptr())):
        if tensor.device != device or tensor.data_ptr() >= end:
            clusters.append([])
            device, end = tensor.device, 0
        clusters[-1].append(tensor)
        end = max(end, tensor.data_ptr() + tensor.element_size() * _span(tensor))
    return any(_twice(each) for each in clusters if len(each) > 1 or _span(each[0]) != each[0].numel())


def _twice(cluster: list[Tensor]) -> bool:
    """True if memory is written twice, for tensors whose memory begins within that of those before them."""
    places = [(tensor.data_ptr() - cluster[0].data_ptr()) // tensor.element_size() for tensor in cluster]
    taken = np.zeros(max(place + _span(tensor) for place, tensor in zip(places, cluster, strict=True)), bool)
    for place, tensor in zip(places, cluster, strict=True):
        as_strided(taken[place:], tensor.shape, tensor.stride())[...] = True
    return int(taken.sum()) < sum(tensor.numel() for tensor in cluster)


def _span(tensor: Tensor) -> int:
    """The elements of memory from its first to its last one."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
