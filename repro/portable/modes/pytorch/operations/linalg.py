"""Factors of matrices."""

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.modes.pytorch.dispatcher.dispatch import define


@define("linalg_qr")
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """[..., M, N] -> Q R by A. Householder's reflections, J. ACM 5, 1958, in float64, with the signs of LAPACK."""
    rest = A.double().clone()
    rows, columns = rest.shape[-2:]
    reflections = []
    for step in range(min(rows - 1, columns)):
        reflection = _reflection(rest[..., step:, step])
        rest[..., step:, step:] = _reflected(rest[..., step:, step:], *reflection)
        rest[..., step + 1 :, step] = 0.0
        reflections.append(reflection)
    size = rows if mode == "complete" else min(rows, columns)
    r = rest[..., :size, :].triu()
    if mode == "r":
        return A.new_empty(0), r.to(A.dtype)
    q = torch.eye(rows, size, dtype=torch.float64, device=A.device).expand(*A.shape[:-2], rows, size).clone()
    for step in range(len(reflections) - 1, -1, -1):
        q[..., step:, :] = _reflected(q[..., step:, :], *reflections[step])
    return q.to(A.dtype), r.to(A.dtype)


def _reflection(x: Tensor) -> tuple[Tensor, Tensor]:
    """The vector v and the factor t of I - t v v^T, which takes x [..., K] to a multiple of the first axis."""
    scale = x.abs().amax(-1, keepdim=True)
    x = x / torch.where(scale == 0, 1.0, scale)
    norm = Backend.sqrt(_total((x * x)[..., None]))
    first = x[..., :1]
    away = first + torch.where(first < 0, -norm, norm)
    v = torch.cat((torch.ones_like(first), x[..., 1:] / torch.where(away == 0, 1.0, away)), -1)
    alone = x[..., 1:].abs().amax(-1, keepdim=True) == 0
    return v, torch.where(alone, 0.0, 2.0 / _total((v * v)[..., None]))


def _reflected(x: Tensor, v: Tensor, factor: Tensor) -> Tensor:
    """[..., K, N]"""
    along = _total(v[..., None] * x)
    return x - v[..., None] * (factor * along)[..., None, :]


def _total(x: Tensor) -> Tensor:
    """The sum over the last axis but one, by halves: float64 sums of one order everywhere."""
    while x.shape[-2] > 1:
        half = (x.shape[-2] + 1) // 2
        upper, lower = x[..., :half, :], x[..., half:, :]
        x = upper.clone()
        x[..., : lower.shape[-2], :] += lower
    return x[..., 0, :]
