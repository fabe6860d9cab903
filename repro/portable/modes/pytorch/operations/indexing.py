"""Sums of numbers that meet: scatter, embedding, overlapping windows.

PyTorch's kernels add them one by one, in an order that a device chooses. Here the numbers are integers on grids first:
float64 holds their sums exactly, so PyTorch's own kernels add them in any order. Each target has a grid, and windows
have one for each plane, whose numbers alone meet.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import sums, targets
from repro.portable.definitions.grids import check_length
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_float32, cast_back

aten = torch.ops.aten


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 numbers in a type; halves by way of float32, as PyTorch converts them."""
    return x if dtype == torch.float64 else cast_back(x.float(), dtype)


# --- at an index ------------------------------------------------------------------------------------------------------


def by_rows(x: Tensor, dim: int, index: Tensor, size: int, after: int | None = None) -> Tensor:
    """Numbers of x added up by their index [N] along an axis, which has this size then: float64.

    Each row of the result has a grid: what it has in the axes after this one, or from `after` on.
    """
    x, dim, rows = as_float32(x), dim % x.dim(), index.long()
    shape = *x.shape[:dim], size, *x.shape[dim + 1 :]
    if not x.numel():
        return torch.zeros(shape, dtype=torch.float64, device=x.device).index_add_(dim, rows, x.double())
    axes = tuple(range(dim + 1 if after is None else after, x.dim()))
    places = rows.view(-1, *[1] * (x.dim() - 1 - dim)).expand(_kept(x.shape, axes))
    return _added(x, dim, shape, axes, places, rows)


def by_places(x: Tensor, dim: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    """Numbers of x added up by their index along an axis, as scatter_add does, to an array of this shape: float64.

    Each number of the result has a grid.
    """
    if not shape:
        return by_places(x.reshape(-1), 0, index.reshape(-1), (1,)).view(())
    x = as_float32(x)[tuple(slice(size) for size in index.shape)]
    if not x.numel():
        return torch.zeros(shape, dtype=torch.float64, device=x.device).scatter_add_(dim, index, x.double())
    dim %= x.dim()
    return _added(x, dim, shape, (), index, _one_index(index, dim, shape))


def _one_index(index: Tensor, dim: int, shape: Sequence[int]) -> Tensor | None:
    """The index [N] that an index repeats along all other axes, without memory for it: rows are faster, of the same bits."""
    others = [axis for axis in range(index.dim()) if axis != dim]
    if any(index.stride(axis) or index.shape[axis] != shape[axis] for axis in others):
        return None
    return index[tuple(0 if axis in others else slice(None) for axis in range(index.dim()))]


PIECE = 2**18
"""Numbers that are added at a time, so that what is made of them stays in a processor's cache."""


def _added(
    x: Tensor, dim: int, shape: Sequence[int], axes: tuple[int, ...], index: Tensor, rows: Tensor | None
) -> Tensor:
    """The definition in targets.py, by kernels and in pieces. `rows` [N] is the index of whole rows, if there is one."""
    terms = x.shape[dim]
    if x.dtype != torch.float64:
        check_length(terms, targets.SUM_BITS)
    step = terms if dim or not x.is_cpu else max(1, PIECE * terms // x.numel())
    pieces = [(begin, min(step, terms - begin)) for begin in range(0, terms, step)]
    most = x.new_zeros(_kept(shape, axes))
    for piece in pieces:
        most.scatter_reduce_(
            dim, index.narrow(dim, *piece), run(targets.magnitudes, x.narrow(dim, *piece), axes), "amax"
        )
    e = run(targets.exponents, most)
    totals: list[Tensor] = []
    for piece in pieces:
        place = index.narrow(dim, *piece) if rows is None else rows.narrow(0, *piece)
        slices = run(
            targets.slices,
            x.narrow(dim, *piece),
            e.gather(dim, place) if rows is None else e.index_select(dim, place),
            terms,
        )
        totals = totals or [torch.zeros(shape, dtype=torch.float64, device=x.device) for _ in slices]
        for total, q in zip(totals, slices, strict=True):
            if rows is None:
                total.scatter_add_(dim, place, q)
            elif not dim and x.is_cpu and x.dim() > 1:  # which is faster there
                total.index_put_((place,), q, accumulate=True)
            else:
                total.index_add_(dim, place, q)
    return run(targets.joined, totals, e, terms)


def _kept(shape: Sequence[int], axes: tuple[int, ...]) -> list[int]:
    """A shape whose axes have size 1."""
    return [1 if axis in axes else size for axis, size in enumerate(shape)]


def plus(self: Tensor, total: Tensor) -> Tensor:
    """self and what is added, rounded once."""
    return rounded(self.double() + total, self.dtype)


@define("scatter_add")
def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return plus(self, by_places(src, dim, index, self.shape))


@define("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    source = source if alpha == 1 else source * alpha
    rest = [axis for axis in range(self.dim()) if axis != dim % max(1, self.dim())]
    if self.dim() != source.dim() or any(self.shape[axis] != source.shape[axis] for axis in rest):
        return aten.index_add(self, dim, index, source)  # which says what is wrong
    if not self.dim():
        return index_add(self.view(1), 0, index.reshape(-1), source.reshape(-1)).view(())
    return plus(self, by_rows(source, dim, index.reshape(-1), self.shape[dim]))


@define("bincount")
def bincount(self: Tensor, weights: Tensor, minlength: int = 0) -> Tensor:
    weights = weights if weights.dtype == torch.float32 else weights.double()
    if not self.numel():
        return self.bincount(weights, minlength)
    return rounded(by_rows(weights, 0, self, max(minlength, int(self.max()) + 1)), weights.dtype)


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
    if elastic.wanted() and rows.dtype == torch.float32 and rows.numel():
        whole = padding_idx < 0 and not scale_grad_by_freq
        table = torch.zeros(num_weights, size, dtype=torch.float64, device=rows.device)
        return elastic.of_table(grad_output if whole else None, rows, index, table)
    return rounded(by_rows(rows, 0, index, num_weights), rows.dtype).to(grad_output.dtype)


# --- in windows -------------------------------------------------------------------------------------------------------


def total(x: Tensor, add: Callable[[Tensor], Tensor], axes: Sequence[int]) -> Tensor:
    """The result of `add`, a function that adds numbers of x along axes alone: float64, exact, on a grid for each plane.

    The axes are the last ones, as many in the result.
    """
    x = as_float32(x)
    if not x.numel():
        return add(x.double())
    return sums.joined(run(sums.sliced, x, axes=tuple(axis % x.dim() for axis in axes), numbers=2), add)


def wide(x: Tensor) -> Tensor:
    """A float64 tensor of this shape, whose numbers nobody reads."""
    return x if x.dtype == torch.float64 else torch.empty(1, dtype=torch.float64, device=x.device).expand(x.shape)


def _windows(name: str, axes: int, likes: Sequence[int] = (0,)) -> None:
    """A backward pass that only adds numbers of its first argument up, along the last axes; of tensors at `likes` only the shape counts."""
    operation = getattr(aten, name)

    @define(name)
    def backward(grad_output: Tensor, *arguments: Any, **options: Any) -> Tensor:
        given = [wide(each) if place in likes else each for place, each in enumerate(arguments)]
        result = total(grad_output, lambda q: operation(q, *given, **options), range(-axes, 0))
        return rounded(result, grad_output.dtype)


for _size in (2, 3):
    _windows(f"max_pool{_size}d_with_indices_backward", _size)
    _windows(f"adaptive_max_pool{_size}d_backward", _size)
    _windows(f"fractional_max_pool{_size}d_backward", _size)
for _size in (1, 2, 3):
    _windows(f"reflection_pad{_size}d_backward", _size)
    _windows(f"replication_pad{_size}d_backward", _size)


@define("col2im")
def col2im(self: Tensor, output_size: Sequence[int], kernel_size: Sequence[int], *how: Any) -> Tensor:
    """[N, C h w, L] -> [N, C, H, W], or both without N."""
    planes = self.unflatten(-2, (-1, math.prod(kernel_size)))

    def add(q: Tensor) -> Tensor:
        return aten.col2im(q.flatten(-3, -2), output_size, kernel_size, *how)

    return rounded(total(planes, add, (-2, -1)), self.dtype)


@define("unfold_backward")
def unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """The windows lie along an axis, their numbers along the last one."""
    x, axis = as_float32(grad_in), dim % max(1, len(input_sizes))
    if not x.numel():
        return aten.unfold_backward(grad_in, input_sizes, dim, size, step)
    axes = tuple(sorted({axis, x.dim() - 1}))  # one of them for a single number, which has no axis
    parts, unit, bits = run(sums.sliced, x, axes=axes, numbers=2)
    return rounded(
        sums.joined(
            (parts, unit.squeeze(-1), bits),
            partial(aten.unfold_backward, input_sizes=input_sizes, dim=dim, size=size, step=step),
        ),
        grad_in.dtype,
    )
