"""Sums of products of PyTorch's tensors."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from repro.portable.arguments import refuse
from repro.portable.kernels import products
from repro.portable.kernels.contraction import in_float64
from repro.portable.kernels.convolution import How, Operand, Part, forward, of_images, of_weight
from repro.portable.kernels.machine import Loops
from repro.portable.kernels.pairs import in_pairs
from repro.portable.pytorch.compiler.openmp import Compiled, compiled
from repro.run.ranks import SingleProcess


def multiply(a: Tensor, b: Tensor, units: Tensor | None = None, plus: Tensor | None = None) -> Tensor:
    """The product of matrices of int16, [M, K] and [K, N] -> float64 [M, N]; each lies by rows, or by columns.

    With units, float64 [M, 1], and what is added, float32 [N], float32: see products.Product.
    """
    (rows, terms), (_, columns), width = a.shape, b.shape, products.width()
    by_rows = a.stride(1) == 1 or rows % products.ROWS > 0
    left = a.contiguous() if by_rows else _panels(a.t(), products.ROWS)
    right = _panels(b, width) if b.stride(1) == 1 else packed(b.t())
    finish = [each.contiguous() for each in (units, plus) if each is not None]
    given = products.Product(rows, terms // 2, columns, by_rows, len(finish))
    y = torch.empty(rows, columns, dtype=torch.float32 if finish else torch.float64, device="cpu")
    _run(products.product(given), left, right, *finish, y)
    return y


def packed(matrix: Tensor) -> Tensor:
    """A matrix of int16, [N, K], as the right one of products with [M, K]: in panels."""
    (columns, terms), width = matrix.shape, products.width()
    return matrix.view(torch.int32).view(columns // width, width, terms // 2).transpose(1, 2).contiguous()


def rounded(a: Tensor, panels: Tensor, columns: int, units: Tensor, plus: Tensor | None) -> Tensor:
    """The product of [M, K], int16, by rows, and of what is packed, float32 [M, N]: see products.Product."""
    finish = [units, plus] if plus is not None else [units]
    given = products.Product(a.shape[0], a.shape[1] // 2, columns, True, len(finish))
    y = torch.empty(a.shape[0], columns, dtype=torch.float32, device="cpu")
    _run(products.product(given), a, panels, *finish, y)
    return y


def _panels(x: Tensor, tile: int) -> Tensor:
    (terms, columns), x = x.shape, x.contiguous()
    found = torch.empty(terms * columns, dtype=torch.int16, device="cpu")
    _run(products.panels(terms, columns, tile), x, found)
    return found


def convolve(x: Tensor, weight: Tensor, *how: Any) -> Tensor:
    """Images of I G channels and [O G, h, w, I] -> images of O G channels."""
    x, given = _in_rows(x), How(*how)
    if given.layout.endswith("C") and weight.dtype == torch.float64:  # outputs, of which there are many, in a row
        weight = weight.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    return _sum(forward(_operand(x), _operand(weight), given), x, weight)


def convolve_with(ranks: SingleProcess, x: Tensor, gradient: Tensor, shape: Sequence[int], *how: Any) -> Tensor:
    """The gradient with respect to a weight of this shape."""
    x, gradient = _in_rows(x), _in_rows(gradient)
    return _sum(of_weight(_operand(x), _operand(gradient), tuple(shape), How(*how), ranks.size), x, gradient)


def convolve_back(gradient: Tensor, weight: Tensor, image: Sequence[int], *how: Any) -> Tensor:
    """The gradient with respect to images of this shape."""
    gradient = _in_rows(gradient)
    paired = weight.dtype == torch.int16
    parts = of_images(_operand(gradient), tuple(weight.shape), tuple(image), How(*how), paired)
    found = []
    for part in parts:
        taps = weight[part.weight].flip(1, 2)
        found.append(_sum(part, gradient, taps.permute(1, 2, 3, 0).contiguous() if paired else taps.contiguous()))
    if len(parts) == 1 and found[0].shape == tuple(image):
        return found[0]
    y = torch.zeros(tuple(image), dtype=torch.float64, device="cpu")
    for part, some in zip(parts, found, strict=True):
        y[part.place] = some
    return y


def _sum(part: Part, x: Tensor, other: Tensor) -> Tensor:
    y = torch.empty(part.shape, dtype=torch.float64, device="cpu")
    loops = in_pairs(part.sums) if x.dtype == torch.int16 else in_float64(part.sums)
    assert loops is not None  # fit() has said so
    _run(loops, x, other, y)
    return y


def _run(loops: Loops, *arrays: Tensor) -> None:
    code, addresses = _compiled(loops), [array.data_ptr() for array in arrays]
    if not all(addresses):  # a TorchDispatchMode made something else of what PyTorch's functions gave
        raise refuse("PyTorch", "an array has no memory of its own; call portable functions outside of such modes")
    code(addresses, code.threads())


@cache
def _compiled(loops: Loops) -> Compiled:
    return compiled(loops)


def _in_rows(x: Tensor) -> Tensor:
    """As its layout says, the last axis in a row: the others of PyTorch's channels-first images do not lie so."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _operand(x: Tensor) -> Operand:
    return Operand(tuple(x.shape), x.stride())
