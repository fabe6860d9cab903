"""Functions of each element."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import functions
from repro.portable.definitions.functions import bessel, cylinders, exponential, logarithmic, powers
from repro.portable.definitions.functions.table import FUNCTIONS
from repro.portable.modes.pytorch.dispatcher.tables import define, replace
from repro.portable.modes.pytorch.dispatcher.types import HALVES, scalar


def evaluate(function: Callable[..., Any], *arrays: Tensor, **options: Any) -> Any:
    """A function of repro.portable.definitions for float32 or float64 tensors of one type, which is that of the result."""
    return run(functions.rounded(function), *arrays, **options)


def floats(*arrays: Any) -> tuple[tuple[Tensor, ...], torch.dtype]:
    """Arguments, numbers among them, as float32 or float64 tensors of one type, and the type of PyTorch's result."""
    dtype = torch.result_type(*arrays) if len(arrays) > 1 else arrays[0].dtype
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    wide = torch.float32 if dtype in HALVES else dtype
    device = next(each.device for each in arrays if isinstance(each, Tensor))
    given = (each if isinstance(each, Tensor) else scalar(each, wide) for each in arrays)
    return tuple(each.to(dtype=wide, device=device) for each in given), dtype


def _of_elements(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def computed(*arrays: Any) -> Tensor:
        given, dtype = floats(*arrays)
        return evaluate(function, *given).to(dtype)

    return computed


NAMES = """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinc asin acos atan sinh cosh asinh acosh atanh
    erf erfc erfinv lgamma digamma i0 atan2 hypot logaddexp
"""
"""Functions that have their names here in PyTorch, too."""
RENAMED = {
    "ndtri": ("special_ndtri",),
    "log_ndtr": ("special_log_ndtr",),
    "erfcx": ("special_erfcx",),
    "i0e": ("special_i0e",),
    "i1": ("special_i1",),
    "i1e": ("special_i1e",),
    "xlogy": ("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other"),
    "xlog1py": ("special_xlog1py", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"),
}
for _name, _names in ({each: (each,) for each in NAMES.split()} | RENAMED).items():
    define(*_names, integers=True)(_of_elements(FUNCTIONS[_name]))


BESSEL = {
    "special_bessel_j0": cylinders.j0,
    "special_bessel_j1": cylinders.j1,
    "special_bessel_y0": cylinders.y0,
    "special_bessel_y1": cylinders.y1,
    "special_modified_bessel_i0": bessel.i0,
    "special_modified_bessel_i1": bessel.i1,
    "special_modified_bessel_k0": cylinders.k0,
    "special_modified_bessel_k1": cylinders.k1,
    "special_scaled_modified_bessel_k0": cylinders.k0e,
    "special_scaled_modified_bessel_k1": cylinders.k1e,
    "special_spherical_bessel_j0": cylinders.spherical_j0,
}
"""Functions without a gradient in PyTorch."""
for _name, _function in BESSEL.items():
    define(_name, integers=True)(_of_elements(_function))


@define("special_entr", integers=True)
def entropy(self: Tensor) -> Tensor:
    (x,), dtype = floats(self)
    return torch.where(x < 0, -math.inf, -evaluate(logarithmic.xlogy, x, x)).to(dtype)


@replace("special_ndtr")
def ndtr(self: Tensor) -> Tensor:
    """erfc(-x / sqrt 2) / 2, in float64: of PyTorch's sum of 1 and erf nothing is left where it is small."""
    dtype = self.dtype if self.is_floating_point() else torch.get_default_dtype()
    return (torch.erfc(self.double() * -math.sqrt(0.5)) * 0.5).to(dtype)


@define("logit", integers=True)
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """A number below eps counts as eps, any other one above 1 - eps as that; none does where eps is negative."""
    (x,), dtype = floats(self)
    if eps is not None and eps >= 0:
        x = torch.where(x < eps, eps, torch.where(x > 1 - eps, 1 - eps, x))
    return evaluate(logarithmic.logit, x).to(dtype)


@define("logit_backward")
def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    (g, x), dtype = floats(grad_output, self)
    slope = g / (x * (1.0 - x))
    low, high, outside = (0.0, 1.0, math.nan) if eps is None or eps < 0 else (eps, 1.0 - eps, 0.0)
    return torch.where((x < low) | (x > high), outside, slope).to(dtype)


# --- powers -----------------------------------------------------------------------------------------------------------


def power(x: Tensor, exponent: Tensor) -> Tensor:
    """x^exponent, of float32 or float64 tensors of one type."""
    return evaluate(powers.power, x, exponent)


@define("pow.Tensor_Tensor", "pow.Scalar", integers=True)
def pow_of(self: Any, exponent: Any) -> Tensor:
    if not torch.result_type(self, exponent).is_floating_point:
        return torch.ops.aten.pow(self, exponent)
    (x, y), dtype = floats(self, exponent)
    return power(*torch.broadcast_tensors(x, y)).to(dtype)


@define("pow.Tensor_Scalar", integers=True)
def pow_by_number(self: Tensor, exponent: Any) -> Tensor:
    if not torch.result_type(self, exponent).is_floating_point:
        return torch.ops.aten.pow(self, exponent)
    (x, y), dtype = floats(self, exponent)
    whole = {1: lambda: x.clone(), 2: lambda: x * x, 3: lambda: x * x * x, -1: lambda: 1.0 / x}
    roots = {0.5: lambda: evaluate(powers.sqrt, x), -0.5: lambda: evaluate(powers.rsqrt, x)}
    made = (whole | roots).get(exponent)
    return (power(x, y) if made is None else made()).to(dtype)


@define("ldexp.Tensor", integers=True)
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    (x, y), dtype = floats(self, other)
    return (x * evaluate(exponential.exp2, y)).to(dtype)
