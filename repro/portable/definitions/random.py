"""Random numbers by Philox4x32-10.

They are a function of their place, so each framework computes them for itself.
J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.

A draw of any program has a key below 2^63 of its own. Block n of four words gives numbers 4 n to 4 n + 3 of the draw, or,
in float64, numbers 2 n and 2 n + 1.
"""

import math
from collections.abc import Sequence
from typing import Any

from repro.portable.definitions.functions import DOUBLE, SINGLE
from repro.portable.definitions.functions.arithmetic import from_integer, plus
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.functions.trigonometric import cos, sin, tan
from repro.portable.definitions.xp import Array, Backend

WORD = 2**32 - 1
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox(xp: Backend, counter, key):
    """Four words below 2^32 for a counter of four and a key of two, all int64 arrays or ints."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        low0, high0 = _product(xp, c0, MULTIPLIERS[0])
        low1, high1 = _product(xp, c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + WEYL[0]) & WORD, (k1 + WEYL[1]) & WORD
    return c0, c1, c2, c3


def _product(xp: Backend, word, multiplier: int):
    """The lower and the upper word of a product, of which int64 keeps all 64 bits."""
    both = word * multiplier
    return both & WORD, xp.shift_right(both, 32) & WORD


def keep(xp: Backend, key, step, shape, rate: float):
    """True for numbers of this shape that dropout keeps: with probability 1 - rate, by words of Philox.

    key and step are int64 of no dimension; the key is below 2^62. On several ranks the shape is that of all samples, of
    which each takes its own.
    """
    whole = (shape[0] * xp.ranks.size, *shape[1:])
    size = math.prod(whole)
    blocks = xp.counting(step, -(-size // 4))
    zero = blocks * 0
    words = philox(
        xp, (blocks & WORD, xp.shift_right(blocks, 32), step + zero, zero), (key & WORD, xp.shift_right(key, 32))
    )
    drawn = xp.reshape(xp.reshape(xp.stack(words, 1), (-1,))[:size], whole)
    return xp.of_rank(drawn) >= round(rate * 2**32)


# --- draws of any program ---------------------------------------------------------------------------------------------
# `blocks` are int64 [B]; the key is int64 of no dimension, or an int. Results are [B, 4], or [B, 2] in float64.


def words(xp: Backend, blocks: Array, key: Any, part: Any = 0) -> tuple[Array, ...]:
    """Four words of each block, int64 [B] each."""
    zero = blocks * 0
    spread = key if isinstance(key, int) else key + zero  # in one kernel with the rest
    counter = blocks & WORD, xp.shift_right(blocks, 32), zero + part, zero
    return philox(xp, counter, (spread & WORD, xp.shift_right(spread, 32)))


def shares(xp: Backend, blocks: Array, key: Any, bits: int) -> list[Array]:
    """Multiples of 2^-bits in [0, 1), float64: of the first bits of each word, or of 53 bits of two."""
    drawn = words(xp, blocks, key)
    if bits <= 32:
        return [from_integer(xp, xp.shift_right(word, 32 - bits)) * 2.0**-bits for word in drawn]
    return joined(xp, drawn, bits)


def joined(xp: Backend, drawn: Sequence[Array], bits: int) -> list[Array]:
    """Two shares of four words: 26 of the bits are the second's and the fourth's first ones."""
    high = [from_integer(xp, xp.shift_right(word, 58 - bits)) * 2.0 ** (26 - bits) for word in drawn[::2]]
    low = [from_integer(xp, xp.shift_right(word, 6)) * 2.0**-bits for word in drawn[1::2]]
    return [a + b for a, b in zip(high, low, strict=True)]


def inner_shares(xp: Backend, blocks: Array, key: Any, precision: int) -> list[Array]:
    """Odd multiples of 2^-33 in (0, 1), float64; of 2^-53 in double precision."""
    bits = 32 if precision == SINGLE else 52
    return [share + 0.5 * 2.0**-bits for share in shares(xp, blocks, key, bits)]


def _results(xp: Backend, numbers: list[Array], precision: int) -> Array:
    return xp.stack([xp.f32(each) if precision == SINGLE else each for each in numbers], 1)


def integers(xp: Backend, blocks: Array, key: Any) -> Array:
    """The words."""
    return xp.stack(words(xp, blocks, key), 1)


def bernoulli(xp: Backend, blocks: Array, key: Any, limit: Any) -> Array:
    """True where a word is below a limit, an integer."""
    return xp.stack([word < limit for word in words(xp, blocks, key)], 1)


def uniform(xp: Backend, blocks: Array, key: Any, *ends: Any, bits: int) -> Array:
    """From [0, 1) by shares of some bits; between two ends: low + share (high - low)."""
    numbers = shares(xp, blocks, key, bits)
    if ends:
        low, span = ends
        numbers = [plus(xp, share, span, low) for share in numbers]
    return _results(xp, numbers, DOUBLE if bits > 32 else SINGLE)


def normals(xp: Backend, blocks: Array, key: Any, precision: int) -> list[Array]:
    """Numbers of the standard normal distribution, float64: G. Box and M. Muller, A Note on the Generation of Random Normal Deviates.

    Two shares give two numbers.
    """
    numbers, drawn = [], inner_shares(xp, blocks, key, precision)
    for first, second in zip(drawn[::2], drawn[1::2], strict=True):
        radius = xp.sqrt(log(xp, first, precision) * -2.0)
        angle = second * (2.0 * math.pi)
        numbers += [radius * cos(xp, angle, precision, large=False), radius * sin(xp, angle, precision, large=False)]
    return numbers


def normal(xp: Backend, blocks: Array, key: Any, *moments: Any, precision: int, exponential: bool = False) -> Array:
    """Standard, or with a mean and a standard deviation; or the exponential function of these."""
    numbers = normals(xp, blocks, key, precision)
    if moments:
        mean, deviation = moments
        numbers = [plus(xp, number, deviation, mean) for number in numbers]
    if exponential:
        numbers = [exp(xp, number, DOUBLE) for number in numbers]
    return _results(xp, numbers, precision)


def exponential(xp: Backend, blocks: Array, key: Any, scale: Any, precision: int) -> Array:
    """-log of a share, times the scale; above 0."""
    numbers = [log(xp, share, precision) * -scale for share in inner_shares(xp, blocks, key, precision)]
    return _results(xp, numbers, precision)


def geometric(xp: Backend, blocks: Array, key: Any, scale: Any) -> Array:
    """The number of the first success, float64: scale is 1 / log(1 - p)."""
    drawn = inner_shares(xp, blocks, key, DOUBLE)
    return xp.stack([xp.floor(log(xp, share) * scale) + 1.0 for share in drawn], 1)


def cauchy(xp: Backend, blocks: Array, key: Any, median: Any, scale: Any, precision: int) -> Array:
    """median + scale tan(pi (share - 1/2))."""
    angles = [(share - 0.5) * math.pi for share in inner_shares(xp, blocks, key, precision)]
    return _results(xp, [plus(xp, tan(xp, angle, DOUBLE, large=False), scale, median) for angle in angles], precision)
