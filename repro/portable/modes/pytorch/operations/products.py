"""Products of matrices and vectors."""

from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import products
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_given


@define("mm")
@as_given
def mm(self: Tensor, mat2: Tensor, *, slices: int) -> Tensor:
    if _over_samples(self, mat2):
        return elastic.of_rows(self.t(), mat2).t()
    return product(self, mat2, slices)


@define("bmm")
@as_given
def bmm(self: Tensor, mat2: Tensor, *, slices: int) -> Tensor:
    if self.shape[0] == 1 and _over_samples(self, mat2):
        return elastic.of_rows(self[0].t(), mat2[0]).t()[None]
    return product(self, mat2, slices)


def _over_samples(a: Tensor, b: Tensor) -> bool:
    """True for the product by which autograd adds up the gradient of a weight: neither operand is one."""
    if not elastic.wanted() or a.dtype != torch.float32 or not a.numel() or not b.numel():
        return False
    return not elastic.is_parameter(a) and not elastic.is_parameter(b)


@define("addmm")
@as_given
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    if alpha == beta == 1 and self.dim() == 1 and mat1.numel() and mat2.numel() and not weights_in(mat1)[1]:
        return run(products.matmul, mat1, mat2, self.expand(mat2.shape[1]), slices=slices)
    return plus(product(mat1, mat2, slices), self, beta, alpha)


@define("baddbmm")
@as_given
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    return plus(product(batch1, batch2, slices), self, beta, alpha)


@define("addmv")
@as_given
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, slices: int) -> Tensor:
    return plus(product(mat, vec[:, None], slices)[:, 0], self, beta, alpha)


@compose("addr")
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return plus(vec1[:, None] * vec2, self, beta, alpha)


@compose("addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    rows = batch1.transpose(0, 1).reshape(batch1.shape[1], -1)
    return torch.addmm(self, rows, batch2.reshape(-1, batch2.shape[2]), beta=beta, alpha=alpha)


@define("dot", "vdot")
@as_given
def dot(self: Tensor, tensor: Tensor, *, slices: int) -> Tensor:
    return product(self[None], tensor[:, None], slices)[0, 0]


@define("mv")
@as_given
def mv(self: Tensor, vec: Tensor, *, slices: int) -> Tensor:
    return product(self, vec[:, None], slices)[:, 0]


def product(a: Tensor, b: Tensor, slices: int) -> Tensor:
    """[..., M, K] and [..., K, N] -> [..., M, N], of float32 or float64."""
    if not a.numel() or not b.numel():
        return torch.zeros(*a.shape[:-1], b.shape[-1], dtype=a.dtype, device=a.device)
    found, many = weights_in(a)
    if many == found.numel():
        return run(products.weighted, a, b, slices=slices)
    y = run(products.matmul if a.dim() == 2 else products.batched, a, b, slices=slices)
    return torch.where(found, run(products.weighted, a, b, slices=slices), y) if many else y


def weights_in(a: Tensor) -> tuple[Tensor, int]:
    """Which matrices of [..., M, K] are weights, bool [..., 1, 1], and how many; of a single matrix which rows, [M, 1].

    The rows of a single one are of other samples, mostly. While a CUDA graph is captured nothing can be counted: -1.
    """
    found = run(products.are_weights, a) if a.dim() > 2 else run(products.are_weights, a[:, None])[:, 0]
    return found, -1 if a.is_cuda and torch.cuda.is_current_stream_capturing() else int(found.sum())


def plus(y: Tensor, added: Tensor, beta: Any, alpha: Any) -> Tensor:
    """alpha y + beta added, each operation rounded; with beta 0 what is added counts for nothing, NaN neither."""
    y = y * alpha if alpha != 1 else y
    if beta == 0:
        return y
    return y + (added * beta if beta != 1 else added)
