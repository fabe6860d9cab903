"""Complex numbers, whose parts are float32 or float64."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import complex_functions, complexes, sums
from repro.portable.definitions.complexes import Pair
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import define, define_complex
from repro.portable.modes.pytorch.dispatcher.types import axes_of, dropped
from repro.portable.modes.pytorch.operations import random
from repro.portable.modes.pytorch.operations import sums as norms


def parts(x: Tensor) -> Pair:
    """The real and the imaginary part, of the type that they have."""
    if not x.is_complex():
        return x, torch.zeros_like(x)
    both = torch.view_as_real(x.resolve_conj().resolve_neg())
    return both[..., 0], both[..., 1]


def wide(x: Tensor) -> Pair:
    """The parts in float64."""
    real, imaginary = parts(x)
    return real.double(), imaginary.double()


def joined(pair: Pair, dtype: torch.dtype) -> Tensor:
    """Complex numbers of a type, of parts that are rounded to it."""
    real = torch.float32 if dtype == torch.complex64 else torch.float64
    return torch.complex(*(each.to(real) for each in torch.broadcast_tensors(*pair)))


def real_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype == torch.complex64 else torch.float64


def _two(self: Any, other: Any) -> tuple[Pair, Pair, torch.dtype]:
    """Two arguments, numbers among them, and the type of PyTorch's result."""
    dtype = torch.result_type(self, other)
    pairs = (wide(x) if isinstance(x, Tensor) else wide(torch.tensor(x, dtype=dtype)) for x in (self, other))
    device = next(x.device for x in (self, other) if isinstance(x, Tensor))
    first, second = ((real.to(device), imaginary.to(device)) for real, imaginary in pairs)
    return first, second, dtype


# --- one number, or two -----------------------------------------------------------------------------------------------


@define_complex("mul.Tensor", "mul.Scalar")
def multiply(self: Tensor, other: Any) -> Tensor:
    a, b, dtype = _two(self, other)
    return joined(complexes.times(Backend, a, b), dtype)


@define_complex("div.Tensor", "div.Scalar")
def divide(self: Tensor, other: Any) -> Tensor:
    a, b, dtype = _two(self, other)
    return joined(complexes.over(Backend, a, b), dtype)


@define_complex("reciprocal")
def reciprocal(self: Tensor) -> Tensor:
    return divide(torch.ones_like(self), self)


@define_complex("square")
def square(self: Tensor) -> Tensor:
    return multiply(self, self)


@define_complex("pow.Tensor_Tensor", "pow.Scalar")
def power(self: Any, exponent: Any) -> Tensor:
    a, b, dtype = _two(self, exponent)
    a, b = (torch.broadcast_tensors(*each) for each in zip(a, b, strict=True))
    return joined(complex_functions.power(Backend, (a[0], b[0]), (a[1], b[1])), dtype)


@define_complex("pow.Tensor_Scalar")
def power_of_number(self: Tensor, exponent: Any) -> Tensor:
    """Products of the number with itself, from left to right; other powers by logarithms."""
    if isinstance(exponent, int) and 0 < exponent <= 16:
        return reduce(multiply, [self] * exponent)
    return power(self, exponent)


@define_complex("add.Tensor", "add.Scalar")
def add(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """The second number times the factor, rounded, is added."""
    return self + (other if alpha == 1 else multiply(other, alpha) if isinstance(other, Tensor) else other * alpha)


@define_complex("sub.Tensor", "sub.Scalar")
def sub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return add(self, other, alpha=-alpha)


@define_complex("addcmul")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    product = multiply(tensor1, tensor2)
    return self + (product if value == 1 else multiply(product, value))


@define_complex("addcdiv")
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return self + divide(tensor1 if value == 1 else multiply(tensor1, value), tensor2)


def _real(*names: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Registers a definition with a real result."""

    def register(definition: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @define_complex(*names)
        def computed(self: Tensor) -> Tensor:
            return definition(Backend, wide(self)).to(real_type(self.dtype))

        return computed

    return register


def _complex(*names: str) -> Callable[[Callable[..., Pair]], Callable[..., Tensor]]:
    """Registers a definition with a complex result."""

    def register(definition: Callable[..., Pair]) -> Callable[..., Tensor]:
        @define_complex(*names)
        def computed(self: Tensor) -> Tensor:
            return joined(definition(Backend, wide(self)), self.dtype)

        return computed

    return register


sizes = _real("abs")(complexes.size)
_real("angle")(complexes.angle)
for _name, _function in complex_functions.OF_ONE.items():
    _complex("sgn" if _name == "sign" else _name)(_function)


@define_complex("tanh_backward")
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return multiply(grad_output, (1 - multiply(output, output)).conj())


@define_complex("sigmoid_backward")
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return multiply(grad_output, multiply(1 - output, output).conj())


@define("polar")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    dtype = {torch.float32: torch.complex64, torch.float64: torch.complex128}.get(abs.dtype)
    if dtype is None:
        raise refuse("polar", "numbers of this type have no portable form", "use float32", [abs, angle])
    return joined(complexes.polar(Backend, abs.double(), angle.double()), dtype)


# --- sums and products of matrices ------------------------------------------------------------------------------------


def _summed(self: Tensor, dim: Any, keepdim: bool, dtype: torch.dtype | None, factor: Callable[..., float]) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    axes = axes_of(x, dim)
    terms = math.prod(x.shape[axis] for axis in axes)
    sums_of = (sums.as_type_of(Backend, sums.exact(Backend, each, axes) * factor(terms), each) for each in parts(x))
    return dropped(joined(tuple(sums_of), x.dtype), axes, keepdim)


@define_complex("sum")
def total(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _summed(self, None, False, dtype, lambda _: 1.0)


@define_complex("sum.dim_IntList")
def sums_along(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _summed(self, dim, keepdim, dtype, lambda _: 1.0)


@define_complex("mean")
def mean(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _summed(self, None, False, dtype, _share)


@define_complex("mean.dim")
def means_along(self: Tensor, dim: Any, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _summed(self, dim, keepdim, dtype, _share)


def _share(terms: int) -> float:
    return 1.0 / terms if terms else math.nan


@define_complex("prod")
def prod(self: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return product_along(self.reshape(-1), 0, dtype=dtype)


@define_complex("prod.dim_int")
def product_along(self: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim() or not x.shape[dim]:
        return torch.ones_like(x.sum(dim, keepdim)) if x.dim() else x.clone()
    result = joined(complexes.product(Backend, wide(x.movedim(dim, -1))), x.dtype).movedim(-1, dim)
    return result if keepdim else result.squeeze(dim)


@define_complex("cumsum")
def cumsum(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    real, imaginary = (norms.cumsum(each, dim) for each in parts(x))
    return joined((real, imaginary), x.dtype)


@define_complex("cumprod")
def cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    x = self if dtype is None else self.to(dtype)
    if not x.dim() or x.shape[dim] < 2:
        return x.clone()
    return joined(complexes.cumulative(Backend, wide(x.movedim(dim, -1))), x.dtype).movedim(-1, dim).contiguous()


@define_complex("linalg_vector_norm")
def vector_norm(self: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return norms.vector_norm(sizes(self), ord, dim, keepdim, dtype=dtype and real_type(dtype))


def _product(a: Tensor, b: Tensor, slices: int) -> Tensor:
    """[..., M, K] and [..., K, N] -> [..., M, N]."""
    dtype = torch.result_type(a, b)
    if not a.numel() or not b.numel():
        return torch.zeros(*a.shape[:-1], b.shape[-1], dtype=dtype, device=a.device)
    return joined(complexes.matmul(Backend, parts(a.to(dtype)), parts(b.to(dtype)), slices), dtype)


@define_complex("mm", "bmm")
def mm(self: Tensor, mat2: Tensor, *, slices: int) -> Tensor:
    return _product(self, mat2, slices)


@define_complex("mv")
def mv(self: Tensor, vec: Tensor, *, slices: int) -> Tensor:
    return _product(self, vec[:, None], slices)[:, 0]


@define_complex("dot")
def dot(self: Tensor, tensor: Tensor, *, slices: int) -> Tensor:
    return _product(self[None], tensor[:, None], slices)[0, 0]


@define_complex("vdot")
def vdot(self: Tensor, other: Tensor, *, slices: int) -> Tensor:
    return dot(self.conj(), other, slices=slices)


@define_complex("addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    y = _product(mat1, mat2, slices)
    y = y if alpha == 1 else multiply(y, alpha)
    return y if beta == 0 else y + (self if beta == 1 else multiply(self, beta))


@define_complex("baddbmm")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    return addmm(self, batch1, batch2, beta=beta, alpha=alpha, slices=slices)


# --- random numbers ---------------------------------------------------------------------------------------------------


@define_complex("uniform_")
def uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Both parts are uniform."""
    random.uniform(torch.view_as_real(self), from_, to, generator=generator)
    return self


@define_complex("normal_")
def normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Each part has half of the variance."""
    random.normal(torch.view_as_real(self), 0.0, std / math.sqrt(2.0), generator=generator)
    return self.add_(mean)
