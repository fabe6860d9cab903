"""Powers of rows, and logarithms of their sums, by tables: see docs/reference/specification.md."""

from repro.portable.definitions.bits import exponent, pow2_f64
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import EXP_BITS, EXP_SPLIT, POWER_BITS, SIGNIFICAND
from repro.portable.numbers.tables import LOG_COARSE_BITS, LOG_FINE_BITS

LAST = 2.0 ** (2 * EXP_SPLIT + 1) - 1
"""From here on, 128 below the largest, powers are 0, as e^-128 is in float32."""

HALF = POWER_BITS // 2


def powers(xp: Backend, steps: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """exp of each row of steps, float64 in units of 2^-EXP_BITS, over that of its largest.

    Returns the powers, float64, in a unit of 2^-POWER_BITS, and the sums of the integers next to them, of size 1 on the
    last axis, rounded once. What is 0 changes no sum, so a row may be longer by what a mask leaves out. Powers have 25 bits, however small: that of the rest r is 1 - r, as r^2 < 2^-40. NaN gives NaN; what the mask leaves out gives 0. Steps that are
    products are exact, or rounded: they are subtracted.
    """
    if mask is not None:
        steps = xp.where(mask, steps, -xp.inf)
    below = xp.maximum_of(steps) - steps
    distance = xp.clip(xp.where(below != below, 0.0, below), 0.0, LAST)
    nearest = xp.rint(distance)
    index = xp.integer(nearest)
    coarse, fine = xp.tables(steps, tables.exp)
    power = xp.take(coarse, xp.shift_right(index, EXP_SPLIT)) * xp.take(fine, index & (2**EXP_SPLIT - 1))
    power = xp.where(distance < LAST, power, 0.0)  # a choice keeps TensorFlow from another order of three factors
    power = power * (1.0 - (distance - nearest) * 2.0**-EXP_BITS)
    power = xp.where(below != below, xp.nan, power * 2.0**POWER_BITS)
    if mask is not None:
        power = xp.where(mask, power, 0.0)
    return power, _total(xp, xp.rint(power))


def _total(xp: Backend, x: Array) -> Array:
    """The sum of each row of integers of up to 2^POWER_BITS; of long rows by halves, each of which adds up exactly."""
    if x.shape[-1] <= 2 ** (SIGNIFICAND - POWER_BITS):
        return xp.sum(x, (-1,))
    high = xp.rint(x * 2.0**-HALF)
    return xp.sum(high, (-1,)) * 2.0**HALF + xp.sum(x - high * 2.0**HALF, (-1,))


def logarithm(xp: Backend, s: Array) -> Array:
    """log s of 1 <= s < 2^63, a multiple of 2^-LOSS_BITS; NaN of NaN."""
    powers_of_two, coarse, fine = xp.tables(s, tables.log)
    sound = xp.where(s != s, 1.0, s)
    e = exponent(xp, sound)
    m = sound * pow2_f64(xp, -e)
    j = xp.floor(m * 2.0**LOG_COARSE_BITS)
    rest = xp.rint((m / (j * 2.0**-LOG_COARSE_BITS) - 1.0) * 2.0**LOG_FINE_BITS)
    y = (
        xp.take(powers_of_two, e)
        + xp.take(coarse, xp.integer(j) - 2**LOG_COARSE_BITS)
        + xp.take(fine, xp.integer(rest))
    )
    return xp.where(s != s, s, y)
