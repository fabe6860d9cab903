"""Exact products by slices of int8.

Integers of up to 13 bits: three products of 8-bit slices, with int32 sums.
q = 128 h + l, with h and l from -64 to 64 and h + l from -127 to 127. So, with primes for the other operand,
q q' = 2^14 h h' + 2^7 ((h + l)(h' + l') - h h' - l l') + l l'.
"""

from repro.portable.definitions.xp import Backend, XlaBackend

LONGEST = 2**16
"""Terms of a sum that int32 holds: each is below 2^14."""


def cut(xp: Backend, q):
    """h, l and h + l, int8, of integers, float32."""
    upper = xp.rint(q * 2.0**-7)
    lower = q - upper * 128.0
    return xp.int8(upper), xp.int8(lower), xp.int8(upper + lower)


def product(xp: XlaBackend, a, b):
    """The product of matrices of integers, [..., M, K] and [..., K, N] -> float64 [..., M, N]."""
    total = None
    for first in range(0, a.shape[-1], LONGEST):
        part = slice(first, first + LONGEST)
        slices = zip(cut(xp, a[..., part]), cut(xp, b[..., part, :]), strict=True)
        result = joined(*(xp.f64(xp.product_of_int8(*pair)) for pair in slices))
        total = result if total is None else total + result
    return total


def joined(upper, lower, both):
    """The product of integers that three products of their slices stand for, all float64."""
    return (both + upper * 127.0) * 128.0 - lower * 127.0
