"""The mode's self-check with planted faults, and its fingerprints by NumPy.

    python mode_checks.py

Prints JSON: `faults`, by name what was said when the mode was switched on, and `reference`, by case whether checks.txt has
the fingerprint of what NumPy computes.
"""

import ctypes
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import reference
import repro.portable.pytorch as portable
from reference.checks import expected
from repro.errors import UsageError
from repro.portable.backends.pytorch import Backend
from repro.portable.modes.pytorch.dispatcher import checks, dispatch

torch.set_num_threads(1)
set_flush_denormal = torch.set_flush_denormal  # which the mode replaces

# --- faults -----------------------------------------------------------------------------------------------------------


class Planted(TorchFunctionMode):
    """Functions of PyTorch with other arithmetic, by name."""

    def __init__(self, **faults: Callable[..., Any]) -> None:
        super().__init__()
        self.faults = faults

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        fault = self.faults.get(getattr(function, "__name__", ""))
        if fault is None or dispatch.thread.inside:
            return function(*arguments, **(options or {}))
        return fault(function, *arguments, **(options or {}))


def by_reciprocal(right: Callable, x: Tensor, other: Any) -> Tensor:
    return right(x, other) if isinstance(other, Tensor) else x * (1.0 / other)


def next_number(right: Callable, x: Tensor, *rest: Any) -> Tensor:
    y = right(x, *rest)
    return torch.nextafter(y, y * 2)


def last_of_equals(right: Callable, x: Tensor, dim: int) -> Any:
    values, _ = right(x, dim)
    return values, x.shape[dim] - 1 - (x == values.unsqueeze(dim)).int().flip(dim).argmax(dim)


def unstable(right: Callable, x: Tensor, dim: int, **options: Any) -> Any:
    values, indices = right(x.flip(dim), dim, **options)
    return values, x.shape[dim] - 1 - indices


def in_tf32(right: Callable, a: Tensor, b: Tensor) -> Tensor:
    """The last 13 bits are cut off."""
    return right(
        *(
            (each.view(torch.int32) & -(2**13)).view(torch.float32) if each.dtype == torch.float32 else each
            for each in (a, b)
        )
    )


def emulated(right: Callable, a: Tensor, b: Tensor) -> Tensor:
    """float64 in two parts of float32."""
    return right(a, b) if a.dtype == torch.float32 else right(a.float().double(), b.float().double())


def in_order(right: Callable, *given: Any, **options: Any) -> Tensor:
    """PyTorch's own kernel: one rounding after the other."""
    return dispatch.with_native_ops(right)(*given, **options)


def truncated(right: Callable, x: Tensor) -> Tensor:
    """Rounded to zero."""
    y = right(x)
    return (
        torch.where(y.double().abs() > x.abs(), torch.nextafter(y, torch.zeros_like(y)), y)
        if x.dtype == torch.float64
        else y
    )


def contracted(right: Callable) -> Callable:
    """Kernels with one rounding of a product and a sum."""

    def run(function: Callable, *given: Any, **options: Any) -> Any:
        if function is not checks._contracted:
            return right(function, *given, **options)
        x, y, z = ([Fraction(each) for each in array.tolist()] for array in given)
        return torch.tensor([float(a * b + c) for a, b, c in zip(x, y, z, strict=True)], dtype=torch.float64)

    return run


def other_word(right: Callable, x: Tensor, *rest: Any, **options: Any) -> Tensor:
    return right(x, *rest, **options) ^ 1 if x.dtype == torch.int64 else right(x, *rest, **options)


@contextmanager
def flushing() -> Iterator[None]:
    set_flush_denormal(True)
    try:
        yield
    finally:
        set_flush_denormal(False)


UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}


@contextmanager
def rounding_up() -> Iterator[None]:
    functions = ctypes.CDLL(None)
    functions.fesetround(UPWARD[platform.machine()])
    try:
        yield
    finally:
        functions.fesetround(0)


def patched(owner: Any, name: str, new: Callable[..., Callable]) -> Any:
    """A static method of a class in the place of the right one, which the fault is given."""
    return mock.patch.object(owner, name, staticmethod(new(getattr(owner, name))))


def saturated(right: Callable) -> Callable:
    return lambda *given: right(*given).clamp(-(2.0**31), 2.0**31 - 1)


def in_float32(right: Callable) -> Callable:
    return lambda *given: right(*given).float().double()


def other_kernel(right: Callable) -> Callable:
    def run(function: Callable, *given: Any, **options: Any) -> Any:
        result = right(function, *given, **options)
        return result if function is checks._contracted else [each * (1 + 2.0**-22) for each in result]

    return run


FAULTS: dict[str, Callable[[], Any]] = {
    "none": ExitStack,
    "rounding up": rounding_up,
    "truncation": lambda: Planted(float=truncated),
    "flushing": flushing,
    "contraction": lambda: mock.patch.object(checks, "run", contracted(checks.run)),
    "reciprocal": lambda: Planted(div=by_reciprocal, __truediv__=by_reciprocal, true_divide=by_reciprocal),
    "root": lambda: Planted(sqrt=next_number),
    "root of definitions": lambda: patched(Backend, "sqrt", lambda right: lambda x: right(x * (1 + 2.0**-50))),
    "maximum": lambda: Planted(max=last_of_equals),
    "sort": lambda: Planted(sort=unstable),
    "sum": lambda: Planted(sum=in_order),
    "emulated float64": lambda: Planted(matmul=emulated, __matmul__=emulated),
    "TF32": lambda: Planted(matmul=in_tf32, __matmul__=in_tf32),
    "atomics": lambda: Planted(index_add=in_order),
    "function": lambda: Planted(exp=next_number),
    "own function": lambda: Planted(sin=in_order),
    "kernel": lambda: mock.patch.object(checks, "run", other_kernel(checks.run)),
    "generator": lambda: Planted(random_=other_word),
    "saturation": lambda: patched(Backend, "matmul", saturated),
    "convolution": lambda: patched(Backend, "convolve", in_float32),
}


def said(fault: Callable[[], Any]) -> str:
    """The message of the self-check about a fault."""
    checks.passed.clear()
    try:
        with fault():
            dispatch.check_device(torch.device("cpu"))
    except UsageError as error:
        return str(error)
    return ""


def refused() -> list[bool]:
    """Tests that the mode stays off with a fault, and that it is on without."""
    results = []
    for fault in (flushing, ExitStack):
        try:
            with fault():
                portable.enable()
        except UsageError:
            results.append(dispatch.thread.inside or bool(dispatch.devices_checked))
        else:
            results.append(bool(dispatch.devices_checked))
            portable.disable()
    return results


# --- the reference ----------------------------------------------------------------------------------------------------


def half_brain(x: np.ndarray) -> np.ndarray:
    """bfloat16's bits, half to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    return (
        ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16).view(np.int16)
    )


def rounding() -> list[np.ndarray]:
    (x, y), (a, b) = (checks.doubles(key, 256) for key in (0, 1)), (checks.singles(key, 256) for key in (0, 1))
    results = [x.astype(np.float32), a.astype(np.float16), half_brain(a)]
    return [*results, x + y, x - y, x * y, x / y, a + b, a - b, a * b, a / b]


def subnormals() -> list[np.ndarray]:
    a = (checks.words(2, 64) >> np.uint64(41)).astype(np.int32).view(np.float32)
    x = (checks.words(3, 64) >> np.uint64(12)).astype(np.int64).view(np.float64)
    above = [a, a * np.float32(2.0**100), a + a, a.astype(np.float64), (a > 0).astype(np.float32)]
    return [*above, x, x * 2.0**1000, x + x, (x > 0).astype(np.float32)]


def contraction() -> list[np.ndarray]:
    results = []
    for make, share in ((checks.singles, np.float32(0.3)), (checks.doubles, 0.3)):
        a, b, c = (make(key, 256, 4) for key in (0, 1, 2))
        results += [a * b + c, a + b * share, c + a * b, a + (b - a) * share]
    return [*results, *[results[4]] * 3]


def division() -> list[np.ndarray]:
    a, x = checks.singles(3, 256), checks.doubles(3, 256)
    half = (a.astype(np.float16).astype(np.float32) / np.float32(3)).astype(np.float16)
    one, seven = np.float32(1), np.float32(7)
    return [a / np.float32(3), a / np.float32(10), x / 3, x / 10, half, one / a, 1 / x, a / seven]


def root() -> list[np.ndarray]:
    a, x = np.abs(checks.singles(4, 512)), np.abs(checks.doubles(4, 512))
    return [np.sqrt(a), np.sqrt(x), (1 / np.sqrt(a.astype(np.float64))).astype(np.float32), 1 / np.sqrt(x), np.sqrt(x)]


def choices() -> list[np.ndarray]:
    x = checks.tied(4 * 96).reshape(4, 96)
    up, down = np.argsort(x, 1, kind="stable"), np.argsort(-x, 1, kind="stable")
    sorted_up, sorted_down = np.take_along_axis(x, up, 1), np.take_along_axis(x, down, 1)
    results = [x.max(1), x.argmax(1), x.min(1), x.argmin(1), x.argmax(1), x.argmin(0), sorted_up, up, sorted_down, down]
    highest = np.maximum.accumulate(x, 1)
    last = np.maximum.accumulate(np.where(x == highest, np.arange(96), 0), 1)
    windows = x.reshape(4, 4, 2, 6, 2).transpose(0, 1, 3, 2, 4).reshape(4, 4, 6, 4)
    place = windows.argmax(-1)
    row, column = np.arange(4)[:, None] * 2 + place // 2, np.arange(6) * 2 + place % 2
    return [
        *(*results, sorted_down[:, :5], down[:, :5], sorted_up[:, 47], up[:, 47], highest, last),
        *(windows.max(-1), row * 12 + column),
    ]


def narrow_product() -> list[np.ndarray]:
    a, b = checks.singles(6, 768).reshape(6, 128), checks.singles(7, 640).reshape(128, 5)
    return [
        *(reference.matmul(a, b), reference.matmul(a, b, b[0]), reference.matmul(a, b)),
        *(reference.matmul_highest(a, b), reference.matmul_highest(a, b, b[0]), reference.matmul_highest(a, b)),
    ]


def indexing() -> list[np.ndarray]:
    a, index = checks.singles(8, 512).reshape(128, 4), (checks.words(8, 128) % np.uint64(5)).astype(np.int64)
    rows = reference.r32(reference.sum_by_index(a, index, 5))
    numbers = [reference.r32(reference.sum_by_index(a[:, [column]], index, 5)) for column in range(4)]
    return [rows, np.concatenate(numbers, 1), rows, rows]


def product() -> list[np.ndarray]:
    return [expected()["product"][0].astype(np.float64), expected()["scaled"][0]]


def convolution() -> list[np.ndarray]:
    return [expected()[name][0].astype(np.float64) for name in ("convolution", "kernel")]


def compiled() -> list[np.ndarray]:
    x, scale, shift = (checks.singles(key, count, 4) for key, count in ((11, 512), (12, 64), (13, 64)))
    y, mean, variance = reference.normalize(x.reshape(8, 64), (1,), 1e-5, True, False)[:3]
    return [reference.r32(reference.f64(y) * scale + reference.f64(shift)), mean, variance] * 3


REFERENCE = (
    *(rounding, subnormals, contraction, division, root, choices, narrow_product, indexing),
    *(product, convolution, compiled),
)

if __name__ == "__main__":
    np.seterr(over="ignore")
    right = {
        each.__name__: checks.fingerprint(each()) == checks.published(checks.__file__)[each.__name__]
        for each in REFERENCE
    }
    with portable.enable():
        answers = {name: said(fault) for name, fault in FAULTS.items()}
        checks.passed.clear()
        ignored = [torch.set_flush_denormal(True), said(ExitStack)]
        counted = sum(dispatch.counts.values())
    print(json.dumps({"faults": answers, "reference": right, "on": refused(), "counted": counted, "ignored": ignored}))
