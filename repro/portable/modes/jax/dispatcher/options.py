"""XLA's options under which each operation rounds for itself.

XLA fuses operations into loops. It then contracts products and sums, takes a division for a product with a reciprocal,
joins constants, and drops conversions. Some of its options leave that out; what this costs is small, as most of the
time is spent in kernels of this library. XLA reads them when the first array is made.
"""

import os
import platform
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import jaxlib.version
from jax._src import xla_bridge

from repro.errors import UsageError

VARIABLE = "XLA_FLAGS"
PASSES = ("algsimp", "reshape-mover")
"""Passes of XLA that are left out.

The second leaves work to the first: without it, each of its turns adds transpositions, some thousand of them, until the
compiler's stack overflows.
"""
WITH_LIBRARY = (0, 8, 2)
"""The version of jaxlib from which on XLA may hand parts of a program to a library of its own, YNNPACK.

That drops roundings, and reads memory that is not there where `algsimp` is left out.
"""
JOINING = ("fusion", "small-while-loop-hoisting")
"""Passes that put several operations into one function, where LLVM contracts them if the CPU can."""


def of(machine: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Options and passes left out. Instructions that contract can be left out on x86-64 alone."""
    rounding = {"xla_allow_excess_precision": "false"}
    if jaxlib.version.__version_info__ >= WITH_LIBRARY:
        rounding["xla_cpu_experimental_ynn_fusion_type"] = "individual_convolution"  # which the mode leaves none of
    if machine in ("x86_64", "AMD64"):
        return {"xla_cpu_max_isa": "AVX"} | rounding, PASSES  # the next set of instructions has fused products and sums
    return rounding, PASSES + JOINING


OPTIONS, LEFT_OUT = of(platform.machine())
NARROWER = ("SSE4_2", "AVX")
"""Sets of instructions that a user may have chosen."""


def choose() -> None:
    """Adds them to XLA's variable. UsageError where XLA has started without them."""
    given = dict(map(_parts, os.environ.get(VARIABLE, "").split()))
    wanted = given | OPTIONS
    passes = given.get("xla_disable_hlo_passes", "").split(",")
    if LEFT_OUT:
        wanted["xla_disable_hlo_passes"] = ",".join(dict.fromkeys([*filter(None, passes), *LEFT_OUT]))
    if given.get("xla_cpu_max_isa") in NARROWER:
        wanted["xla_cpu_max_isa"] = given["xla_cpu_max_isa"]
    if wanted == given:
        return
    if xla_bridge.backends_are_initialized():
        raise UsageError(
            "portable: JAX has computed already, with options of XLA that round otherwise; call enable() before the first "
            "array is made, or run the program by `repro portable`"
        )
    os.environ[VARIABLE] = " ".join(f"--{name}={value}" if value else f"--{name}" for name, value in wanted.items())


@cache
def has_float16() -> bool:
    """True if XLA can convert float16: on x86-64 that takes F16C, which came with AVX."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    narrow = dict(map(_parts, os.environ.get(VARIABLE, "").split())).get("xla_cpu_max_isa") == "SSE4_2"
    facts = Path("/proc/cpuinfo")
    return not narrow and (not facts.exists() or " f16c" in facts.read_text())


def install(undo: ExitStack) -> None:
    """Chooses them, and again when XLA starts: a program may set its variable after it has imported JAX."""
    choose()
    started = xla_bridge.backends

    def backends() -> Any:
        if not xla_bridge.backends_are_initialized():
            choose()
        return started()

    undo.callback(setattr, xla_bridge, "backends", started)
    xla_bridge.backends = backends


def _parts(option: str) -> tuple[str, str]:
    name, _, value = option.removeprefix("--").partition("=")
    return name, value
