"""golden/operations.txt in PyTorch: rows of cases, and operations that other frameworks have as well.

Images are [B, H, W, C].
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

import repro.portable.pytorch as portable
from programs.golden_cases import (
    cases,
    exceptions,
    pytorch_elements,
    pytorch_indices,
    pytorch_layers,
    pytorch_losses,
    pytorch_windows,
)
from programs.golden_cases.cases import DRAWS, Case, drawn, filler, upstream
from programs.golden_cases.table import Row
from repro.portable.modes.pytorch.dispatcher import dispatch, tables
from repro.portable.modes.pytorch.dispatcher.exact import base

OTHERS = (pytorch_elements, pytorch_losses, pytorch_windows, pytorch_indices, pytorch_layers)
"""Files of operations that PyTorch alone has."""
CASES: dict[str, Case] = {}
case = filler(CASES)

# --- elements ---------------------------------------------------------------------------------------------------------

for _name in (
    *("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    *("cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma", "digamma", "i0"),
    *("square", "relu", "reciprocal", "atan2", "pow", "xlogy", "maximum", "minimum", "add", "sub", "mul", "div"),
):
    case(_name, getattr(torch, _name))
for _name in ("i0e", "i1", "i1e", "ndtri", "xlog1py"):
    case(_name, getattr(torch.special, _name))
for _name in ("elu", "selu", "softplus", "softsign"):
    case(_name, getattr(F, _name))
case("exp-large", torch.exp)
case("pow-number", lambda x: x**1.7)

# --- products and sums ------------------------------------------------------------------------------------------------

case("matmul", torch.mm)
case("matmul-batched", torch.bmm)
case("matmul-large", torch.mm)
case("matmul-vector", torch.mv)
case("dot", torch.dot)
case("einsum", lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b))
case("complex-mul", lambda a, b: torch.view_as_real(torch.complex(a, b) * torch.complex(b, a)))
case("complex-matmul", lambda a, b: torch.view_as_real(torch.complex(a, -a) @ torch.complex(b, b + b)))
for _name in cases.COMPLEX:
    case(f"complex-{_name}", lambda a, b, name=_name: torch.view_as_real(getattr(torch, name)(torch.complex(a, b))))
for _name in cases.BESSEL:
    _theirs = f"scaled_modified_bessel_{_name[:-1]}" if _name.endswith("e") else f"bessel_{_name}"
    _theirs = f"modified_{_theirs}" if _name[0] == "k" and not _name.endswith("e") else _theirs
    case(_name, getattr(torch.special, _theirs), gradient=False)
case("zeta", torch.special.zeta, gradient=False)
case("igamma", torch.igamma, gradient=False)
case("igammac", torch.igammac, gradient=False)
case("gamma_slope", torch._standard_gamma_grad, gradient=False)
case("polygamma", lambda x: torch.polygamma(2, x))
case("rfft-long", lambda x: torch.view_as_real(torch.fft.rfft(x)))
case("fft-prime", lambda a, b: torch.view_as_real(torch.fft.fft(torch.complex(a, b))))
case("rfft2", lambda x: torch.view_as_real(torch.fft.rfft2(x)))
case("sum", lambda x: x.sum(1))
case("sum-all", torch.sum)
case("sum-axes", lambda x: x.sum((0, 2)))
case("sum-large", lambda x: x.sum(1))
case("mean", lambda x: x.mean(0))
case("mean-all", torch.mean)
case("prod", lambda x: x.prod(1))
case("prod-all", torch.prod)
case("norm", lambda x: torch.linalg.vector_norm(x, dim=1))
case("cumsum", lambda x: x.cumsum(1))
case("cumsum-backward", lambda x: x.flip(1).cumsum(1).flip(1))
case("cumprod", lambda x: x.cumprod(1))
case("cumlogsumexp", lambda x: x.logcumsumexp(1))
case("cumlogsumexp-forward", lambda x: x.logcumsumexp(1), gradient=False)
case("logsumexp", lambda x: x.logsumexp(1))
case("var", lambda x: x.var(1, correction=0))
case("std", lambda x: x.std(1, correction=0))
case("max", lambda x: x.amax(1))
case("softmax", lambda x: F.softmax(x, -1))
case("softmax-large", lambda x: F.softmax(x, -1))
case("log_softmax", lambda x: F.log_softmax(x, -1))
case("cross_entropy", lambda x, labels: F.cross_entropy(x, labels, reduction="none"))
case("cross_entropy-shares", lambda x, shares: F.cross_entropy(x, shares, reduction="none"))

# --- windows ----------------------------------------------------------------------------------------------------------


def planes(x: Tensor) -> Tensor:
    """[B, ..., C] -> [B, C, ...]: plain memory remains so."""
    result = x.movedim(-1, 1)
    return result.contiguous() if x.is_contiguous() else result


def pixels(x: Tensor) -> Tensor:
    return x.movedim(1, -1)


def kernel(w: Tensor) -> Tensor:
    """[..., C, K] -> [K, C, ...]."""
    result = w.movedim((-1, -2), (0, 1))
    return result.contiguous() if w.is_contiguous() else result


def convolved(function: Callable[..., Tensor], **options: Any) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, w: pixels(function(planes(x), kernel(w), **options))


def transposed(function: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """From [..., C] to [..., K]."""
    return lambda x, w: pixels(function(planes(x), kernel(w.transpose(-1, -2)), stride=2))


def pooled(function: Callable[..., Tensor], *sizes: int) -> Callable[[Tensor], Tensor]:
    return lambda x: pixels(function(planes(x), *sizes))


def normalized(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return pixels(F.batch_norm(planes(x), None, None, scale, shift, training=True, eps=2.0**-10))


def fixed(x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return pixels(F.batch_norm(planes(x), mean.detach(), variance.detach(), scale, shift, eps=2.0**-10))


def resized(mode: str, *size: int) -> Callable[[Tensor], Tensor]:
    return lambda x: pixels(F.interpolate(planes(x), size=size, mode=mode))


case("conv1d", convolved(F.conv1d))
case("conv1d-dilated", convolved(F.conv1d, dilation=2))
case("conv2d", convolved(F.conv2d))
case("conv2d-stride", convolved(F.conv2d, stride=2))
case("conv2d-same", convolved(F.conv2d, padding=1))
case("conv2d-dilated", convolved(F.conv2d, dilation=2))
case("conv2d-grouped", convolved(F.conv2d, groups=2))
case("conv2d-depthwise", lambda x, w: pixels(F.conv2d(planes(x), kernel(w.transpose(2, 3)), groups=4)))
case("conv2d-point", convolved(F.conv2d))
case("conv2d-large", convolved(F.conv2d, padding=1))
case("conv3d", convolved(F.conv3d))
case("conv3d-stride", convolved(F.conv3d, stride=2))
for _d in (1, 2, 3):
    case(f"conv_transpose{_d}d", transposed(getattr(F, f"conv_transpose{_d}d")))
case("avg_pool2d", pooled(F.avg_pool2d, 2))
case("avg_pool2d-overlap", pooled(F.avg_pool2d, 3, 2))
case("avg_pool3d", pooled(F.avg_pool3d, 2))
case("max_pool2d", pooled(F.max_pool2d, 3, 2))
case("max_pool2d-ties", pooled(F.max_pool2d, 3, 2))
case("max_pool3d", pooled(F.max_pool3d, 2, 1))
case("batch_norm", normalized)
case("batch_norm-fixed", fixed)
case("bilinear", resized("bilinear", 5, 9))
case("bilinear-larger", resized("bilinear", 13, 9))
case("nearest", resized("nearest-exact", 5, 9))

# --- by index, linear algebra -----------------------------------------------------------------------------------------

case("embedding", lambda w, i: F.embedding(i, w))
case("index_add", lambda x, i, y: x.index_add(0, i, y))
case("index_sub", lambda x, i, y: x.index_add(0, i, y, alpha=-1))
case("index_set", lambda x, i, y: x.index_copy(0, i, y), gradient=False)
case("segment_sum", lambda x, i: x.new_zeros(11, 3).index_add(0, i, x))
case("gather", lambda x, i: x.index_select(0, i))
case("pad-mirror", lambda x: F.pad(x[None], (2, 3), "reflect")[0])
case("sparse-product", lambda i, x, b: torch.sparse_coo_tensor(torch.stack([torch.arange(8), i]), x, (8, 9)) @ b)
case("sparse-product-rows", lambda i, x, b: torch.sparse_csr_tensor(torch.arange(9), i, x, (8, 9)) @ b)
case("qr", torch.linalg.qr)
case("cholesky", torch.linalg.cholesky)
case("triangular_solve", lambda a, b: torch.linalg.solve_triangular(a, b, upper=False))
case("solve", torch.linalg.solve)
case("inverse", torch.linalg.inv)
case("determinant", torch.linalg.det)
case("slogdet", torch.linalg.slogdet)
case("eigh", torch.linalg.eigh)
case("svd", lambda x: torch.linalg.svd(x, full_matrices=False))
case("reflections", torch.geqrf, gradient=False)
case("householder_product", torch.linalg.householder_product)
case("ormqr", torch.ormqr, gradient=False)
case("lstsq", lambda a, b: torch.linalg.lstsq(a, b).solution)

# --- rows -------------------------------------------------------------------------------------------------------------


def contiguous(x: np.ndarray) -> Tensor:
    return torch.from_numpy(x.copy())


def strided(x: np.ndarray) -> Tensor:
    """Every other number of a larger array, with its axes turned around."""
    turned = np.zeros((*x.shape[:0:-1], 2 * x.shape[0]), x.dtype) if x.ndim else np.zeros(2, x.dtype)
    turned[..., ::2] = x.T
    result = torch.from_numpy(turned)[..., ::2]
    return result.permute(*reversed(range(x.ndim))) if x.ndim else result[0]


MADE: dict[str, Callable[[np.ndarray], Tensor]] = {"contiguous": contiguous, "strided": strided}


def tensors(results: Any) -> list[Tensor]:
    return [
        each for each in (results if isinstance(results, (tuple, list)) else (results,)) if isinstance(each, Tensor)
    ]


def computed(name: str, case: Case, dtype: str, layout: str) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
    """The results and gradients of each draw."""
    for draw in range(DRAWS):
        torch.manual_seed(draw)
        given = [MADE[layout](each) for each in drawn(name, case.inputs, draw, dtype)]
        leaves = [each.requires_grad_() for each in given if each.is_floating_point() and case.gradient]
        results = tensors(case.function(*given))
        slopes: list[np.ndarray] = []
        differentiable = [each for each in results if each.requires_grad]
        if differentiable:
            last = [MADE[layout](slope(i, y.shape, draw, str(y.dtype)[6:])) for i, y in enumerate(differentiable)]
            gradients = torch.autograd.grad(differentiable, leaves, last, materialize_grads=True)
            slopes = [numbers(each) for each in gradients]
        yield [numbers(each) for each in results], slopes


def slope(place: int, shape: torch.Size, draw: int, dtype: str) -> np.ndarray:
    """The gradient of a result."""
    return upstream(draw, dtype)[place : place + shape.numel()].reshape(shape)


def numbers(x: Tensor) -> np.ndarray:
    return x.detach().numpy()


def rows(only: str = "") -> dict[Row, str]:
    portable.enable()
    every = CASES | {name: case for file in OTHERS for name, case in file.CASES.items()}
    return cases.rows(every, computed, (portable.RefusedError,), only)


def missing() -> list[str]:
    """Definitions of the mode's registry that no row computed, and that are no exceptions."""
    known = {*tables.definitions, *tables.replacements, *tables.specials}
    counted = {*dispatch.counts, *(base(each) for each in dispatch.counts if base(each) in tables.specials)}
    return exceptions.unknown("pytorch", known - counted)
