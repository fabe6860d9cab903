"""Definitions where nothing can be compiled: PyTorch's operations one by one, on a CPU.

Each of them would pass a mode's kernels first, which leave it to PyTorch: for small tensors that takes longer than all else.
Here operations go straight to those of the CPU. What makes no use of a tensor, as `torch.zeros`, goes there, too.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet

from repro.portable.backends.pytorch import Backend

BLOCK = 2**14
"""Elements that are computed at once: what is made of them stays in a processor's caches."""
ADDED = DispatchKeySet(DispatchKey.CPU)
LEFT_OUT = DispatchKeySet(DispatchKey.BackendSelect)
"""The key of a mode's kernels."""


class _Thread(threading.local):
    keys: tuple[DispatchKeySet, DispatchKeySet] | None = None
    """The thread's keys outside of the definition that is running."""


thread = _Thread()


def run(function: Callable[..., Any], arguments: Any, options: dict[str, Any]) -> Any:
    """Runs function(Backend, *arguments, **options). Elements that depend on nothing else are computed in blocks."""
    included, left_out = keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    before, thread.keys = thread.keys, keys
    try:
        with torch._C._ForceDispatchKeyGuard(included | ADDED, left_out | LEFT_OUT):
            if getattr(function, "of_elements", False) and _are_rows(arguments):
                return _in_blocks(function, arguments, options)
            return function(Backend, *arguments, **options)
    finally:
        thread.keys = before


def outside() -> AbstractContextManager[Any]:
    """The context of what interrupts a definition: its operations are dispatched as before the definition."""
    return torch._C._ForceDispatchKeyGuard(*thread.keys) if thread.keys else nullcontext()


def _are_rows(arrays: tuple[Tensor, ...]) -> bool:
    """True for tensors of more than a block, each with the same elements at the same places in a row of memory."""
    first = max(arrays, key=torch.numel)
    same = all(each.shape == first.shape and each.stride() == first.stride() for each in arrays if each.dim())
    return first.numel() > BLOCK and same and torch.empty_like(first).stride() == first.stride()


def _in_blocks(function: Callable[..., Any], arrays: tuple[Tensor, ...], options: dict[str, Any]) -> Any:
    first = max(arrays, key=torch.numel)
    rows = [each.as_strided((first.numel(),), (1,)) if each.dim() else each for each in arrays]
    parts = [
        function(Backend, *(each[begin : begin + BLOCK] if each.dim() else each for each in rows), **options)
        for begin in range(0, first.numel(), BLOCK)
    ]
    if isinstance(parts[0], tuple):
        return tuple(_joined(each, first) for each in zip(*parts, strict=True))
    return _joined(parts, first)


def _joined(parts: Any, like: Tensor) -> Tensor:
    return torch.cat(parts).as_strided(like.shape, like.stride())
