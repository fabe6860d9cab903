"""Linear algebra of PyTorch under the mode: errors beside LAPACK in float64, and what is refused, as JSON."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, linalg

import repro.portable.pytorch as portable
from repro.portable.modes.common.refusal import RefusedError


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.Generator(np.random.Philox(seed)).standard_normal(shape))


A, B, C = drawn(1, 3, 9, 9), drawn(2, 3, 9, 4), drawn(3, 3, 4, 9)
TALL, WIDE = A[..., :5], A[:, :5]
POSITIVE = A @ A.mT + torch.eye(9)
LOWER, UPPER = A.tril() + 9 * torch.eye(9), A.triu() + 9 * torch.eye(9)


def factors(x: Tensor) -> Tensor:
    p, lower, upper = linalg.lu(x)
    return p @ lower @ upper


def unpacked(x: Tensor) -> Tensor:
    p, lower, upper = torch.lu_unpack(*linalg.lu_factor(x))
    return p @ lower @ upper


def by_factors(x: Tensor, adjoint: bool, left: bool) -> Tensor:
    return linalg.lu_solve(*linalg.lu_factor(x), B if left else C, adjoint=adjoint, left=left)


def spread(values: Tensor, vectors: Tensor) -> Tensor:
    """A function of a symmetric matrix, by its eigenvalues."""
    return (vectors * values.sin()[..., None, :]) @ vectors.mT


def rank(left: Tensor, values: Tensor, right: Tensor) -> Tensor:
    return (left * values.sin()[..., None, :]) @ right


def orthogonal(x: Tensor) -> Tensor:
    """The columns of reflections by vectors below the diagonal."""
    vectors = x.tril(-1) / 4
    return linalg.householder_product(vectors, 2 / (1 + vectors.square().sum(-2)))


def reflected(left: bool, transpose: bool) -> float:
    """The error of Q and its transpose by a matrix, beside PyTorch's own."""
    factors, tau = torch.geqrf(TALL)
    right = torch.ormqr(factors, tau, B if left else B.mT.contiguous(), left, transpose)
    with Mode():
        ours = torch.ormqr(*torch.geqrf(TALL), B if left else B.mT.contiguous(), left, transpose)
    return float((ours - right).abs().max())


def deficient() -> dict[str, Any]:
    """A matrix of rank 2: its pseudoinverse, least squares and what they tell beside."""
    x = TALL * torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0])
    right = linalg.pinv(x), linalg.lstsq(x, B, driver="gelsd")
    with Mode():
        ours = linalg.pinv(x), linalg.lstsq(x, B, driver="gelsd")
        refused = said(lambda: linalg.lstsq(x, B, driver="gels"))
        cut = linalg.pinv(torch.tensor([4.0, 1.0]).diag(), rtol=0.5).tolist()
    return {
        "pinv": float((ours[0] - right[0]).abs().max()),
        "solution": float((ours[1].solution - right[1].solution).abs().max()),
        "rank": ours[1].rank.tolist(),
        "values": float((ours[1].singular_values - right[1].singular_values).abs().max()),
        "residuals": list(ours[1].residuals.shape),
        "gels": refused,
        "cut": cut,
    }


def ends() -> dict[str, Any]:
    """What is empty, not finite or in a batch of matrices that have other bits alone."""
    batch = torch.stack([A[0], 30 * A[1], A[2] / 100])
    with Mode():
        many = linalg.matrix_exp(batch)
        solution = linalg.lstsq(torch.zeros(0, 3), torch.zeros(0, 2)).solution
        nothing = solution, linalg.pinv(torch.zeros(2, 0, 3)), linalg.matrix_exp(torch.zeros(0, 4, 4))
        return {
            "alone": all(torch.equal(linalg.matrix_exp(x), y) for x, y in zip(batch, many, strict=True)),
            "of nothing": [list(x.shape) for x in nothing],
            "numbers": torch.equal(linalg.matrix_exp(A[..., :1, :1]), A[..., :1, :1].exp()),
            "infinite": bool(linalg.matrix_exp(torch.full((2, 2), torch.inf)).isnan().all()),
            "columns": said(lambda: linalg.lstsq(torch.ones(3), torch.ones(3))),
            "driver": said(lambda: linalg.lstsq(A, B, driver="svd")),
        }


Function = Callable[[Tensor], Any]
CASES: dict[str, tuple[Function, Tensor]] = {
    "qr": (lambda x: torch.cat(linalg.qr(x)), A),
    "qr of tall": (lambda x: linalg.qr(x)[0] @ linalg.qr(x)[1], TALL),
    "cholesky": (linalg.cholesky, POSITIVE),
    "cholesky upper": (lambda x: linalg.cholesky(x, upper=True), POSITIVE),
    "cholesky_solve": (lambda x: torch.cholesky_solve(B, x), LOWER),
    "cholesky_solve upper": (lambda x: torch.cholesky_solve(B, x, upper=True), UPPER),
    "cholesky_inverse": (torch.cholesky_inverse, LOWER),
    "lu of tall": (factors, TALL),
    "lu of wide": (factors, WIDE),
    "lu_unpack": (unpacked, A),
    "lu_solve": (lambda x: by_factors(x, False, True), A),
    "lu_solve adjoint": (lambda x: by_factors(x, True, True), A),
    "lu_solve right": (lambda x: by_factors(x, False, False), A),
    "lu_solve right adjoint": (lambda x: by_factors(x, True, False), A),
    "solve": (lambda x: linalg.solve(x, B), A),
    "solve right": (lambda x: linalg.solve(x, C, left=False), A),
    "solve vectors": (lambda x: linalg.solve(x, B[..., 0]), A),
    "solve of one for all": (lambda x: linalg.solve(x, B[0]), A),
    "solve_triangular": (lambda x: linalg.solve_triangular(x, B, upper=False), LOWER),
    "solve_triangular upper": (lambda x: linalg.solve_triangular(x, B, upper=True), UPPER),
    "solve_triangular right": (lambda x: linalg.solve_triangular(x, C, upper=False, left=False), LOWER),
    "solve_triangular ones": (lambda x: linalg.solve_triangular(x, B, upper=False, unitriangular=True), LOWER / 9),
    "inv": (linalg.inv, A),
    "det": (linalg.det, A),
    "slogdet": (lambda x: torch.stack(linalg.slogdet(x)), A),
    "logdet": (torch.logdet, POSITIVE),
    "eigvalsh": (lambda x: linalg.eigvalsh(x, UPLO="U"), A),
    "eigh": (lambda x: spread(*linalg.eigh(x + x.mT)), A),
    "svdvals": (linalg.svdvals, TALL),
    "svd of tall": (lambda x: rank(*linalg.svd(x, full_matrices=False)), TALL),
    "svd of wide": (lambda x: rank(*linalg.svd(x, full_matrices=False)), WIDE),
    "householder_product": (orthogonal, TALL),
    "pinv of tall": (linalg.pinv, TALL),
    "pinv of wide": (linalg.pinv, WIDE),
    "pinv hermitian": (lambda x: linalg.pinv(x, hermitian=True), POSITIVE),
    "lstsq": (lambda x: linalg.lstsq(x, B).solution, TALL),
    "lstsq of wide": (lambda x: linalg.lstsq(x, B[:, :5]).solution, WIDE),
    "lstsq of vectors": (lambda x: linalg.lstsq(x, B[..., 0]).solution, TALL),
    "lstsq residuals": (lambda x: linalg.lstsq(x, B, driver="gelsd").residuals, TALL),
    "matrix_exp": (linalg.matrix_exp, A),
    "matrix_exp of large": (lambda x: linalg.matrix_exp(6 * x), A),
    "matrix_exp of small": (lambda x: linalg.matrix_exp(x / 64), A),
}


def results(function: Function, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    y = function(x)
    (slope,) = torch.autograd.grad(y, x, drawn(5, *y.shape).to(y.dtype))
    return y.detach(), slope


def errors(dtype: torch.dtype) -> dict[str, list[float]]:
    """Of results and gradients, relative to the largest: of the mode, beside PyTorch's own in float64."""
    found = {}
    for name, (function, x) in CASES.items():
        right = results(function, x)
        with Mode():
            ours = results(cast(function, dtype), x.to(dtype))
        found[name] = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, right, strict=True)]
    return found


class Mode:
    def __enter__(self) -> None:
        portable.enable()

    def __exit__(self, *_: object) -> None:
        portable.disable()


def cast(function: Function, dtype: torch.dtype) -> Function:
    """A function whose other arguments are of this type."""

    def of(x: Tensor) -> Tensor:
        global B, C
        before = B, C
        B, C = B.to(dtype), C.to(dtype)
        try:
            return function(x)
        finally:
            B, C = before

    return of


def layouts() -> list[str]:
    """Cases whose bits follow the layout of the matrix."""
    with Mode():
        return [
            name
            for name, (function, x) in CASES.items()
            if not all(map(torch.equal, results(function, x), strided(function, x)))
        ]


def scaled() -> list[int]:
    """Exponents of the powers of two by which a matrix has other vectors, or other singular values but for that power."""
    x = torch.linspace(-2, 3, 30, dtype=torch.float64).pow(3).view(6, 5)
    wrong = []
    with Mode():
        left, values, right = linalg.svd(x)
        for e in (-900, -300, 300, 900, 1010):
            large, scaled, same = linalg.svd(x * 2.0**e)
            equal = (large.equal(left), scaled.equal(values * 2.0**e), same.equal(right))
            wrong += [] if all(equal) else [e]
    return wrong


def strided(function: Function, x: Tensor) -> tuple[Tensor, Tensor]:
    return results(lambda x: function(x.mT.contiguous().mT), x)


def said(function: Callable[[], Any]) -> str:
    try:
        return str(function())
    except (RefusedError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def refusals() -> dict[str, str]:
    zero, one = torch.zeros(3, 3), torch.eye(3)
    with Mode():
        return {
            "singular": said(lambda: linalg.inv(zero)),
            "singular system": said(lambda: linalg.solve(torch.stack([one, zero]), torch.ones(2, 3, 1))),
            "not positive": said(lambda: linalg.cholesky(torch.stack([one, torch.tensor([1.0, -1.0, 1.0]).diag()]))),
            "place": said(lambda: linalg.cholesky_ex(torch.tensor([1.0, -1.0, 1.0]).diag()).info.item()),
            "of nothing": said(lambda: (linalg.det(torch.zeros(0, 0)).item(), *linalg.qr(torch.zeros(0, 3))[0].shape)),
            "determinant 0": said(lambda: linalg.slogdet(zero)[1].item()),
            "without pivots": said(lambda: linalg.lu(one, pivot=False)),
            "eigenvalues": said(lambda: linalg.eigvals(one)),
        }


if __name__ == "__main__":
    both = {str(dtype)[6:]: errors(dtype) for dtype in (torch.float32, torch.float64)}
    print(
        json.dumps(
            {
                "errors": both,
                "layouts": layouts(),
                "scaled": scaled(),
                "said": refusals(),
                "reflected": [reflected(*each) for each in product((True, False), repeat=2)],
                "deficient": deficient(),
                "ends": ends(),
            }
        )
    )
