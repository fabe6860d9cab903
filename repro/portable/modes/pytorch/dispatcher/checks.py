"""The mode's self-check: small cases and their fingerprints.

They are computed when the mode is switched on, and on a GPU when the first tensor there meets an operation of the mode.
A case is what the definitions rely on of PyTorch and of the processor, or a definition itself. What it should be stands
in checks.txt, as SHA-256 of all bits: the rounding mode of a process, or small numbers that count as 0, would spoil
results of NumPy at the same time. tests/portable/test_mode_checks.py compares that file with the reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from repro.errors import UsageError
from repro.portable.backends.checks import cases as checks
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import normalization
from repro.portable.definitions.convolution import PLAIN
from repro.portable.definitions.grids import rounded_product
from repro.portable.modes.common.checks import apart, fingerprint, published
from repro.portable.modes.common.precision import setting
from repro.portable.modes.pytorch.dispatcher import dispatch
from repro.portable.numbers.precisions import SLICES

Made = list[Tensor]
REMEDY = "use another device or version of PyTorch"


@dataclass(frozen=True)
class Case:
    """A computation on a device, its title, and the remedy if the result is not as it should be."""

    title: str
    compute: Callable[[torch.device], Made]
    remedy: str = REMEDY


CASES: dict[str, Case] = {}
CHANGING = ("rounding", "subnormals")
"""Cases of what a program may set: they are computed again each time that the mode is switched on."""
passed: set[tuple[str, str]] = set()
"""Types of devices and matmul backends that passed in this process."""


def register(title: str, remedy: str = REMEDY) -> Callable[[Callable[[torch.device], Made]], Callable]:
    """Registers a function by its name; they run in this order, so that the first one that fails is the cause."""

    def registered(compute: Callable[[torch.device], Made]) -> Callable[[torch.device], Made]:
        CASES[compute.__name__] = Case(title, compute, remedy)
        return compute

    return registered


# --- numbers: no rounding makes them ----------------------------------------------------------------------------------


@cache
def words(key: int, count: int) -> np.ndarray:
    """Random bits, uint64."""
    return np.random.Philox(key=[3, key]).random_raw(count)


def doubles(key: int, count: int, octaves: int = 20) -> np.ndarray:
    """float64 of both signs and all bits, from 1 to 2^octaves."""
    bits = words(key, count)
    exponents = (bits >> np.uint64(52)) % np.uint64(octaves) + np.uint64(1023)
    return ((bits & np.uint64(0x800FFFFFFFFFFFFF)) | (exponents << np.uint64(52))).view(np.float64)


def singles(key: int, count: int, octaves: int = 20) -> np.ndarray:
    """float32 in the same way."""
    bits = (words(key, count) >> np.uint64(32)).astype(np.uint32)
    exponents = (bits >> np.uint32(23)) % np.uint32(octaves) + np.uint32(127)
    return ((bits & np.uint32(0x807FFFFF)) | (exponents << np.uint32(23))).view(np.float32)


def tied(count: int) -> np.ndarray:
    """Small integers, float32, of which many are equal."""
    return (words(9, count) % np.uint64(4)).astype(np.float32)


def to(device: torch.device, *arrays: np.ndarray) -> Made:
    return [torch.from_numpy(array.copy()).to(device) for array in arrays]


# --- cases ------------------------------------------------------------------------------------------------------------


@register("rounding to nearest", "a library has set another rounding mode (fesetround): set it back")
def rounding(device: torch.device) -> Made:
    x, y = to(device, doubles(0, 256), doubles(1, 256))
    a, b = to(device, singles(0, 256), singles(1, 256))
    return [x.float(), a.half(), a.bfloat16(), x + y, x - y, x * y, x / y, a + b, a - b, a * b, a / b]


@register("numbers below 2^-126", "call torch.set_flush_denormal(False) before, or " + REMEDY)
def subnormals(device: torch.device) -> Made:
    (small,) = to(device, (words(2, 64) >> np.uint64(41)).astype(np.int32))  # below 2^-126
    (tiny,) = to(device, (words(3, 64) >> np.uint64(12)).astype(np.int64))
    a, x = small.view(torch.float32), tiny.view(torch.float64)
    return [a * 1.0, a * 2.0**100, a + a, a.double(), (a > 0).float(), x * 1.0, x * 2.0**1000, x + x, (x > 0).float()]


@register("a product and a sum, each rounded")
def contraction(device: torch.device) -> Made:
    a, b, c = to(device, singles(0, 256, 4), singles(1, 256, 4), singles(2, 256, 4))
    x, y, z = to(device, doubles(0, 256, 4), doubles(1, 256, 4), doubles(2, 256, 4))
    made = [a * b + c, torch.add(a, b, alpha=0.3), torch.addcmul(c, a, b), torch.lerp(a, b, 0.3)]
    made += [x * y + z, torch.add(x, y, alpha=0.3), torch.addcmul(z, x, y), torch.lerp(x, y, 0.3)]
    return made + [run(_contracted, x, y, z) for _ in range(3)]


def _contracted(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """A product and a sum; from the third call on a kernel, where kernels can be compiled."""
    return xp.f64(x) * y + z


@register("a quotient by a number")
def division(device: torch.device) -> Made:
    (a,), (x,) = to(device, singles(3, 256)), to(device, doubles(3, 256))
    return [a / 3.0, a / 10, x / 3.0, x / 10, a.half() / 3.0, a.reciprocal(), x.reciprocal(), a.clone().div_(7.0)]


@register("a square root")
def root(device: torch.device) -> Made:
    (a,), (x,) = to(device, singles(4, 512)), to(device, doubles(4, 512))
    return [
        a.abs().sqrt(),
        x.abs().sqrt(),
        a.abs().rsqrt(),
        x.abs().rsqrt(),
        dispatch.with_native_ops(Backend.sqrt)(x.abs()),
    ]


@register("the choice among equal numbers")
def choices(device: torch.device) -> Made:
    (x,) = to(device, tied(4 * 96).reshape(4, 96))
    results = [*x.max(1), *x.min(1), x.argmax(1), x.argmin(0), *x.sort(1), *x.sort(1, descending=True), *x.topk(5, 1)]
    planes = x.view(1, 4, 8, 12)
    return [*results, *x.median(1), *x.cummax(1), *functional.max_pool2d(planes, 2, return_indices=True)]


@register("a sum of numbers")
def sums(device: torch.device) -> Made:
    (a,), (x,) = to(device, singles(5, 1024).reshape(8, 128)), to(device, doubles(5, 1024).reshape(8, 128))
    return [
        *(a.sum(1), a.sum(), a.mean(0), a.var(1), a.norm(), a.cumsum(1)),
        *(x.sum(1), x.sum(), x.mean(0), x.var(1), x.norm(), x.cumsum(1)),
    ]


@register("a product of matrices of float64")
def wide_product(device: torch.device) -> Made:
    a, b = to(device, doubles(6, 768).reshape(6, 128), doubles(7, 640).reshape(128, 5))
    return [a @ b]


@register("a product of matrices of float32")
def narrow_product(device: torch.device) -> Made:
    a, b = to(device, singles(6, 768).reshape(6, 128), singles(7, 640).reshape(128, 5))
    made = []
    for slices in SLICES.values():
        setting.slices = slices
        made += [a @ b, torch.addmm(b[0], a, b), torch.bmm(a.view(2, 3, 128), b.expand(2, 128, 5))]
    return made


@register("a sum at repeated indices")
def indexing(device: torch.device) -> Made:
    (a,) = to(device, singles(8, 512).reshape(128, 4))
    (index,) = to(device, (words(8, 128) % np.uint64(5)).astype(np.int64))
    zeros = torch.zeros(5, 4, dtype=torch.float32, device=device)
    return [
        zeros.index_add(0, index, a),
        zeros.scatter_add(0, index[:, None].expand(128, 4), a),
        zeros.index_put((index,), a, accumulate=True),
        torch.ops.aten.embedding_dense_backward(a, index, 5, -1, False),
    ]


@register("an elementary function")
def functions(device: torch.device) -> Made:
    (a,), (x,) = to(device, singles(10, 192, 6)), to(device, doubles(10, 192, 6))
    made = []
    for each in (a, x):
        small, positive = each * 2.0**-5, each.abs()
        made += [small.exp(), positive.log(), small.erf(), each.sin(), positive**0.3]
    return [*made, functional.softmax(a.view(4, 48), 1)]


@register("normalization", "kernels compiled on this processor differ from their definition: remove llvmlite")
def compiled(device: torch.device) -> Made:
    a, b, c = to(device, singles(11, 512, 4).reshape(8, 64), singles(12, 64, 4), singles(13, 64, 4))
    rows = a, b.view(1, -1), c.view(1, -1)
    return [each for _ in range(3) for each in run(normalization.scaled_forward, *rows, axes=(1,), eps=1e-5)[:3]]


@register("a random number")
def random(device: torch.device) -> Made:
    generator = torch.Generator("cpu").manual_seed(7)
    integers = torch.empty(16, dtype=torch.int64, device="cpu").random_(generator=generator)
    there = torch.Generator(device).manual_seed(7)
    empty = torch.empty(32, dtype=torch.float32, device=device)
    return [integers, empty.clone().uniform_(generator=there), empty.normal_(generator=there)]


@register("an exact product of integers")
def product(device: torch.device) -> Made:
    """Products by the matmul backend of the mode."""
    given = {name: to(device, *checks.inputs()[name]) for name in ("product", "scaled")}
    operands = partial(Backend.operands, work=checks.LARGE)
    *factors, grids = given["scaled"]
    result = dispatch.with_native_ops(Backend.matmul)(*operands(*given["product"]))
    return [result, dispatch.with_native_ops(rounded_product)(Backend, *operands(*factors), grids)]


@register("an exact convolution of integers")
def convolution(device: torch.device) -> Made:
    how, layout = tuple(PLAIN.values()), str(PLAIN["layout"])
    made = []
    for name, multiply in (("convolution", Backend.convolve), ("kernel", Backend.convolve_with)):
        first, second = to(device, *checks.inputs()[name])
        operands = Backend.operands(first, second, work=checks.LARGE, layout=layout)
        shape = () if name == "convolution" else ((20, 5, 5, 10),)
        made.append(dispatch.with_native_ops(multiply)(*operands, *shape, *how))
    return made


# --- the check --------------------------------------------------------------------------------------------------------


def results(name: str, device: torch.device) -> list[np.ndarray]:
    """The results of a case; bfloat16 as integers."""
    results = [each.detach().cpu() for each in CASES[name].compute(device)]
    return [(each.view(torch.int16) if each.dtype == torch.bfloat16 else each).numpy() for each in results]


def check_device(device: torch.device) -> None:
    """UsageError if a case has other bits on this device; the mode must be on."""
    this = device.type, Backend.engine
    with apart(dispatch.counts), torch.no_grad(), torch.autocast(device.type, enabled=False):
        for name in CHANGING if this in passed else CASES:
            if fingerprint(results(name, device)) != published(__file__)[name]:
                case = CASES[name]
                raise UsageError(
                    f"portable numerics: PyTorch does not compute {case.title} by the rules on this device ({device}), "
                    f"so they stay off; {case.remedy}"
                )
    passed.add(this)
