"""Reference: random numbers of any program.

Of a draw with a key below 2^63. `bits` is 24 or 53, of the result.
"""

import math

import numpy as np

from reference.arithmetic import Array
from reference.functions import log
from reference.pointwise import philox
from reference.trigonometric import cos, sin


def words(key: int, n: int) -> Array:
    """The first n words, int64: block b of four has counter (b mod 2^32, floor(b / 2^32), 0, 0)."""
    blocks = [philox((b % 2**32, b >> 32, 0, 0), (key % 2**32, key >> 32)) for b in range(-(-n // 4))]
    return np.array(blocks, np.int64).reshape(-1)[:n]


def shares(key: int, n: int, digits: int) -> Array:
    """Multiples of 2^-digits in [0, 1), float64: from two words each where digits > 32."""
    if digits <= 32:
        return (words(key, n) >> 32 - digits) * 2.0**-digits
    first, second = words(key, 2 * n).reshape(-1, 2).T
    return ((first >> 58 - digits << 26) + (second >> 6)) * 2.0**-digits


def inner_shares(key: int, n: int, bits: int) -> Array:
    """In (0, 1): the middles of 2^32 or 2^52 parts."""
    digits = 32 if bits == 24 else 52
    return shares(key, n, digits) + 2.0 ** -(digits + 1)


def bernoulli(key: int, n: int, p: float) -> Array:
    return words(key, n) < p * 2.0**32


def uniform(key: int, n: int, low: float = 0.0, high: float = 1.0, digits: int = 24) -> Array:
    """float64, before it is rounded."""
    return shares(key, n, digits) * (high - low) + low


def normal(key: int, n: int, mean: float = 0.0, deviation: float = 1.0, bits: int = 24) -> Array:
    """The same: pairs by Box and Muller."""
    first, second = inner_shares(key, n + n % 2, bits).reshape(-1, 2).T
    radius, angle = np.sqrt(log(first, bits) * -2.0), second * (2.0 * math.pi)
    both = np.stack([radius * cos(angle, bits), radius * sin(angle, bits)], 1)
    return both.reshape(-1)[:n] * deviation + mean


def exponential(key: int, n: int, rate: float = 1.0, bits: int = 24) -> Array:
    """The same."""
    return log(inner_shares(key, n, bits), bits) * -(1.0 / rate)
