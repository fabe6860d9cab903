"""Tables of functions, by integer arithmetic.

They are of exp, log, activations and rotations; constants of optimizers and schedules come the same way.
No function of a C library is called, so each machine makes the same tables. Inside, a number x is the integer x 2^256;
errors are far below what the tables are rounded to.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np

from repro.portable.arguments import check_number
from repro.portable.numbers.constants import (
    BITS,
    EXP_BITS,
    EXP_SPLIT,
    LOSS_BITS,
    NODE_BITS,
    SMALLEST,
    STEP_BITS,
    VALUE_BITS,
)
from repro.portable.numbers.fixed_point import (
    ONE,
    PI,
    PRECISION,
    cos_sin,
    exp_of_small,
    over,
    powers_of,
    rounded,
    significant,
    times,
)

# --- exp and log ----------------------------------------------------------------------------------------------------


@cache
def exp() -> tuple[np.ndarray, np.ndarray]:
    """exp(-j 2^-7), float64 [2^14], and exp(-k 2^-20), [2^13], of 26 significant bits: their products are exact."""
    return tuple(  # type: ignore[return-value]
        np.array([significant(power, 26) for power in powers_of(exp_of_small(-(ONE >> bits)), count)])
        for bits, count in ((EXP_BITS - EXP_SPLIT, 2 ** (EXP_SPLIT + 1)), (EXP_BITS, 2**EXP_SPLIT))
    )


LOG_COARSE_BITS, LOG_FINE_BITS = 8, 20


@cache
def log() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """k ln 2 for k < 64, log(j 2^-8) for 2^8 <= j <= 2^9, log(1 + r 2^-20) for r 2^-20 <= 2^-8.

    float64, multiples of 2^-LOSS_BITS: sums of them are exact.
    """
    one, finest = 2**LOG_COARSE_BITS, 2**LOG_FINE_BITS
    with localcontext() as context:
        context.prec = 60
        logs = (
            [k * Decimal(2).ln() for k in range(64)],
            [(Decimal(j) / one).ln() for j in range(one, 2 * one + 1)],
            [(1 + Decimal(r) / finest).ln() for r in range(finest // one + 2)],
        )
        return tuple(  # type: ignore[return-value]
            np.array([math.ldexp(int((x * 2**LOSS_BITS).to_integral_value()), -LOSS_BITS) for x in values])
            for values in logs
        )


@cache
def powers(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """2^bits / p and p, float32 [512], p being the power of two above a magnitude with this exponent in its pattern.

    Negative exponents, of numbers with a sign, count from the end, and so are the same.
    """
    e = np.clip(np.arange(256) - 126, SMALLEST, 127)
    up, p = np.ldexp(np.float32(1), bits - e), np.ldexp(np.float32(1), e)
    return np.tile(up, 2), np.tile(np.where(np.arange(256) > 253, np.float32(np.nan), p), 2)


# --- activations ----------------------------------------------------------------------------------------------------


@cache
def activation(name: str, derivative: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and slopes, float64 [2 reach 2^10 + 1] each, of a factor G or of the derivative of the activation.

    The activation is x G(x), or G(x) for `sigmoid`. From node i, at x = i 2^-10 - reach, a line climbs by the slope for
    each 2^-20. Both are multiples of 2^-50, so a point on the line is exact.
    """
    values = [rounded(pair[derivative], PRECISION - VALUE_BITS) for pair in _both(name)]
    if name != "tanh":
        values[0] = 0  # it counts for all x beyond: a factor of 2^-46 would make 10^6 of -10^20
    slopes = [rounded(after - before, STEP_BITS - NODE_BITS) for before, after in pairwise(values)]
    return np.ldexp(np.array(values, float), -VALUE_BITS), np.ldexp(np.array([*slopes, 0], float), -VALUE_BITS)


def reach(name: str) -> int:
    """An activation's table goes from -reach to reach; beyond, its ends count."""
    return ACTIVATIONS[name][1]


@cache
def _both(name: str) -> list[tuple[int, int]]:
    """The factor and the derivative of the activation at each node."""
    right_of, last = ACTIVATIONS[name][0], reach(name) * 2**NODE_BITS
    right = right_of(last + 1)
    if name == "tanh":
        left = right[:0:-1]  # both are even
    else:
        left = [(ONE - factor, (0 if name == "sigmoid" else ONE) - slope) for factor, slope in right[:0:-1]]
    if name == "sigmoid":
        left = [(factor, -slope) for factor, slope in left]
    return left + right


def _sigmoids(count: int) -> list[int]:
    return [over(ONE, ONE + power) for power in powers_of(exp_of_small(-(ONE >> NODE_BITS)), count)]


def _sigmoid(count: int) -> list[tuple[int, int]]:
    return [(s, times(s, ONE - s)) for s in _sigmoids(count)]


def _silu(count: int) -> list[tuple[int, int]]:
    return [(s, s + (i * times(s, ONE - s) >> NODE_BITS)) for i, s in enumerate(_sigmoids(count))]


def _tanh(count: int) -> list[tuple[int, int]]:
    powers = powers_of(exp_of_small(-(ONE >> (NODE_BITS - 1))), count)
    values = [over(ONE - power, ONE + power) for power in powers]
    return [((y << NODE_BITS) // i if i else ONE, ONE - times(y, y)) for i, y in enumerate(values)]


def _gelu(count: int) -> list[tuple[int, int]]:
    """x times the distribution function of the normal distribution: D. Hendrycks and K. Gimpel, arXiv 1606.08415."""
    entries, scale = [], over(ONE, math.isqrt(2 * PI << PRECISION))
    density, ratio, square = scale, exp_of_small(-(ONE >> (2 * NODE_BITS + 1))), exp_of_small(-(ONE >> 2 * NODE_BITS))
    for i in range(count):
        x = i << (PRECISION - NODE_BITS)
        # 1/2 + density (x + x^3 / 3 + x^5 / (3 5) + ...): no sum of numbers of both signs
        total, term, n = 0, x, 1
        while term >> PRECISION - 140:
            total += term
            n += 2
            term = times(times(term, x), x) // n
        factor = (ONE >> 1) + times(density, total)
        entries.append((factor, factor + times(x, density)))
        density, ratio = times(density, ratio), times(ratio, square)
    return entries


def _gelu_tanh(count: int) -> list[tuple[int, int]]:
    """The table of GELU by tanh: x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    root = math.isqrt((2 << 2 * PRECISION + PRECISION) // PI)
    cubic, unit = 44715 * ONE // 10**6, powers_of(exp_of_small(-(ONE >> NODE_BITS)), 2**16)
    entries = []
    for i in range(count):
        x = i << (PRECISION - NODE_BITS)
        square = times(x, x)
        u = 2 * times(root, x + times(cubic, times(x, square)))
        node, rest = divmod(u, ONE >> NODE_BITS)
        s = over(ONE, ONE + times(unit[node], exp_of_small(-rest)))
        slope = 2 * times(root, ONE + 3 * times(cubic, square))
        entries.append((s, s + times(times(x, slope), times(s, ONE - s))))
    return entries


ACTIVATIONS: dict[str, tuple[Callable[[int], list[tuple[int, int]]], int]] = {
    "gelu": (_gelu, 8),
    "gelu_tanh": (_gelu_tanh, 8),
    "silu": (_silu, 32),
    "tanh": (_tanh, 16),
    "sigmoid": (_sigmoid, 32),
}


# --- 1 / pi -----------------------------------------------------------------------------------------------------------

DIGIT_BITS, DIGITS = 25, 7
FIRST_EXPONENT, LAST_EXPONENT = 1043, 2046
"""The exponents of 2^20 and of the largest number, as in the pattern of float64."""


@cache
def inverse_pi() -> tuple[np.ndarray, ...]:
    """2^(e - 1075) / pi modulo 2, for exponents e from FIRST_EXPONENT on: DIGITS digits of DIGIT_BITS bits, last first.

    float64. With a significand s of 53 bits, s 2^(e - 1075) is the number of that exponent.
    """
    bits = DIGIT_BITS * DIGITS - 1
    precision = bits + LAST_EXPONENT - 1075 + 64
    inverse = (1 << 2 * precision) // _pi(precision)
    digits = [inverse << (e - FIRST_EXPONENT) for e in range(FIRST_EXPONENT, LAST_EXPONENT + 1)]
    drop = precision - bits + 1075 - FIRST_EXPONENT
    return tuple(
        np.array([(each >> drop + DIGIT_BITS * place) % 2**DIGIT_BITS for each in digits], float)
        for place in range(DIGITS)
    )


def _pi(precision: int) -> int:
    """pi 2^precision: 16 arctan 1/5 - 4 arctan 1/239, as J. Machin found."""

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, (1 << precision + 32) // n, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // n**2, k + 1
        return total

    return 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239) >> 32


# --- positions, optimizers, schedules ---------------------------------------------------------------------------------


@cache
def rotations(positions: int, size: int, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin, float32 [positions, size / 2], of n base^(-2 i / size): J. Su et al., arXiv 2104.09864."""
    with localcontext() as context:
        context.prec = 70
        angles = [int((Decimal(base).ln() * -2 * i / size).exp() * ONE) for i in range(size // 2)]
    both = [[cos_sin(n * angle) for angle in angles] for n in range(positions)]
    cos, sin = (np.array([[pair[k] / ONE for pair in row] for row in both], np.float32) for k in (0, 1))
    return cos, sin


@cache
def circle(length: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of 2 pi k / length for k < length, float64."""
    both = [cos_sin(2 * PI * k // length) for k in range(length)]
    cos, sin = (np.array([pair[kind] / ONE for pair in both]) for kind in (0, 1))
    return cos, sin


@lru_cache(maxsize=16)
def fourier(length: int, rows: int, columns: int) -> tuple[np.ndarray, ...]:
    """cos, then sin, of 2 pi j k / length for j < rows and k < columns, float64 [rows, 2 columns]; and two slices of it.

    The slices are integers, float32: their sum q 2^-BITS + q' 2^-2 BITS is the nearest such number.
    """
    turns = np.outer(np.arange(rows), np.arange(columns)) % length
    whole = np.concatenate([table[turns] for table in circle(length)], 1)
    upper = np.rint(np.ldexp(whole, BITS))
    lower = np.rint(np.ldexp(np.ldexp(whole, BITS) - upper, BITS))
    return whole, upper.astype(np.float32), lower.astype(np.float32)


LARGEST_BETA = 0.99999
"""The largest beta of Adam: the table of a larger one would have more than 2^22 steps."""


@cache
def adam(beta1: float, beta2: float) -> np.ndarray:
    """1 / (1 - beta^t) for t = 1, 2, ... and both betas, float64 [2, steps], until both are 1."""
    for beta in (beta1, beta2):
        check_number("Adam", "beta", beta, 0.0, LARGEST_BETA)  # first of all, as with NaN there were no end
    betas = np.array([[beta1], [beta2]])
    rows = [1 / (1 - betas)]
    powers = betas
    while (rows[-1][:, -1] > 1).any():
        steps = np.broadcast_to(betas, (2, 2**12))
        powers = np.multiply.accumulate(np.concatenate((powers[:, -1:], steps), 1), 1)[:, 1:]
        rows.append(1 / (1 - powers))
    table = np.concatenate(rows, 1)
    return table[:, : np.argmax((table == 1).all(0)) + 1]


def cosine(step: int, steps: int, peak: float, low: float = 0.0, warmup: int = 0) -> float:
    """The learning rate of an update, counted from 0: up in a line for `warmup` updates, then down half a cosine."""
    if step < warmup:
        return float32(peak * (step + 1) / warmup)
    done = min(step - warmup, steps - warmup)
    height = (ONE + cos_sin(PI * done // max(1, steps - warmup))[0]) / (2 * ONE)
    return float32(low + (peak - low) * height)


def float32(x: float) -> float:
    """The float32 nearest to x."""
    return float(np.float32(x))


# --- turns of columns -------------------------------------------------------------------------------------------------


def turns(size: int) -> tuple[np.ndarray, ...]:
    """Turns of an even number of columns, int32, in which each pair meets once.

    [turns, pairs] the first and the second column of each pair; [turns, columns] the place of each column among these, and
    its partner.
    """
    places, pairs = list(range(size)), []
    for _ in range(size - 1):
        half = size // 2
        pairs.append([*places[:half], *places[half:][::-1]])
        places = [places[0], places[-1], *places[1:-1]]
    both = np.array(pairs, np.int32).reshape(-1, 2, size // 2)
    order = np.argsort(both.reshape(-1, size), -1)
    partners = np.take_along_axis(both[:, ::-1].reshape(-1, size), order, -1)
    return both[:, 0], both[:, 1], order.astype(np.int32), partners
