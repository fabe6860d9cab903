"""The int8 engine of repro.portable.operations.slices, with each operand cut once, in few passes over memory."""

import torch
from torch import Tensor

from repro.portable.operations.slices import LONGEST

BLOCK = 2**19
"""Numbers of a result that are put together at once: they stay in a processor's caches."""


def cut(q: Tensor) -> Tensor:
    """Integers, float32 [...] -> int8 [3, ...]: h, l and h + l."""
    found = torch.empty((3, *q.shape), dtype=torch.int8, device=q.device)
    upper = torch.mul(q, 2.0**-7).round_()
    found[0] = upper
    found[1] = torch.sub(q, upper, alpha=128)
    torch.add(found[0], found[1], out=found[2])
    return found


def product(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices in slices, [3, M, K] and [3, K, N] -> float64 [M, N]."""
    terms, size = a.shape[2], a.shape[1] * b.shape[2]
    if terms > LONGEST:
        parts = zip(a.split(LONGEST, 2), b.split(LONGEST, 1), strict=True)
        return sum(product(first, second) for first, second in parts)
    if size <= BLOCK:
        return _product(a, b)
    y = torch.empty(a.shape[1], b.shape[2], dtype=torch.float64, device=a.device)
    if a.shape[1] >= b.shape[2]:
        rows = max(64, BLOCK // b.shape[2])
        for part, whole in zip(y.split(rows), a.split(rows, 1), strict=True):
            part.copy_(_product(whole, b))
    else:
        columns = max(64, BLOCK // a.shape[1])
        for part, whole in zip(y.split(columns, 1), b.split(columns, 2), strict=True):
            part.copy_(_product(a, whole))
    return y


def _product(a: Tensor, b: Tensor) -> Tensor:
    upper, lower, both = (_int32(first, second) for first, second in zip(a, b, strict=True))
    if a.shape[2] <= 2**10:  # what follows fits int32
        upper = both.add_(upper, alpha=127).sub_(lower)
        return torch.add(lower.double(), upper.double(), alpha=128)
    return both.double().add_(upper, alpha=127).mul_(128).add_(lower, alpha=-127)


def _int32(a: Tensor, b: Tensor) -> Tensor:
    """The product of int8 matrices, [M, K] and [K, N] -> int32 [M, N]."""
    if a.device.type == "cpu":
        return torch._int_mm(a, b)
    # CUDA's takes more than 16 rows, and multiples of 8 otherwise.
    rows, terms, columns = a.shape[0], a.shape[1], b.shape[1]
    a = torch.nn.functional.pad(a, (0, -terms % 8, 0, max(0, 17 - rows)))
    b = torch.nn.functional.pad(b, (0, -columns % 8, 0, -terms % 8))
    return torch._int_mm(a, b)[:rows, :columns]
