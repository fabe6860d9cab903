"""JAX's Fourier transforms: signatures of the definitions."""

import math
from collections.abc import Sequence
from typing import Any

from jax import Array
from jax import numpy as jnp
from jax.lax import FftType

from repro.portable.backends.jax import Backend
from repro.portable.definitions import fourier
from repro.portable.modes.jax.dispatcher.registry import define, define_complex, guard
from repro.portable.modes.jax.operations.complexes import joined, parts


@guard("fft")
def _too_long(_: Any, *, fft_lengths: Sequence[int], **__: Any) -> str:
    return "" if max(fft_lengths, default=0) <= fourier.LONGEST else fourier.TOO_LONG


@define("fft")
@define_complex("fft")
def fft(x: Array, *, fft_type: FftType, fft_lengths: Sequence[int]) -> Array:
    """Along the last axes; what is inverse is divided by the number of terms."""
    axes = tuple(range(-len(fft_lengths), 0))
    factor = 1.0 / math.prod(fft_lengths)
    if fft_type == FftType.RFFT:
        dtype = jnp.complex64 if x.dtype == jnp.float32 else jnp.complex128
        return joined(fourier.real_to_complex(Backend, x, axes), dtype)
    if fft_type == FftType.IRFFT:
        return fourier.complex_to_real(Backend, parts(x), axes, fft_lengths[-1], factor)
    if fft_type == FftType.IFFT:
        return joined(fourier.complex_to_complex(Backend, parts(x), axes, fourier.INVERSE, factor), x.dtype)
    return joined(fourier.complex_to_complex(Backend, parts(x), axes, fourier.FORWARD), x.dtype)
