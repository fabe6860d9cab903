"""Remainders, and quotients that are rounded down.

A remainder is exact, but PyTorch's kernels of some vectors give NaN where the quotient is too large for the type. In float64
no quotient of float32 numbers is too large; of float64 numbers the remainder is taken in three steps.
"""

from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_given
from repro.portable.modes.pytorch.operations.arithmetic import number_like

STEP = 2.0**500
"""The factor by which a quotient of float64 numbers is made smaller in each step."""


def _operands(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Operands of one type, that of the result."""
    like = a if isinstance(a, Tensor) else b
    a, b = (each if isinstance(each, Tensor) else number_like(like, each) for each in (a, b))
    dtype = torch.result_type(a, b)
    return a.to(dtype), b.to(dtype)


def fmod(a: Tensor, b: Tensor) -> Tensor:
    """The remainder of a, with its sign, in their type; exact."""
    if a.dtype != torch.float64:
        return torch.fmod(a.double(), b.double()).to(a.dtype)
    for divisor in (b * STEP * STEP * STEP, b * STEP):
        a = torch.fmod(a, divisor)
    return torch.fmod(a, b)


def quotient(a: Any, b: Any) -> Tensor:
    """a / b, rounded down as PyTorch does it."""
    a, b = _operands(a, b)
    rest, whole = fmod(a, b), a / b
    exact = (a - rest) / b
    exact = torch.where((rest != 0) & ((b < 0) != (rest < 0)), exact - 1, exact)
    floor = exact.floor()
    floor = torch.where(exact - floor > 0.5, floor + 1, floor)
    floor = torch.where(exact == 0, torch.zeros_like(exact).copysign(whole), floor)
    return torch.where(b == 0, whole, floor)


@define("fmod.Tensor", "fmod.Scalar")
@as_given
def _fmod(self: Tensor, other: Any) -> Tensor:
    return fmod(*_operands(self, other))


@define("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
@as_given
def _remainder(self: Any, other: Any) -> Tensor:
    """With the sign of what divides."""
    a, b = _operands(self, other)
    rest = fmod(a, b)
    return torch.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


define("floor_divide", "floor_divide.Scalar")(as_given(quotient))
