"""Portable numerics for any program, without an edit.

    import repro.portable.pytorch as portable

    portable.enable()

From then on each of PyTorch's operations in this process gives the same bits on any CPU or GPU, or is refused by name.
"""

from collections import Counter
from collections.abc import Collection

import torch

from repro.portable import kernels
from repro.portable.backends import pytorch_slices as slices
from repro.portable.backends.pytorch import Backend
from repro.portable.modes.common import switch
from repro.portable.modes.common.refusal import RefusedError as RefusedError
from repro.portable.modes.pytorch.dispatcher import (
    checks,
    compilers,
    dispatch,
    elastic_passes,
    elastic_ranks,
    forks,
    interruptions,
    libraries,
    machine,
    shards,
)
from repro.portable.modes.pytorch.dispatcher.registry import Registration
from repro.portable.modes.pytorch.operations import conversions

KERNELS = (
    (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    (torch._C._get_cudnn_enabled, torch._C._set_cudnn_enabled),
    (torch._C._get_flash_sdp_enabled, torch._C._set_sdp_use_flash),
    (torch._C._get_mem_efficient_sdp_enabled, torch._C._set_sdp_use_mem_efficient),
    (torch._C._get_cudnn_sdp_enabled, torch._C._set_sdp_use_cudnn),
    (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
)
"""Switches of kernels for what is otherwise made of smaller operations: what they are, and how to set them."""


class Mode(switch.Mode):
    """Portable numerics in PyTorch."""

    def begin(self) -> None:
        engine = "int16" if kernels.paired() else "float64" if self.elastic else slices.engine()
        registration = Registration(self.allow)
        self.undo.callback(registration.close)
        for given, change in KERNELS:
            self.undo.callback(change, given())
            change(False)
        if engine == "int8":  # all else that oneDNN has a form of is replaced
            torch._C._set_mkldnn_enabled(True)
        self.replace(Backend, "engine", engine)
        # As on a CPU that has no such switch; before, the self-check finds it.
        self.replace(torch, "set_flush_denormal", lambda _: False)
        compilers.install(self.undo)
        compilers.one_form_of_optimizers(self.undo)
        machine.install(self.undo)
        conversions.install(self.undo)
        libraries.install(self.undo, registration.scan)
        interruptions.install(self.undo)
        forks.install(self.undo)
        if self.elastic:
            elastic_passes.install(self.undo)
            elastic_ranks.install(self.undo)
        shards.install(self.undo)
        self.undo.callback(dispatch.devices_checked.clear)
        self.replace(dispatch, "self_check", checks.check_device)
        dispatch.check_device(torch.device("cpu"))
        if torch.cuda.is_initialized():  # otherwise when the first tensor is there
            dispatch.check_device(torch.device("cuda"))


def enable(allow: Collection[str] = (), precision: str = "high", elastic: bool = False) -> switch.Mode:
    """Switches portable numerics on for this process: all threads, all devices.

    `allow` names operations that are run natively. With `precision` "highest" operands of float32 products have 26 bits
    below the largest number of their row, with "high" 13. With `elastic` gradients are exact sums over samples: the same
    bits however a batch is split into micro-batches and ranks of DDP. A device that fails the self-check is an error.

    They are off again after disable(), or at the end of the outermost context. UsageError where they are on already, with
    other operations that are run natively or another precision, of an unknown one, of `elastic` with another precision
    than "high", and of the self-check.
    """
    return Mode.enable(allow, precision, elastic)


def disable() -> None:
    """Switches them off, whatever contexts are open.

    An operation that another thread starts at that moment may end with an internal error of PyTorch's dispatcher.
    """
    Mode.disable()


def counted() -> dict[str, dict[str, int]]:
    """The number of operations of each kind that were computed portably, and that ran natively."""
    kinds: Counter[str] = Counter()
    for name, number in list(dispatch.counts.items()):
        kinds[name.partition(".")[0].removesuffix("_")] += number
    return {"operations": dict(kinds), "allowed": dict(dispatch.ran_natively)}


def summary() -> str:
    """The counts in words, without the number of each."""
    return switch.in_words(**counted())
