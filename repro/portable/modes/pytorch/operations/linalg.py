"""PyTorch's operations of linear algebra: signatures of the definitions, in float64.

Derivatives are PyTorch's own: products, triangular systems and solutions by factors, which are defined.
"""

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import linalg, spectral
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import define, replace


@define("linalg_qr")
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    q, r = linalg.qr(Backend, A.double(), mode == "complete")
    return (A.new_empty(0) if mode == "r" else q.to(A.dtype)), r.to(A.dtype)


# --- triangular factors -----------------------------------------------------------------------------------------------


def _place_of(wrong: Tensor) -> Tensor:
    """The place of the first column that is wrong, counted from 1, int32; 0 where there is none."""
    size = wrong.shape[-1]
    behind = torch.where(wrong, torch.arange(size, 0, -1, device=wrong.device), 0)
    most = behind.amax(-1) if size else behind.sum(-1)
    return torch.where(most > 0, size + 1 - most, 0).int()


def _checked(info: Tensor, name: str, check_errors: bool) -> Tensor:
    if check_errors:
        torch._linalg_check_errors(info, name, is_matrix=not info.dim())
    return info


@define("linalg_cholesky_ex")
def cholesky(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factor = linalg.cholesky(Backend, (self.mT if upper else self).double())
    diagonal = linalg.diagonal(Backend, factor)
    info = _checked(_place_of(diagonal.isnan()), "linalg.cholesky_ex", check_errors)
    factor = linalg.only_definite(Backend, factor).to(self.dtype)
    return (factor.mT.contiguous() if upper else factor), info


@define("linalg_lu_factor_ex")
def lu_factor(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = _factored(A, "linalg_lu_factor", pivot)
    info = _checked(_singular(factors), "torch.linalg.lu_factor_ex", check_errors)
    return factors.to(A.dtype), pivots + 1, info


@define("linalg_lu")
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U with P L U = A."""
    factors, _, order = _factored(A, "linalg_lu", pivot)
    return _swaps(order, A.dtype), *_triangles(factors.to(A.dtype))


@define("lu_unpack")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    none = LU_data.new_empty(0)
    swaps = _swaps(_order(LU_pivots, LU_data.shape[-2]), LU_data.dtype) if unpack_pivots else none
    return swaps, *(_triangles(LU_data) if unpack_data else (none, none.clone()))


def _swaps(order: Tensor, dtype: torch.dtype) -> Tensor:
    return (order[..., None, :] == torch.arange(order.shape[-1], device=order.device)[:, None]).to(dtype)


def _triangles(factors: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = factors.shape[-2:]
    size = min(rows, columns)
    ones = torch.eye(rows, size, dtype=factors.dtype, device=factors.device)
    return factors[..., :size].tril(-1) + ones, factors[..., :size, :].triu()


def _order(pivots: Tensor, rows: int) -> Tensor:
    """The order of rows that swaps make, which PyTorch counts from 1."""
    order = torch.arange(rows, dtype=torch.int32, device=pivots.device).expand(*pivots.shape[:-1], rows)
    return linalg.swapped(Backend, order, pivots - 1)


def _factored(A: Tensor, name: str, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    if not pivot:
        raise refuse(name, "factors without pivots have no portable form", "give pivot=True", [A])
    return linalg.lu(Backend, A.double())


def _singular(factors: Tensor) -> Tensor:
    return _place_of(linalg.diagonal(Backend, factors) == 0)


# --- systems ----------------------------------------------------------------------------------------------------------


def _solved(factors: Tensor, order: Tensor, known: Tensor, left: bool, adjoint: bool = False) -> Tensor:
    """X with A X = B, or X A = B, which is A^T X^T = B^T."""
    b = known.double() if left else known.double().mT
    batch = torch.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors, b = factors.expand(*batch, *factors.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    x = linalg.lu_solve(Backend, factors, order.expand(*batch, order.shape[-1]), b, adjoint if left else not adjoint)
    return x if left else x.mT.contiguous()


@define("linalg_solve_triangular")
def solve_triangular(self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with self X = B, or X self = B, which is self^T X^T = B^T."""
    a, b = (self.double(), B.double()) if left else (self.double().mT, B.double().mT)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = b.expand(*batch, *b.shape[-2:])
    x = linalg.triangular_solve(Backend, a, b, lower=upper != left, unit=unitriangular)
    return (x if left else x.mT.contiguous()).to(B.dtype)


@define("linalg_lu_solve")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    return _solved(LU.double(), _order(pivots, LU.shape[-1]), B, left, adjoint).to(B.dtype)


@define("_linalg_solve_ex")
def solve(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution, and what its gradient takes: the factors, the swaps, the place of a pivot that is 0."""
    factors, pivots, order = _factored(A, "linalg_solve")
    info = _checked(_singular(factors), "torch.linalg.solve_ex", check_errors)
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    x = _solved(factors, order, B[..., None] if vector else B, left or vector)
    x = x[..., 0] if vector else x
    return x.to(B.dtype), factors.to(A.dtype), pivots + 1, info


@define("linalg_inv_ex")
def inverse(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factors, _, order = _factored(A, "linalg_inv")
    info = _checked(_singular(factors), "linalg.inv_ex", check_errors)
    return _solved(factors, order, linalg.identity(Backend, factors, *A.shape[-2:]), left=True).to(A.dtype), info


@define("cholesky_solve")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with L L^T X = self."""
    batch = torch.broadcast_shapes(self.shape[:-2], input2.shape[:-2])
    factor = (input2.mT if upper else input2).double().expand(*batch, *input2.shape[-2:])
    b = self.double().expand(*batch, *self.shape[-2:])
    return linalg.cholesky_solve(Backend, factor, b).to(self.dtype)


@define("cholesky_inverse")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    factor = (self.mT if upper else self).double()
    return linalg.cholesky_solve(Backend, factor, linalg.identity(Backend, factor, *self.shape[-2:])).to(self.dtype)


# --- determinants -----------------------------------------------------------------------------------------------------
# PyTorch's gradient takes factors of the transposed matrix where the matrix is contiguous. It always is, so that its layout
# changes no bit.


def _for_gradient(A: Tensor) -> tuple[Tensor, Tensor]:
    factors, pivots, _ = linalg.lu(Backend, (A.mT if A.is_contiguous() else A).double())
    return factors.to(A.dtype), pivots + 1


@define("_linalg_det")
def determinant(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The determinant, and what its gradient takes: factors and swaps."""
    factors, pivots, _ = _factored(A, "linalg_det")
    return linalg.determinant(Backend, factors, pivots).to(A.dtype), *_for_gradient(A)


@define("_linalg_slogdet")
def log_determinant(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The sign and the logarithm of the size, and what their gradient takes: factors and swaps."""
    factors, pivots, _ = _factored(A, "linalg_slogdet")
    sign, size = linalg.log_determinant(Backend, factors, pivots)
    return sign.to(A.dtype), size.to(A.dtype), *_for_gradient(A)


@replace("linalg_det")
def det(A: Tensor) -> Tensor:
    return torch._linalg_det(A.contiguous())[0]


@replace("linalg_slogdet")
def slogdet(A: Tensor) -> tuple[Tensor, Tensor]:
    return torch._linalg_slogdet(A.contiguous())[:2]


# --- eigenvalues ------------------------------------------------------------------------------------------------------


@define("_linalg_eigh")
def eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Eigenvalues from the smallest, eigenvectors as columns."""
    vectors, values = spectral.eigh(Backend, A.double(), lower=UPLO.upper() == "L")
    # a copy: of an empty matrix they would be that itself, and have no gradient
    return values.to(A.dtype, copy=True), (vectors.to(A.dtype, copy=True) if compute_v else A.new_empty(0))


@define("_linalg_svd")
def svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors as columns, singular values from the largest, vectors as rows."""
    left, values, right = (each.to(A.dtype) for each in spectral.svd(Backend, A.double(), full_matrices))
    return (left, values, right) if compute_uv else (A.new_empty(0), values, A.new_empty(0))
