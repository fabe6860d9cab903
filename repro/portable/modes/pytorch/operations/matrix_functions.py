"""PyTorch's functions of whole matrices: reflections, pseudoinverses, least squares, the exponential.

Derivatives are PyTorch's own, as in linalg.py.
"""

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import linalg, matrix_functions, products, spectral
from repro.portable.definitions.functions.exponential import exp
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.operations.functions import evaluate
from repro.portable.modes.pytorch.operations.random import check

# --- reflections ------------------------------------------------------------------------------------------------------


@define("geqrf")
def reflections(self: Tensor) -> tuple[Tensor, Tensor]:
    factors, tau = linalg.reflections(Backend, self.double())
    return factors.to(self.dtype), tau.to(self.dtype)


@define("linalg_householder_product")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    ones = linalg.identity(Backend, input.double(), *input.shape[-2:])
    return linalg.reflected(Backend, input.double(), tau.double(), ones).to(input.dtype)


@define("ormqr")
def multiply_reflections(
    self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q C, or C Q, or of the transposed Q."""
    x = (input3 if left else input3.mT).double()
    x = linalg.reflected(Backend, self.double(), input2.double(), x, transpose if left else not transpose)
    return (x if left else x.mT.contiguous()).to(self.dtype)


# --- matrices of any rank, exponentials -------------------------------------------------------------------------------


@define("linalg_pinv.atol_rtol_tensor")
def pseudoinverse(
    self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """That of singular values above the larger one of atol and of rtol times the largest."""
    if not self.numel():
        return self.mT.contiguous()
    if hermitian:
        vectors, values = spectral.eigh(Backend, self.double())
        left, right = vectors, vectors.mT
    else:
        left, values, right = spectral.svd(Backend, self.double())
    if rtol is None:
        share = torch.finfo(self.dtype).eps * max(self.shape[-2:])
        rtol = torch.where(atol > 0, 0.0, share) if atol is not None else torch.tensor(share)
    absolute = torch.zeros(()) if atol is None else atol
    least = torch.maximum(absolute.double(), rtol.double() * values.abs().amax(-1))[..., None]
    return matrix_functions.pseudoinverse(
        Backend, left, matrix_functions.inverse_values(Backend, values, least), right
    ).to(self.dtype)


DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")
"""Names of least squares: they say which results are given. `gels` takes every singular value for one that counts."""


@define("linalg_lstsq")
def least_squares(
    self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution of the least norm, and what the driver tells beside: squares of what is left, rank, singular values."""
    check(self.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.")
    check(driver in DRIVERS, "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = b.dim() == self.dim() - 1
    check(vector or b.dim() == self.dim(), "torch.linalg.lstsq: input.dim() - other.dim() must be 0 or 1")
    fits = b.dim() > 0 and self.shape[-2] == b.shape[-1 if vector else -2]
    check(fits, "torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    known = b[..., None] if vector else b
    batch = torch.broadcast_shapes(self.shape[:-2], known.shape[:-2])
    rows, columns = self.shape[-2:]
    none = self.new_empty(0)
    if not self.numel() or not known.numel():
        x = self.new_zeros(*batch, columns, known.shape[-1])
        return (
            (x[..., 0] if vector else x),
            none,
            torch.zeros(batch, dtype=torch.int64, device=self.device),
            none.clone(),
        )
    a = self.double()
    left, values, right = spectral.svd(Backend, a)
    share = torch.finfo(self.dtype).eps * max(rows, columns) if rcond is None or rcond < 0 else rcond
    least = values[..., :1] * (0.0 if driver == "gels" else share)
    rank = (values > least).sum(-1)
    if driver == "gels":
        info = torch.where(rank < values.shape[-1], rank + 1, 0).int()
        torch._linalg_check_errors(info, "torch.linalg.lstsq", is_matrix=not info.dim())
    inverse = matrix_functions.inverse_values(Backend, values, least)
    wide = known.double().expand(*batch, *known.shape[-2:])
    left, inverse, right = (each.expand(*batch, *each.shape[-2:]) for each in (left, inverse[..., None], right))
    x = matrix_functions.least_squares(Backend, left, inverse[..., 0], right, wide)
    residuals = none
    if rows > columns and driver in ("gels", "gelsd", "gelss") and bool((rank == columns).all()):
        rest = products.batched(Backend, a.expand(*batch, rows, columns), x) - wide
        residuals = linalg.total(Backend, rest * rest).to(self.dtype)
    x = x.to(self.dtype)
    ranks = torch.empty(0, dtype=torch.int64, device=self.device) if driver == "gels" else rank
    sizes = values.to(self.dtype) if driver in ("gelsd", "gelss") else none.clone()
    return (x[..., 0] if vector else x), residuals, ranks, sizes


@define("linalg_matrix_exp")
def exponential(self: Tensor) -> Tensor:
    if self.shape[-1] == 1 or not self.numel():
        return evaluate(exp, self)
    return matrix_functions.exponential(Backend, self.double()).to(self.dtype)
