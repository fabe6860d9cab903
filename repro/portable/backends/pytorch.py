"""PyTorch's arithmetic, as a backend."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from repro.portable.backends import pytorch_convolution as convolution
from repro.portable.backends import pytorch_slices as slices
from repro.portable.definitions import convolution as by_groups
from repro.portable.definitions.defaults import Defaults
from repro.portable.definitions.grids import grids
from repro.portable.kernels import pytorch as compiler
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BELOW_TINY

if compiler.available:
    from repro.portable.kernels import products
    from repro.portable.kernels.pytorch import sums

LEAST_WORK = 2**21  # multiplications; of fewer, slices take longer to cut than they save
LEAST_OUTPUTS = 32


class PyTorch(Defaults):
    """PyTorch on any device, in any mode: eager or compiled."""

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def cast(x: Tensor, dtype: Any) -> Tensor:
        return x.to(getattr(torch, dtype) if isinstance(dtype, str) else dtype)

    @staticmethod
    def r32(x: Tensor) -> Tensor:
        return functional.hardshrink(x.float(), BELOW_TINY)

    rint, floor = staticmethod(torch.round), staticmethod(torch.floor)

    @staticmethod
    def sqrt(x: Tensor) -> Tensor:
        # On a CPU torch.sqrt is MKL's: one in eighty is the float64 next to the right one. Compiled, NumPy's becomes
        # torch's, and that the processor's own.
        return torch.from_numpy(np.asarray(np.sqrt(x.detach().numpy()))) if x.device.type == "cpu" else torch.sqrt(x)

    @staticmethod
    def where(condition: Tensor, a, b) -> Tensor:
        return torch.where(condition, a, b)

    @staticmethod
    def clip(x: Tensor, low: float, high: float) -> Tensor:
        return x.clamp(low, high)

    @staticmethod
    def pattern(x: Tensor) -> Tensor:
        return x.view(torch.int64 if x.dtype == torch.float64 else torch.int32)

    @staticmethod
    def number(pattern: Tensor) -> Tensor:
        return pattern.view(torch.float64 if pattern.dtype == torch.int64 else torch.float32)

    # --- quantization grids -------------------------------------------------------------------------------------------

    def grids(self, x: Tensor, axes: tuple[int, ...], bits: int, batch: bool) -> tuple[Tensor, Tensor]:
        # By tables, as on a CPU each operation on few numbers takes as long as on a thousand.
        if torch.compiler.is_compiling() or (batch and self.ranks.size > 1):
            return grids(self, x, axes, bits, batch)
        most = torch.maximum(x.amax(axes, True), -x.amin(axes, True))
        exponent = (most.view(torch.int32) >> 23).long()  # negative where `most` is -0 or -NaN: counted from the end
        up, p = _made("powers", x.device, bits)
        return up.take(exponent), p.take(exponent)

    # --- sums and products --------------------------------------------------------------------------------------------

    @staticmethod
    def sum(x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.sum(axes, keepdim=True, dtype=torch.float64)

    @staticmethod
    def largest(x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.amax(axes, keepdim=True)

    @staticmethod
    def maximum_of(x: Tensor) -> Tensor:
        return x.amax(-1, keepdim=True)

    @staticmethod
    def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return torch.addcmul(c, a, b)

    def kind(self, a: Tensor, b: Tensor, work: int, groups: int, layout: str) -> torch.dtype:
        """The type of the operands of that many multiplications, and of those of their gradients."""
        outputs = b.shape[0]
        if self.engine == "int8" and work >= LEAST_WORK and outputs >= LEAST_OUTPUTS and groups == 1:
            return torch.int8
        if self.engine == "int16" and compiler.possible(a.device) and products.fit(a.shape, outputs, layout):
            return torch.int16
        return torch.float64

    def operands(self, a: Tensor, b: Tensor, work: int, groups: int = 1, layout: str = "") -> tuple[Tensor, Tensor]:
        if groups > 1 and not compiler.possible(a.device):
            return a, b
        kind = self.kind(a, b, work, groups, layout)
        return slices.cut(a, kind), slices.cut(b, kind)

    @staticmethod
    def operand_like(a: Tensor, b: Tensor) -> Tensor:
        return a if b.dtype == torch.float32 else slices.cut(a, b.dtype)

    @staticmethod
    def matmul(a: Tensor, b: Tensor) -> Tensor:
        return a.double() @ b.double() if a.dtype == torch.float32 else slices.product(a, b)

    @staticmethod
    def rounded_matmul(a: Tensor, b: Tensor, units: Tensor, plus: Tensor | None) -> Tensor:
        return sums.multiply(a[0], b[0], units, plus)

    def convolve(self, q: Tensor, w: Tensor, *how: Any) -> Tensor:
        if self._direct(q):
            return sums.convolve(q[0], w[0], *how)
        return (by_groups if q.dtype == torch.float32 else convolution).convolve(self, q, w, *how)

    def convolve_with(self, q: Tensor, g: Tensor, shape, *how: Any) -> Tensor:
        if self._direct(q):
            return sums.convolve_with(self.ranks, q[0], g[0], shape, *how)
        return (by_groups if q.dtype == torch.float32 else convolution).convolve_with(self, q, g, shape, *how)

    def convolve_back(self, g: Tensor, w: Tensor, image, *how: Any) -> Tensor:
        if self._direct(g):
            stride, _, dilation, *_ = how
            if all(1 in pair for pair in zip(stride, dilation, strict=True)):
                return sums.convolve_back(g[0], w[0], image, *how)
            g, w = g[0].float(), w[0].float()
        return (by_groups if g.dtype == torch.float32 else convolution).convolve_back(self, g, w, image, *how)

    @staticmethod
    def _direct(q: Tensor) -> bool:
        return q.dtype in (torch.float64, torch.int16) and compiler.possible(q.device)

    # --- shapes -------------------------------------------------------------------------------------------------------

    reshape, stack, broadcast_to = torch.reshape, torch.stack, torch.broadcast_to

    @staticmethod
    def permute(x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.permute(axes)

    @staticmethod
    def concatenate(arrays: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(arrays, axis)

    @staticmethod
    def pad(x: Tensor, edges: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
        flat = [size for pair in reversed(edges) for size in pair]
        return functional.pad(x, flat, value=value) if any(flat) else x

    # --- tables, places -----------------------------------------------------------------------------------------------

    @staticmethod
    def tables(like: Tensor, made: Callable, *arguments) -> list[Tensor]:
        name = made.__name__
        return [_table(name, index, like.device, *arguments) for index in range(_count(name, *arguments))]

    @staticmethod
    def take(table: Tensor, index: Tensor) -> Tensor:
        return table.take(index.long())

    @staticmethod
    def add_at(index: Tensor, x: Tensor, rows: int) -> Tensor:
        return x.new_zeros(rows, x.shape[1], dtype=torch.float64).index_add_(0, index, x.double())

    @staticmethod
    def largest_at(index: Tensor, x: Tensor, rows: int) -> Tensor:
        where = index.long()[:, None].expand(x.shape)
        return x.new_zeros(rows, x.shape[1]).scatter_reduce_(0, where, x, "amax")

    @staticmethod
    def causal(like: Tensor, rows: int, columns: int) -> Tensor:
        return torch.ones(rows, columns, dtype=torch.bool, device=like.device).tril_(columns - rows)

    @staticmethod
    def counting(like: Tensor, size: int) -> Tensor:
        return torch.arange(size, device=like.device)

    @staticmethod
    def take_along(x: Tensor, index: Tensor, axis: int) -> Tensor:
        return torch.take_along_dim(x, index.long(), axis)

    @staticmethod
    def argsort(x: Tensor) -> Tensor:
        return x.argsort(dim=-1, stable=True)


# Of tables, by name: torch.compile would trace how they are made, and takes no function as an argument here.


def _count(name: str, *arguments) -> int:
    return len(getattr(tables, name)(*arguments))


def _table(name: str, index: int, device: torch.device, *arguments) -> Tensor:
    return _made(name, device, *arguments)[index]


@lru_cache(maxsize=64)
def _made(name: str, device: torch.device, *arguments) -> list[Tensor]:
    return [torch.from_numpy(table).to(device) for table in getattr(tables, name)(*arguments)]


for constant in (_count, _table):  # as torch.compiler.assume_constant_result does, which imports the compiler
    constant._dynamo_marked_constant = True  # type: ignore[union-attr]


Backend = PyTorch()
