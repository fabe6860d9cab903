"""Exact products in PyTorch, of sliced operands.

A matmul backend has slices of one kind.
float64, int16: the integers themselves, [1, ...]. int8: the three slices of repro.portable.definitions.slices, int8
[3, ...]; they are cut once, and put together in few passes over memory.
"""

import torch
from torch import Tensor
from torch.nn import functional

from repro.portable.definitions.slices import LONGEST
from repro.portable.kernels import pytorch as compiler

if compiler.available:
    from repro.portable.kernels.pytorch.sums import multiply

MOST, LEAST = 126, 64
"""The largest number of a slice; rows and columns of the product that shows if those of int8 are exact."""
BLOCK = 2**19
"""Numbers of a result that are put together at once: they stay in a processor's caches."""


def engine() -> str:
    """The matmul backend of a CPU without kernels: int8 where its products are fast and exact, else float64; float64 beside a GPU.

    Where oneDNN may not use VNNI it adds products of int8 in 16 bits, which are too few.
    """
    has_vnni = getattr(torch.cpu, "_is_vnni_supported", bool)  # of PyTorch 2.6 and later
    if not (torch.backends.mkldnn.is_available() and has_vnni()) or torch.cuda.device_count():
        return "float64"
    threads = torch._C.get_num_threads()
    torch._C.set_num_threads(1)  # others would not survive a fork
    largest = torch.full((LEAST, LEAST), MOST, dtype=torch.int8, device="cpu")
    exact = bool((torch._int_mm(largest, largest) == MOST**2 * LEAST).all())
    torch._C.set_num_threads(threads)
    return "int8" if exact else "float64"


def cut(q: Tensor, like: torch.dtype) -> Tensor:
    """Integers, float32 [...] -> slices of this type, [1, ...] or [3, ...]."""
    if like != torch.int8:
        return q.to(like)[None]
    slices = torch.empty((3, *q.shape), dtype=torch.int8, device=q.device)
    upper = torch.mul(q, 2.0**-7).round_()
    slices[0] = upper
    slices[1] = torch.sub(q, upper, alpha=128)
    torch.add(slices[0], slices[1], out=slices[2])
    return slices


def product(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices in slices, [S, M, K] and [S, K, N] -> float64 [M, N]."""
    rows, terms, columns = a.shape[1], a.shape[2], b.shape[2]
    if not large(a, b):
        return joined(products(a, b), terms)
    if terms > LONGEST:
        parts = zip(a.split(LONGEST, 2), b.split(LONGEST, 1), strict=True)
        return torch.stack([product(first, second) for first, second in parts]).sum(0)
    y = torch.empty(rows, columns, dtype=torch.float64, device=a.device)
    if rows >= columns:
        size = max(64, BLOCK // columns)
        for part, some in zip(y.split(size), a.split(size, 1), strict=True):
            part.copy_(joined(products(some, b), terms))
    else:
        size = max(64, BLOCK // rows)
        for part, some in zip(y.split(size, 1), b.split(size, 2), strict=True):
            part.copy_(joined(products(a, some), terms))
    return y


def large(a: Tensor, b: Tensor) -> bool:
    """True if a product of int8 is made in parts."""
    return a.dtype == torch.int8 and (a.shape[2] > LONGEST or a.shape[1] * b.shape[2] > BLOCK)


def products(a: Tensor, b: Tensor) -> Tensor:
    """The products of slices: float64 [1, M, N] or int32 [3, M, N]."""
    if a.dtype == torch.float64:
        return a @ b
    if a.dtype == torch.int16:
        return multiply(a[0], b[0])[None]
    rows, terms, columns = a.shape[1], a.shape[2], b.shape[2]
    if a.device.type != "cpu":
        # CUDA's product takes more than 16 rows, and multiples of 8 otherwise; on Hopper the second matrix by columns.
        a = functional.pad(a, (0, -terms % 8, 0, max(0, 17 - rows)))
        b = functional.pad(b.transpose(1, 2), (0, -terms % 8, 0, -columns % 8)).contiguous().transpose(1, 2)
        return torch.stack([torch._int_mm(*pair)[:rows, :columns] for pair in zip(a, b, strict=True)])
    y = torch.empty((3, rows, columns), dtype=torch.int32, device="cpu")
    for part, first, second in zip(y, a, b, strict=True):
        torch._int_mm(first, second, out=part)
    return y


def joined(y: Tensor, terms: int) -> Tensor:
    """Products of slices, each of `terms` terms or fewer, as the one that they stand for, float64; y is used up."""
    if y.dtype == torch.float64:
        return y[0]
    upper, lower, both = y
    if terms <= 2**10:  # what is added here fits int32
        upper = both.add_(upper, alpha=127).sub_(lower)
        return torch.add(lower.double(), upper.double(), alpha=128)
    return both.double().add_(upper, alpha=127).mul_(128).add_(lower, alpha=-127)
