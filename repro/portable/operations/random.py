"""Random numbers by Philox4x32-10, for dropout.

They are a function of their place, so each framework computes them for itself.
J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
"""

import math

from repro.portable.xp import Backend

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
    """Whether dropout keeps each number of this shape: with probability 1 - rate, by words of Philox.

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
