"""Sums of numbers that meet: scatter, embedding, overlapping windows.

PyTorch's kernels add them one by one, in an order that a device chooses. Here the numbers are integers on one grid first:
float64 holds their sums exactly, so PyTorch's own kernels add them in any order.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import sums
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_float32, cast_back

aten = torch.ops.aten


def total(x: Tensor, add: Callable[[Tensor], Tensor]) -> Tensor:
    """The result of `add`, a function that only adds numbers of x: float64, exact, as if for x on a grid."""
    x = as_float32(x)
    if not x.numel():
        return add(x.double())
    parts, unit, bits = run(sums.sliced, x, axes=tuple(range(x.dim())), numbers=2)
    return sums.joined((parts, unit.reshape(()), bits), add)


def added(x: Tensor, add: Callable[[Tensor], Tensor]) -> Tensor:
    """A sum that `add` makes of x in float64, rounded to the type of x."""
    return rounded(total(x, add), x.dtype)


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 numbers in a type; halves by way of float32, as PyTorch converts them."""
    return x if dtype == torch.float64 else cast_back(x.float(), dtype)


def wide(x: Tensor) -> Tensor:
    """A float64 tensor of this shape, whose numbers nobody reads."""
    return x if x.dtype == torch.float64 else torch.empty(1, dtype=torch.float64, device=x.device).expand(x.shape)


def zeros(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=torch.float64, device=x.device)


def plus(self: Tensor, x: Tensor, add: Callable[[Tensor], Tensor]) -> Tensor:
    """self and what is added, rounded once."""
    return rounded(self.double() + total(x, add), self.dtype)


@define("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return plus(self, src, lambda q: zeros(self).scatter_add_(dim, index, q))


@define("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    source = source if alpha == 1 else source * alpha
    return plus(self, source, lambda q: zeros(self).index_add_(dim, index, q))


@define("bincount")
def bincount(self: Tensor, weights: Tensor, minlength: int = 0) -> Tensor:
    weights = weights if weights.dtype == torch.float32 else weights.double()
    return added(weights, lambda q: self.bincount(q, minlength))


@define("histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts the numbers in each of some equal parts of a range, by float64 arithmetic."""
    x = self.reshape(-1)
    low, high = (float(min), float(max)) if min != max or not x.numel() else (x.min().item(), x.max().item())
    if low == high:
        low, high = low - 1, high + 1
    if not -math.inf < low < high < math.inf:
        return aten.histc(self, bins, min, max)  # which says what is wrong
    x = x[(x >= low) & (x <= high)].double()
    place = ((x - low) * bins / torch.full_like(x, high - low)).long().clamp(max=bins - 1)
    return place.bincount(minlength=bins).to(self.dtype)


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
    if elastic.wanted() and rows.dtype == torch.float32 and rows.numel():
        whole = padding_idx < 0 and not scale_grad_by_freq
        return elastic.of_table(grad_output if whole else None, rows, index, table)
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
for _name in (
    "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward",
    "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward",
):
    _windows(_name)
for _size in "123":
    _windows(f"reflection_pad{_size}d_backward")
    _windows(f"replication_pad{_size}d_backward")
for _name in ("col2im", "unfold_backward"):
    _windows(_name, likes=())
