"""One answer on all machines to functions of Python that ask what a machine has, and choose how to compute by that."""

import sys
from contextlib import ExitStack

import torch

from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.types import HALVES

CAPABILITY = "AVX2"
LOSSES = "torch.nn.modules.linear_cross_entropy_options"


def install(undo: ExitStack) -> None:
    """Answers, until `undo` is closed.

    torchvision resizes images of bytes as on most CPUs; `linear_cross_entropy` of halves adds in float32 on old GPUs, too.
    """
    for owner, name in ((torch.backends.cpu, "get_cpu_capability"), (torch._C, "_get_cpu_capability")):
        replace(undo, owner, name, capability)
    options = getattr(sys.modules.get(LOSSES), "LinearCrossEntropyOptions", None)
    name = "_resolve_auto_acc_dtype"
    if hasattr(options, name):
        undo.callback(setattr, options, name, vars(options)[name])
        setattr(options, name, staticmethod(type_of_sums))


def capability() -> str:
    return CAPABILITY


def type_of_sums(dtype: torch.dtype, device: torch.device | None) -> torch.dtype | None:
    return torch.float32 if device is not None and dtype in HALVES else None
