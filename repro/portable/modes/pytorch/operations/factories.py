"""Numbers at equal distances: float64 sums and products, each rounded by itself, and rounded once to their type.

PyTorch's kernels contract a product and a sum on some processors. It makes room for the numbers first, so what is defined
is how that is filled.
"""

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.modes.pytorch.dispatcher.dispatch import counts, refusal
from repro.portable.modes.pytorch.dispatcher.tables import Function, compose, define, special
from repro.portable.modes.pytorch.dispatcher.variants import fill
from repro.portable.modes.pytorch.operations.indexing import rounded

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


@special("kaiser_window")
def kaiser_window(operation: OpOverload, name: str) -> Function:
    """In the place of what PyTorch itself has registered for it: no tensor goes in."""

    def window(_: Any, length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
        counts[name] += 1
        n = length + periodic
        place = torch.arange(n, dtype=torch.float64, device=options.get("device")) * (2.0 / max(1, n - 1)) - 1.0
        values = torch.i0(torch.sqrt((1.0 - place * place).clamp(min=0)) * beta)
        values = values / torch.i0(torch.full_like(values, beta)) if n > 1 else torch.ones_like(values)
        return values[:length].to(options.get("dtype") or torch.get_default_dtype())

    return refusal(operation, name) if name.endswith("out") else window
