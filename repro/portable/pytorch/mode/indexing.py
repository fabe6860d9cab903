"""Sums of numbers that meet: scatter, embedding, overlapping windows.

PyTorch's kernels add them one by one, in an order that a device chooses. Here the numbers are integers on one grid first:
float64 holds their sums exactly, so PyTorch's own kernels add them in any order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.constants import SUM_BITS
from repro.portable.operations.grids import quantize
from repro.portable.pytorch.compiler.plan import run
from repro.portable.pytorch.mode import doubles
from repro.portable.pytorch.mode.dispatch import Function, compose, define, guard, refusal, special
from repro.portable.pytorch.mode.types import single

aten = torch.ops.aten


def added(x: Tensor, add: Callable[[Tensor], Tensor]) -> Tensor:
    """What `add`, a function that only adds numbers of x up, gives for x, float32 or float64, exactly."""
    x = single(x)
    if not x.numel():
        return add(x.double()).to(x.dtype)
    if x.dtype == torch.float64:
        bits = doubles.SIGNIFICAND - 1 - max(1, x.numel() - 1).bit_length()
        parts, unit = doubles.slices(x.reshape(-1), (0,), bits, -(-2 * doubles.SIGNIFICAND // bits))
        found = torch.zeros((), dtype=torch.float64, device=x.device)
        for part in reversed(parts):
            found = found * 2.0**-bits + add(part.view(x.shape))
        return found * unit
    q, unit = run(_integers, x, axes=tuple(range(x.dim())) or ())
    return (add(q) * unit.reshape(())).float()


def _integers(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    q, p = quantize(xp, x, axes, SUM_BITS)
    return xp.f64(q), xp.f64(p) * 2.0**-SUM_BITS


def wide(x: Tensor) -> Tensor:
    """A float64 tensor of this shape, whose numbers nobody reads."""
    return x if x.dtype == torch.float64 else torch.empty(1, dtype=torch.float64, device=x.device).expand(x.shape)


def zeros(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=torch.float64, device=x.device)


def plus(self: Tensor, x: Tensor, add: Callable[[Tensor], Tensor]) -> Tensor:
    """self and what is added, rounded once more."""
    total = added(x, add)
    return (single(self) + total.to(single(self).dtype)).to(self.dtype)


@define("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return plus(self, src, lambda q: zeros(self).scatter_add_(dim, index, q))


@define("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    source = source if alpha == 1 else source * alpha
    return plus(self, source, lambda q: zeros(self).index_add_(dim, index, q))


@define("index_put", "_unsafe_index_put")
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    if not accumulate:
        return aten.index_put(self, indices, values)
    return plus(self, values.to(self.dtype), lambda q: aten.index_put(zeros(self), indices, q, True))


@define("_index_put_impl_")
def index_put_in_place(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    if not accumulate:
        return aten._index_put_impl_(self, indices, values, False, unsafe)
    return self.copy_(index_put(self, indices, values, True))


@define("index_put_")
def index_put_(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    if not accumulate:
        return aten.index_put_(self, indices, values)
    return self.copy_(index_put(self, indices, values, True))


@define("embedding_dense_backward")
def embedding_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    size = grad_output.shape[-1]
    rows, index = grad_output.reshape(-1, size), indices.reshape(-1)
    if padding_idx >= 0:
        rows = rows.masked_fill((index == padding_idx)[:, None], 0.0)
    if scale_grad_by_freq:
        rows = rows / index.bincount(minlength=num_weights)[index][:, None]
    table = torch.zeros(num_weights, size, dtype=torch.float64, device=rows.device)
    return added(rows, lambda q: table.clone().index_add_(0, index, q)).to(grad_output.dtype)


def _windows(name: str, likes: Sequence[int] = (0,)) -> None:
    """A backward pass that only adds numbers of its first argument up; of tensors at `likes` only the shape counts."""
    operation = getattr(aten, name)

    @define(name)
    def backward(grad_output: Tensor, *arguments: Any, **options: Any) -> Tensor:
        given = [wide(each) if place in likes else each for place, each in enumerate(arguments)]
        return added(grad_output, lambda q: operation(q, *given, **options)).to(grad_output.dtype)


for _name in ("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"):
    _windows(_name)
for _name in ("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "fractional_max_pool2d_backward"):
    _windows(_name)
for _size in "123":
    _windows(f"reflection_pad{_size}d_backward")
    _windows(f"replication_pad{_size}d_backward")
for _name in ("col2im", "unfold_backward"):
    _windows(_name, likes=())


@special("scatter")
def scatter(operation: OpOverload, name: str) -> Function:
    """PyTorch's own kernel, where numbers are only moved."""
    if "reduce" in name:
        return refusal(operation, name)
    return guard(operation, name)
