"""What all implementations of portable numerics share: bit budgets, tables of exp and log, constants.

The rules, and the proofs that they hold, are in docs/portable.md.
"""

import math
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from repro.errors import UsageError

SIGNIFICAND = 53
"""Bits of a float64: an integer up to 2^53 is exact."""
BITS = 18
"""Bits of an operand of a sum of products, where its length allows as many."""
FEWEST_BITS = 10
LIMIT = 200
"""A group whose largest magnitude is 2^LIMIT or more becomes NaN; one below 2^-LIMIT has the grid of 2^-LIMIT."""
SUM_BITS = 40
"""The summands of a softmax' denominator are multiples of 2^-SUM_BITS."""
LOSS_BITS = 30
"""Losses are multiples of 2^-LOSS_BITS."""


def operand_bits(terms: int) -> int:
    """Bits for the two operands of a sum of `terms` products, so that 2 bits + ceil(log2 terms) <= 53.

    UsageError where fewer than FEWEST_BITS would be left.
    """
    bits = min(BITS, (SIGNIFICAND - math.ceil(math.log2(terms))) // 2)
    if bits < FEWEST_BITS:
        raise UsageError(
            f"portable numerics: a sum of {terms} products leaves {bits} bits for each operand, fewer than "
            f"{FEWEST_BITS}; make the batch or the layer smaller"
        )
    return bits


# exp(-d) for d = (2^13 j + k) 2^-20: two tables of 8192 entries, each entry rounded to 26 bits, so that their product
# is exact. From d = 64 on, exp rounds to 0 on the grid of the sum.
EXP_BITS, EXP_SPLIT = 20, 13
EXP_END = 64.0
# log(s): s = c (1 + r), where c, a multiple of 2^-8, is the index of a first table, and r, rounded to a multiple of
# 2^-20, of a second. Both hold multiples of 2^-LOSS_BITS, so their sum is exact.
LOG_COARSE_BITS, LOG_FINE_BITS = 8, 20


@cache
def exp_tables() -> tuple[np.ndarray, np.ndarray]:
    """exp(-j 2^-7) and exp(-k 2^-20), float64 [8192] each, rounded to 26 bits."""
    steps = range(2**EXP_SPLIT)
    with localcontext() as context:
        context.prec = 40
        coarse = [_significant((Decimal(-j) / 2 ** (EXP_BITS - EXP_SPLIT)).exp(), 26) for j in steps]
        fine = [_significant((Decimal(-k) / 2**EXP_BITS).exp(), 26) for k in steps]
    return np.array(coarse), np.array(fine)


@cache
def grid_tables(bits: int) -> tuple[np.ndarray]:
    """What rounds to a grid of so many bits when it is added and taken away again, for each exponent in a bit pattern.

    float64 [2048]: 1.5 2^52 steps of the grid, so that its last bit is one step, and so is the sum's; NaN above LIMIT.
    """
    e = np.arange(2048) - 1022
    table = np.ldexp(1.5, np.clip(e, -LIMIT, LIMIT) - bits + SIGNIFICAND - 1)
    return (np.where(e > LIMIT, np.nan, table),)


@cache
def log_tables(largest: int) -> tuple[np.ndarray, np.ndarray]:
    """log(j 2^-8) from j = 2^8 to largest 2^8, and log(1 + k 2^-20), float64, multiples of 2^-LOSS_BITS."""
    with localcontext() as context:
        context.prec = 40
        one, finest = 2**LOG_COARSE_BITS, 2**LOG_FINE_BITS
        coarse = [_on_grid((Decimal(j) / one).ln()) for j in range(one, largest * one + 1)]
        fine = [_on_grid((1 + Decimal(k) / finest).ln()) for k in range(finest // one + 1)]
    return np.array(coarse), np.array(fine)


def _significant(x: Decimal, bits: int) -> float:
    """The float64 nearest to x among those with so many significant bits."""
    exponent = math.frexp(float(x))[1]
    return math.ldexp(int((x * Decimal(2) ** (bits - exponent)).to_integral_value()), exponent - bits)


def _on_grid(x: Decimal) -> float:
    return math.ldexp(int((x * 2**LOSS_BITS).to_integral_value()), -LOSS_BITS)


# A pixel enters as pixel * SCALE - SHIFT: SCALE has 26 bits, so the product is exact.
SCALE = _significant(1 / (255 * Decimal("0.3081")), 26)
SHIFT = 0.1307 / 0.3081

# Adam's constants are float32 values, so that their products with the float32 state are exact.
BETA1, BETA2, EPSILON = float(np.float32(0.9)), float(np.float32(0.999)), 1e-8


@cache
def adam_corrections() -> np.ndarray:
    """1 / (1 - beta1^t) and 1 / (1 - beta2^t) for the updates t = 1, 2, ..., float64 [2, n]; the last ones are 1.

    Powers by repeated multiplication: pow() of the C library is not the same everywhere.
    """
    powers = [1.0, 1.0]
    rows: list[list[float]] = []
    while not rows or rows[-1] != [1.0, 1.0]:
        powers = [powers[0] * BETA1, powers[1] * BETA2]
        rows.append([1 / (1 - power) for power in powers])
    return np.array(rows).T.copy()
