"""One answer on all machines to functions of Python that ask what a machine has, and choose how to compute by that."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

import torch

from repro.portable.modes.common.cores import CORES
from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.types import HALVES

CAPABILITY = "AVX2"
PROCESSOR = {
    **dict.fromkeys(
        [
            "sse",
            "sse2",
            "sse3",
            "ssse3",
            "sse4_1",
            "sse4_2",
            "avx",
            "avx2",
            "fma3",
            "f16c",
            "bmi",
            "bmi2",
            "lzcnt",
            "popcnt",
            "aes",
        ],
        True,
    ),
    "architecture": "x86_64",
    "cpu_name": "portable",
    "l1d_cache_size": 2**15,
    "l2_cache_size": 2**20,
    "num_sockets": 1,
    "num_physical_cores": CORES,
    "num_logical_cores": CORES,
}
"""A processor with AVX2, as PyTorch describes it. Sizes are in bytes."""
LOSSES = "torch.nn.modules.linear_cross_entropy_options"


def install(undo: ExitStack) -> None:
    """Answers, until `undo` is closed.

    torchvision resizes images of bytes as on most CPUs; `linear_cross_entropy` of halves adds in float32 on old GPUs, too.
    """
    for owner, name in ((torch.backends.cpu, "get_cpu_capability"), (torch._C, "_get_cpu_capability")):
        replace(undo, owner, name, capability)
    if hasattr(torch.cpu, "get_capabilities"):  # since PyTorch 2.11
        answer = {name: False for name, value in torch.cpu.get_capabilities().items() if value is True} | PROCESSOR
        replace(undo, torch._C._cpu, "_get_cpu_capability", lambda: answer)
        torch.cpu.get_capabilities.cache_clear()
        undo.callback(torch.cpu.get_capabilities.cache_clear)
    for kind in ("", "interop_"):
        threads = Threads(getattr(torch, f"set_num_{kind}threads"), getattr(torch, f"get_num_{kind}threads")())
        replace(undo, torch, f"get_num_{kind}threads", threads.get)
        replace(undo, torch, f"set_num_{kind}threads", threads.set)
    options = getattr(sys.modules.get(LOSSES), "LinearCrossEntropyOptions", None)
    name = "_resolve_auto_acc_dtype"
    if hasattr(options, name):
        undo.callback(setattr, options, name, vars(options)[name])
        setattr(options, name, staticmethod(type_of_sums))


def capability() -> str:
    return CAPABILITY


class Threads:
    """The number of threads as a program has it: CORES until it sets another one.

    A program may set again what it was given, after it had set another one: then the threads are those of before.
    """

    def __init__(self, set_own: Callable[[int], None], own: int) -> None:
        self.set_own, self.own = set_own, own
        self.asked, self.given = 0, False

    def get(self) -> int:
        self.given = self.given or not self.asked
        return self.asked or CORES

    def set(self, number: int, /) -> None:
        again = self.given and number == CORES
        self.set_own(self.own if again else number)
        self.asked = 0 if again else number


def type_of_sums(dtype: torch.dtype, device: torch.device | None) -> torch.dtype | None:
    return torch.float32 if device is not None and dtype in HALVES else None
