"""PyTorch's Fourier transforms: signatures of the definitions."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import fourier
from repro.portable.modes.pytorch.dispatcher.refusal import refuse
from repro.portable.modes.pytorch.dispatcher.tables import define, define_complex
from repro.portable.modes.pytorch.operations.complexes import joined, parts

DIVISORS = (lambda _: 1.0, math.sqrt, float)
"""What PyTorch divides a result of so many terms by: `fft_norm_mode` of its Normalization.h."""


def _factor(name: str, x: Tensor, axes: Sequence[int], normalization: int, *last: int) -> float:
    """The factor of a result. RefusedError where an axis is too long; `last` is the length of the last one, where that is another."""
    if not fourier.fits(x.shape, axes, *last):
        raise refuse(name, fourier.TOO_LONG, tensors=[x])
    others = axes[:-1] if last else axes
    return 1.0 / DIVISORS[normalization](math.prod([*(x.shape[axis] for axis in others), *last]))


@define_complex("_fft_c2c")
def c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    factor = _factor("fft_c2c", self, dim, normalization)
    sign = fourier.FORWARD if forward else fourier.INVERSE
    return joined(fourier.complex_to_complex(Backend, parts(self), dim, sign, factor), self.dtype)


@define("_fft_r2c")
def r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    factor = _factor("fft_r2c", self, dim, normalization)
    dtype = torch.complex64 if self.dtype == torch.float32 else torch.complex128
    return joined(fourier.real_to_complex(Backend, self, dim, factor, onesided), dtype)


@define_complex("_fft_c2r")
def c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    factor = _factor("fft_c2r", self, dim, normalization, last_dim_size)
    return fourier.complex_to_real(Backend, parts(self), dim, last_dim_size, factor).contiguous()
