"""Grids, and the float32 state, in PyTorch: see docs/portable.md."""

import math
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from repro.portable import rules
from repro.run import float32


def largest(x: Tensor, dims: int | tuple[int, ...]) -> Tensor:
    """max|x| over the dimensions, kept as dimensions of size 1; NaN where x holds one."""
    return torch.maximum(x.amax(dims, keepdim=True), -x.amin(dims, keepdim=True))


def round_to_grid(x: Tensor, most: Tensor, bits: int) -> Tensor:
    """x rounded, half to even, to the grid of `bits` bits for magnitudes up to `most`; NaN where it is above LIMIT."""
    (table,) = tables(rules.grid_tables, x.device, bits)
    exponent = most.view(torch.int64) >> 52  # negative where `most` is -0: counted from the table's end, it is 0 again
    shift = table.take(exponent)
    return (x + shift).sub_(shift)


def to_state(x: Tensor) -> Tensor:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return functional.hardshrink(x, BELOW_TINY).float()


BELOW_TINY = math.nextafter(float32.TINY, 0)


@cache
def tables(made: Callable[..., Iterable[np.ndarray]], device: torch.device, *size: int) -> list[Tensor]:
    """Tables of rules.py, as float64 tensors on a device, made once."""
    return [torch.from_numpy(table).to(device) for table in made(*size)]
