"""Fixed-point numbers as Python's integers, from which tables are made: x is the integer x 2^256.

No function of a C library is called, so each machine makes the same numbers.
"""

import math
from decimal import Decimal

PRECISION = 256
ONE = 1 << PRECISION
PI = (
    int(Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863") * 10**82)
    * ONE
    // 10**82
)


def times(a: int, b: int) -> int:
    return a * b >> PRECISION


def over(a: int, b: int) -> int:
    return (a << PRECISION) // b


def cos_sin(x: int) -> tuple[int, int]:
    """The cosine and the sine, by their series."""
    x %= 2 * PI
    sums, term, n = [0, 0], ONE, 0
    while term:
        sums[n % 2] += term if n % 4 < 2 else -term
        n += 1
        term = times(term, x) // n
    return sums[0], sums[1]


def powers_of(ratio: int, count: int) -> list[int]:
    """1, ratio, ratio^2, ..."""
    powers = [ONE]
    for _ in range(count - 1):
        powers.append(times(powers[-1], ratio))
    return powers


def exp_of_small(x: int) -> int:
    """exp x, by its series, for |x| <= 1."""
    total, term, n = 0, ONE, 0
    while term not in (0, -1):  # a negative number is shifted to -1 at last
        total += term
        n += 1
        term = times(term, x) // n
    return total


def significant(x: int, bits: int) -> float:
    """The float64 nearest to x of `bits` significant bits."""
    dropped = x.bit_length() - bits
    return math.ldexp(rounded(x, dropped), dropped - PRECISION)


def rounded(x: int, bits: int) -> int:
    """x 2^-bits to the nearest integer, halves up."""
    return (x + (1 << (bits - 1))) >> bits
