"""Norms of tensors that ranks hold in parts, as FSDP's gradients: those of the whole tensors.

PyTorch takes the norm of each part, rounds it, and makes one of their squares. So `clip_grad_norm_` would scale by
another number than the same ranks do with whole gradients, as DDP's. Here the parts of one tensor after the other are
gathered, and each rank takes the norm.
"""

import sys
from contextlib import ExitStack
from functools import wraps
from types import ModuleType
from typing import Any

from repro.inject.imports import Finder
from repro.portable.modes.pytorch.dispatcher.compilers import replace

REDUCTIONS = "torch.distributed.tensor._ops._math_ops"
WAYS = ("_reduction_single_dim_strategy", "common_reduction_strategy")
"""What says how a reduction may be done in parts; versions of PyTorch have the one or the other for norms."""


def install(undo: ExitStack) -> None:
    """Takes no norm in parts, until `undo` is closed."""
    if REDUCTIONS in sys.modules:
        _whole(sys.modules[REDUCTIONS], undo)
    else:
        finder = Finder()  # most programs need no shards
        finder.when_imported(REDUCTIONS, lambda module: _whole(module, undo))
        sys.meta_path.insert(0, finder)
        undo.callback(sys.meta_path.remove, finder)


def _whole(module: ModuleType, undo: ExitStack) -> None:
    for name in WAYS:
        if hasattr(module, name):
            replace(undo, module, name, _without_norms(getattr(module, name), module.NormReduction))


def _without_norms(strategy: Any, norm: type) -> Any:
    """A strategy that says that norms of parts do not add up."""

    @wraps(strategy)
    def chosen(*arguments: Any, **options: Any) -> Any:
        if isinstance(options.get("reduction_op"), norm):
            options["reduction_linear"] = False
        return strategy(*arguments, **options)

    return chosen
