"""Numbers at equal distances: float64 sums and products, each rounded by itself, and rounded once to their type.

PyTorch's kernels contract a product and a sum on some processors. It makes room for the numbers first, so what is defined
is how that is filled.
"""

import torch
from torch import Tensor

from repro.portable.pytorch.mode.dispatch import compose, define
from repro.portable.pytorch.mode.indexing import rounded
from repro.portable.pytorch.mode.variants import fill

aten = torch.ops.aten
EXACT = 2.0**24
"""Below it float32 holds all integers."""


def _spaced(start: float, end: float, steps: int, like: Tensor) -> Tensor:
    """float64 numbers from both ends to the middle, as PyTorch has them."""
    place = torch.arange(steps, device=like.device).double()
    if steps < 2:
        return place + start
    step = (end - start) / (steps - 1)
    return torch.where(place < steps // 2, place * step + start, end - (steps - 1 - place) * step)


@define("linspace.out")
def linspace(start: float, end: float, steps: int, *, out: Tensor) -> Tensor:
    if steps < 0:
        return aten.linspace.out(start, end, steps, out=out)  # which says what is wrong
    return fill(out, rounded(_spaced(float(start), float(end), steps, out), out.dtype))


@compose("logspace.out")
def logspace(start: float, end: float, steps: int, base: float = 10.0, *, out: Tensor) -> Tensor:
    exponents = torch.linspace(start, end, steps, dtype=torch.float64, device=out.device)
    return fill(out, rounded(torch.pow(torch.full_like(exponents, base), exponents), out.dtype))


@define("arange.start_out")
def arange(start: float, end: float, step: float = 1, *, out: Tensor) -> Tensor:
    aten.arange.start_out(start, end, step, out=out)
    if float(start).is_integer() and float(step).is_integer() and max(abs(start), abs(end)) < EXACT:
        return out
    place = torch.arange(out.numel(), device=out.device).double()
    return fill(out, rounded(place * float(step) + float(start), out.dtype))
