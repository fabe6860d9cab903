"""Numbers of floating-point types, drawn by NumPy: all magnitudes, the largest, the smallest, and those that are special.

All are drawn in float64 and are numbers of the type. What is drawn depends on the generator alone, not on the machine.
"""

import numpy as np
from numpy.random import Generator

FORMATS = {
    "float64": (53, -1022, 1023),
    "float32": (24, -126, 127),
    "bfloat16": (8, -126, 127),
    "float16": (11, -14, 15),
}
"""The bits of the significand, and the exponents of the smallest and the largest normal number, by type."""


def scaled(dtype: str, exponents: np.ndarray, generator: Generator) -> np.ndarray:
    """Numbers of both signs with these exponents, with significands that are drawn."""
    bits, least, _ = FORMATS[dtype]
    whole = generator.integers(2 ** (bits - 1), 2**bits, exponents.shape)
    # a subnormal number has fewer bits
    kept = np.clip(exponents - (least - bits + 1) + 1, 1, bits)
    whole = whole >> (bits - kept)
    signs = np.where(generator.integers(0, 2, exponents.shape) == 1, -1.0, 1.0)
    return signs * np.ldexp(whole.astype(float), exponents - kept + 1)


def special(dtype: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of normal and subnormal numbers, 1, 2, one half, and the neighbors of 1."""
    bits, least, most = FORMATS[dtype]
    positive = [
        *(0.0, np.inf, 1.0, 2.0, 0.5),
        *(1 + 2.0 ** (1 - bits), 1 - 2.0**-bits),
        *(np.ldexp(1.0, least), np.ldexp(1 - 2.0 ** (1 - bits), least), np.ldexp(1.0, least - bits + 1)),
        np.ldexp(2 - 2.0 ** (1 - bits), most),
    ]
    return np.array([*positive, *(-each for each in positive), np.nan])


def huge(dtype: str, shape: tuple[int, ...], generator: Generator) -> np.ndarray:
    """Numbers below the largest, by up to 2^8."""
    most = FORMATS[dtype][2]
    return scaled(dtype, generator.integers(most - 8, most + 1, shape), generator)


def tiny(dtype: str, shape: tuple[int, ...], generator: Generator) -> np.ndarray:
    """Subnormal numbers, and normal ones up to 2^8 times the smallest."""
    bits, least, _ = FORMATS[dtype]
    return scaled(dtype, generator.integers(least - bits + 1, least + 9, shape), generator)


def everywhere(dtype: str, size: int, generator: Generator) -> np.ndarray:
    """Special numbers, then those of all magnitudes: every other one between 2^-12 and 2^10, in an order that is drawn."""
    bits, least, most = FORMATS[dtype]
    first = special(dtype)
    rest = size - len(first)
    half = rest // 2
    middle = np.rint(np.linspace(-12, 9, half)).astype(int)
    spread = np.rint(np.linspace(least - bits + 1, most, rest - half)).astype(int)
    drawn = scaled(dtype, generator.permutation(np.concatenate([middle, spread])), generator)
    return np.concatenate([first, drawn])


def pairs(dtype: str, size: int, generator: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special numbers, then of all magnitudes, of both in the middle, and of one with its neighborhood."""
    first = special(dtype)
    x, y = (each.ravel() for each in np.meshgrid(first, first))
    rest = size - x.size
    a, b = (everywhere(dtype, rest + len(first), generator)[len(first) :] for _ in range(2))
    return np.concatenate([x, a]), np.concatenate([y, b])
