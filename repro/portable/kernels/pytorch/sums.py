"""Sums of products of PyTorch's tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from repro.portable.arguments import refuse
from repro.portable.definitions.ranks import SingleProcess
from repro.portable.kernels import layout, pairs, products
from repro.portable.kernels.contraction import Axis, Sums, in_float64
from repro.portable.kernels.convolution import Convolution, Operand, Part, forward, grad_images, grad_weight
from repro.portable.kernels.machine import Kernel
from repro.portable.kernels.pairs import in_pairs
from repro.portable.kernels.pytorch.openmp import CompiledKernel, compiled

SMALL = 2**18
"""Products of float64 for which a call of PyTorch's takes longer than the sums."""


@dataclass(frozen=True)
class Stage:
    """A kernel that makes an array from arrays: those given, by number, and those that earlier stages made."""

    kernel: Kernel
    reads: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of a contiguous array."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))


def multiply(a: Tensor, b: Tensor, units: Tensor | None = None, plus: Tensor | None = None) -> Tensor:
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N]; each lies by rows, or by columns.

    With units, float64 [M, 1], and what is added, float32 [N], float32: see products.Product.
    """
    finish = [each.contiguous() for each in (units, plus) if each is not None]
    arrays = [a, b, *finish]
    for stage in of_int16(a, b, len(finish)):
        arrays.append(torch.empty(stage.shape, dtype=stage.dtype, device="cpu"))
        _run(stage.kernel, *(arrays[each] for each in stage.reads), arrays[-1])
    return arrays[-1][..., : b.shape[-1]]


def exact(a: Tensor, b: Tensor) -> list[Stage] | None:
    """The stages of a product of integers, [..., M, K] and [..., K, N] -> float64; None where there are none."""
    if a.dtype == torch.int16:
        return of_int16(a, b)
    *shape, terms = a.shape
    columns = b.shape[-1]
    if a.shape[:-2] != b.shape[:-2] or _work(a, b) > SMALL:
        return None
    both = zip(a.shape[:-2], a.stride(), b.stride(), strict=False)
    axes = (*(Axis(*each) for each in both), Axis(shape[-1], a.stride(-2), 0), Axis(columns, 0, b.stride(-1)))
    axes = (*axes, Axis(terms, a.stride(-1), b.stride(-2)))
    return [Stage(_in_float64(Sums(axes, len(axes) - 1)), (0, 1), (*shape, columns), torch.float64)]


def paired(a: Tensor, b: Tensor) -> bool:
    """True if a product of integers of 13 bits, [..., M, K] and [..., K, N], is faster as int16."""
    fits = pairs.possible() and a.shape[:-2] == b.shape[:-2] and a.shape[-1] <= products.LONGEST
    return fits and _work(a, b) > SMALL


def _work(a: Tensor, b: Tensor) -> int:
    return a.numel() * b.shape[-1]


def rounding(a: Tensor, b: Tensor, *finish: Tensor) -> list[Stage] | None:
    """The stages of a product of int16 that is rounded."""
    return of_int16(a, b, len(finish)) if all(each.is_contiguous() for each in finish) else None


def of_int16(a: Tensor, b: Tensor, finish: int = 0) -> list[Stage]:
    """The stages of a product of int16, [..., M, K] and [..., K, N], into whole tiles: [..., M, N' >= N]."""
    *batch, rows, terms = a.shape
    width, stages, left = products.width(), [], 0
    lines = layout.Lines(tuple(a.shape), a.stride())
    by_rows = a.stride(-1) == 1 or bool(rows % products.ROWS)
    if not a.is_contiguous() or terms % 2:
        panels = layout.panels(lines, 1 if by_rows else products.ROWS)
        stages.append(Stage(panels, (0,), (lines.matrices * rows * 2 * lines.pairs,), torch.int16))
        left = finish + 1 + len(stages)
    wide = -(-b.shape[-1] // width) * width
    if finish and wide > b.shape[-1]:
        raise ValueError(f"what is added to {b.shape[-1]} columns does not fill panels of {width}")
    panels = layout.panels(layout.Lines(tuple(b.mT.shape), b.mT.stride()), width)
    stages.append(Stage(panels, (1,), (lines.matrices * wide * 2 * lines.pairs,), torch.int16))
    right = finish + 1 + len(stages)
    given = products.Product(rows, lines.pairs, wide, by_rows, finish, lines.matrices)
    dtype = torch.float32 if finish else torch.float64
    reads = (left, right, *range(2, 2 + finish))
    return [*stages, Stage(products.product(given), reads, (*batch, rows, wide), dtype)]


def packed(matrix: Tensor) -> Tensor:
    """A matrix of int16, [N, K], as the right one of products with [M, K]: in panels."""
    (columns, terms), width = matrix.shape, products.width()
    result = torch.empty(terms * columns, dtype=torch.int16, device="cpu")
    _run(products.turned(terms, columns, width), matrix, result)
    return result


def rounded(a: Tensor, panels: Tensor, columns: int, units: Tensor, plus: Tensor | None) -> Tensor:
    """The product of [M, K], int16, by rows, and of what is packed, float32 [M, N]: see products.Product."""
    finish = [units, plus] if plus is not None else [units]
    given = products.Product(a.shape[0], a.shape[1] // 2, columns, True, len(finish))
    y = torch.empty(a.shape[0], columns, dtype=torch.float32, device="cpu")
    _run(products.product(given), a, panels, *finish, y)
    return y


def convolve(x: Tensor, weight: Tensor, *how: Any) -> Tensor:
    """Images of I G channels and [O G, h, w, I] -> images of O G channels."""
    x, given = _in_rows(x), Convolution(*how)
    if given.layout.endswith("C") and weight.dtype == torch.float64:  # outputs, of which there are many, in a row
        weight = weight.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    return _sum(forward(_operand(x), _operand(weight), given), x, weight)


def convolve_with(ranks: SingleProcess, x: Tensor, gradient: Tensor, shape: Sequence[int], *how: Any) -> Tensor:
    """The gradient with respect to a weight of this shape."""
    x, gradient = _in_rows(x), _in_rows(gradient)
    return _sum(grad_weight(_operand(x), _operand(gradient), tuple(shape), Convolution(*how), ranks.size), x, gradient)


def convolve_back(gradient: Tensor, weight: Tensor, image: Sequence[int], *how: Any) -> Tensor:
    """The gradient with respect to images of this shape."""
    gradient = _in_rows(gradient)
    paired = weight.dtype == torch.int16
    parts = grad_images(_operand(gradient), tuple(weight.shape), tuple(image), Convolution(*how), paired)
    gradients = []
    for part in parts:
        taps = weight[part.weight].flip(1, 2)
        gradients.append(_sum(part, gradient, taps.permute(1, 2, 3, 0).contiguous() if paired else taps.contiguous()))
    if len(parts) == 1 and gradients[0].shape == tuple(image):
        return gradients[0]
    y = torch.zeros(tuple(image), dtype=torch.float64, device="cpu")
    for part, some in zip(parts, gradients, strict=True):
        y[part.place] = some
    return y


def _sum(part: Part, x: Tensor, other: Tensor) -> Tensor:
    y = torch.empty(part.shape, dtype=torch.float64, device="cpu")
    kernel = in_pairs(part.sums) if x.dtype == torch.int16 else in_float64(part.sums)
    assert kernel is not None  # fit() has said so
    _run(kernel, x, other, y)
    return y


def _run(kernel: Kernel, *arrays: Tensor) -> None:
    made, addresses = code(kernel), [array.data_ptr() for array in arrays]
    if not all(addresses):  # a TorchDispatchMode made something else of what PyTorch's functions gave
        raise refuse("PyTorch", "an array has no memory of its own; call portable functions outside of such modes")
    made(addresses, made.threads())


@cache
def code(kernel: Kernel) -> CompiledKernel:
    """The machine code of a kernel."""
    return compiled(kernel)


@cache
def _in_float64(sums: Sums) -> Kernel:
    """Calls in_float64 once for equal sums."""
    return in_float64(sums)


def _in_rows(x: Tensor) -> Tensor:
    """An image whose last axis is contiguous, as its layout says; other axes of channels-first images are not."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _operand(x: Tensor) -> Operand:
    return Operand(tuple(x.shape), x.stride())
