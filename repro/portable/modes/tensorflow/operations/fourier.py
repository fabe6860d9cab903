"""TensorFlow's Fourier transforms: signatures of the definitions."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions import fourier
from repro.portable.modes.tensorflow.dispatcher.dispatch import Function, define_complex
from repro.portable.modes.tensorflow.dispatcher.refusal import refuse
from repro.portable.modes.tensorflow.operations.complexes import joined, parts


def _check(name: str, x: Array, axes: Sequence[int], *last: int) -> None:
    """RefusedError where an axis is too long."""
    if not fourier.fits(x.shape, axes, *last):
        raise refuse(name, fourier.TOO_LONG, values=[x])


def _complex(name: str, sign: int) -> Callable[[Array, Sequence[int]], Array]:
    def transform(x: Array, axes: Sequence[int]) -> Array:
        _check(name, x, axes)
        factor = 1.0 / math.prod(x.shape[axis] for axis in axes) if sign == fourier.INVERSE else 1.0
        return joined(fourier.complex_to_complex(Backend, parts(x), axes, sign, factor), x.dtype)

    return transform


def _cut(x: Array, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    """The beginning of each axis, with zeros behind where it is shorter."""
    for axis, size in zip(axes, sizes, strict=True):
        x = np.take(x, range(min(size, x.shape[axis])), axis)
        behind = [(0, 0)] * x.ndim
        behind[axis] = (0, size - x.shape[axis])
        x = np.pad(x, behind)
    return x


def _to_complex(x: Array, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    x = _cut(x, axes, sizes)
    _check("RFFT", x, axes)
    dtype = np.dtype(np.complex64 if x.dtype == np.float32 else np.complex128)
    return joined(fourier.real_to_complex(Backend, x, axes), dtype)


def _to_real(x: Array, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    x = _cut(x, axes, [*sizes[:-1], sizes[-1] // 2 + 1])
    _check("IRFFT", x, axes, sizes[-1])
    return fourier.complex_to_real(Backend, parts(x), axes, sizes[-1], 1.0 / math.prod(sizes))


def _last(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


FORWARD, INVERSE = _complex("FFT", fourier.FORWARD), _complex("IFFT", fourier.INVERSE)


def _of_rank(rank: int) -> dict[str, Function]:
    axes, name = _last(rank), "" if rank == 1 else f"{rank}D"
    return {
        f"FFT{name}": lambda _, x: FORWARD(x, axes),
        f"IFFT{name}": lambda _, x: INVERSE(x, axes),
        f"RFFT{name}": lambda _, x, sizes: _to_complex(x, axes, sizes.tolist()),
        f"IRFFT{name}": lambda _, x, sizes: _to_real(x, axes, sizes.tolist()),
    }


for _rank in (1, 2, 3):
    for _name, _function in _of_rank(_rank).items():
        define_complex(_name)(_function)
