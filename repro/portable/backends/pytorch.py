"""PyTorch's arithmetic, as a backend."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from repro.portable.backends import pytorch_convolution as convolution
from repro.portable.backends import pytorch_slices as slices
from repro.portable.definitions import convolution as by_groups
from repro.portable.definitions import xp
from repro.portable.definitions.grids import grids
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.kernels import pytorch as compiler
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BELOW_TINY, SMALLEST

if compiler.available:
    from repro.portable.kernels import products
    from repro.portable.kernels.pytorch import sums

LEAST_WORK = 2**21  # multiplications; of fewer, slices take longer to cut than they save
LEAST_OUTPUTS = 32


class Backend:
    """On any device, in any mode: eager or compiled."""

    nan, inf = math.nan, math.inf
    ranks = SINGLE_PROCESS
    engine = "float64"

    # --- numbers ------------------------------------------------------------------------------------------------------

    @staticmethod
    def f64(x: Tensor) -> Tensor:
        return x.double()

    @staticmethod
    def f32(x: Tensor) -> Tensor:
        return x.float()

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
    def integer(x: Tensor) -> Tensor:
        return x.int()

    @staticmethod
    def int8(x: Tensor) -> Tensor:
        return x.to(torch.int8)

    @staticmethod
    def int16(x: Tensor) -> Tensor:
        return x.to(torch.int16)

    @staticmethod
    def shift_right(x: Tensor, bits: int) -> Tensor:
        return x >> bits

    @staticmethod
    def pattern(x: Tensor) -> Tensor:
        return x.view(torch.int64)

    @staticmethod
    def number(pattern: Tensor) -> Tensor:
        return pattern.view(torch.float64)

    # --- grids --------------------------------------------------------------------------------------------------------

    @staticmethod
    def exponent_above(x: Tensor, axes: tuple[int, ...]) -> Tensor:
        most = (x.view(torch.int32) & 0x7FFFFFFF).amax(axes, keepdim=True)
        return ((most >> 23) - 126).clamp_(SMALLEST, 128)

    @staticmethod
    def power(e: Tensor) -> Tensor:
        return ((e + 127) << 23).view(torch.float32)

    @staticmethod
    def exponent(x: Tensor) -> Tensor:
        return ((x.view(torch.int64) >> 52) - 1023).int()

    @staticmethod
    def power_of_two(e: Tensor) -> Tensor:
        return ((e.long() + 1023) << 52).view(torch.float64)

    @classmethod
    def grids(cls, x: Tensor, axes: tuple[int, ...], bits: int, batch: bool) -> tuple[Tensor, Tensor]:
        # By tables, as on a CPU each operation on few numbers takes as long as on a thousand.
        if torch.compiler.is_compiling() or (batch and cls.ranks.size > 1):
            return grids(cls, x, axes, bits, batch)
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

    @classmethod
    def kind(cls, a: Tensor, b: Tensor, work: int, groups: int, layout: str) -> torch.dtype:
        """The type of the operands of that many multiplications, and of those of their gradients."""
        outputs = b.shape[0]
        if cls.engine == "int8" and work >= LEAST_WORK and outputs >= LEAST_OUTPUTS and groups == 1:
            return torch.int8
        if cls.engine == "int16" and compiler.possible(a.device) and products.fit(a.shape, outputs, layout):
            return torch.int16
        return torch.float64

    @classmethod
    def operands(cls, a: Tensor, b: Tensor, work: int, groups: int = 1, layout: str = "") -> tuple[Tensor, Tensor]:
        if groups > 1 and not compiler.possible(a.device):
            return a, b
        kind = cls.kind(a, b, work, groups, layout)
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

    @classmethod
    def convolve(cls, q: Tensor, w: Tensor, *how: Any) -> Tensor:
        if cls._direct(q):
            return sums.convolve(q[0], w[0], *how)
        return (by_groups if q.dtype == torch.float32 else convolution).convolve(cls, q, w, *how)

    @classmethod
    def convolve_with(cls, q: Tensor, g: Tensor, shape, *how: Any) -> Tensor:
        if cls._direct(q):
            return sums.convolve_with(cls.ranks, q[0], g[0], shape, *how)
        return (by_groups if q.dtype == torch.float32 else convolution).convolve_with(cls, q, g, shape, *how)

    @classmethod
    def convolve_back(cls, g: Tensor, w: Tensor, image, *how: Any) -> Tensor:
        if cls._direct(g):
            stride, _, dilation, *_ = how
            if all(1 in pair for pair in zip(stride, dilation, strict=True)):
                return sums.convolve_back(g[0], w[0], image, *how)
            g, w = g[0].float(), w[0].float()
        return (by_groups if g.dtype == torch.float32 else convolution).convolve_back(cls, g, w, image, *how)

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
    def transpose(x: Tensor) -> Tensor:
        return x.transpose(-1, -2)

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
    def take_rows(table: Tensor, index: Tensor) -> Tensor:
        return table[index]

    @staticmethod
    def add_at(index: Tensor, x: Tensor, rows: int) -> Tensor:
        return x.new_zeros(rows, x.shape[1], dtype=torch.float64).index_add_(0, index, x.double())

    @staticmethod
    def one_hot(index: Tensor, classes: int) -> Tensor:
        return (torch.arange(classes, device=index.device) == index[:, None]).double()

    @staticmethod
    def causal(like: Tensor, rows: int, columns: int) -> Tensor:
        return torch.ones(rows, columns, dtype=torch.bool, device=like.device).tril_(columns - rows)

    @staticmethod
    def counting(like: Tensor, size: int) -> Tensor:
        return torch.arange(size, device=like.device)

    # --- matrices, step by step ---------------------------------------------------------------------------------------

    @staticmethod
    def at(x: Tensor, place: int, axis: int) -> Tensor:
        return x[..., place : place + 1] if axis == -1 else x[..., place : place + 1, :]

    @staticmethod
    def take_along(x: Tensor, index: Tensor, axis: int) -> Tensor:
        return torch.take_along_dim(x, index.long(), axis)

    @staticmethod
    def repeat(count: int, step: Callable, state):
        for number in range(count):
            state = step(number, state)
        return state

    @staticmethod
    def repeat_while(going: Callable, step: Callable, state):
        while going(state):
            state = step(state)
        return state

    @staticmethod
    def argsort(x: Tensor) -> Tensor:
        return x.argsort(dim=-1, stable=True)

    # --- ranks --------------------------------------------------------------------------------------------------------

    @classmethod
    def total(cls, x: Tensor) -> Tensor:
        return cls.ranks.total(x)[0]

    @classmethod
    def of_rank(cls, x: Tensor) -> Tensor:
        return x.chunk(cls.ranks.size)[cls.ranks.rank]


# Of tables, by name: torch.compile would trace how they are made, and takes no function as an argument here.


def _count(name: str, *arguments) -> int:
    return len(getattr(tables, name)(*arguments))


def _table(name: str, index: int, device: torch.device, *arguments) -> Tensor:
    return _made(name, device, *arguments)[index]


@cache
def _made(name: str, device: torch.device, *arguments) -> list[Tensor]:
    return [torch.from_numpy(table).to(device) for table in getattr(tables, name)(*arguments)]


for constant in (_count, _table):  # as torch.compiler.assume_constant_result does, which imports the compiler
    constant._dynamo_marked_constant = True  # type: ignore[union-attr]


if TYPE_CHECKING:
    _: xp.Backend = Backend
