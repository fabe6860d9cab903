"""Initial weights differ."""

import math

import numpy as np

from repro.port.causes.case import ARRAYS, INITIAL, Case, Rule, rule
from repro.port.matching import Match

FEWEST = 64
"""Elements that say something about a distribution."""
SURE = 4.0
"""Standard errors that are no chance."""
GAINS = {"1": 1.0, "2": 2.0, "1/3": 1 / 3}
"""Variances times the fan: of Glorot and LeCun, of He, and of PyTorch's dense and convolution layers."""
CUT = 2.0 / 0.87962566
"""The largest number of a normal distribution that is cut off at two deviations, in deviations of what is left."""


@rule(
    ARRAYS,
    "initialize both from one file, or by one distribution: compare its fan, its gain, and whether it is truncated",
)
def another_initializer(case: Case) -> str | None:
    """The values of a weight have another deviation or another distribution, by more than chance explains."""
    for match, a, b in _weights(case):
        ours, theirs = _described(a), _described(b)
        ratio, error = float(a.std() / b.std()), math.sqrt(1 / a.size + 1 / b.size)
        if abs(math.log(ratio)) > SURE * error:
            return (
                f"`{match.names[0]}` is drawn with a deviation of {a.std():.4g} in A, of {b.std():.4g} in B, which is "
                f"{1 / ratio:.3g} times that: {ours}; {theirs}{_fans(a, b, match, case)}"
            )
        if _far(a, b):
            return f"`{match.names[0]}` is drawn from another distribution: {ours} in A, {theirs} in B"
    return None


@rule(ARRAYS, "a constant in one place: carry it over")
def another_constant(case: Case) -> str | None:
    """A weight begins with one number on one side, and with another one on the other."""
    for match, a, b in _differing(case):
        if np.unique(a).size == 1 and np.unique(b).size == 1:
            return f"`{match.names[0]}` begins with {a.flat[0]:.6g} in A, with {b.flat[0]:.6g} in B"
        if np.unique(a).size == 1 or np.unique(b).size == 1:
            which, value = ("A", a.flat[0]) if np.unique(a).size == 1 else ("B", b.flat[0])
            return f"`{match.names[0]}` begins with {value:.6g} everywhere in {which}, and is drawn on the other side"
    return None


@rule(ARRAYS, "carry the weights of one side over into the other one; nothing after them can be compared before")
def drawn_anew(case: Case) -> str | None:
    """Both sides draw their weights from one distribution, by generators of their own."""
    weights = _weights(case)
    if not weights or any(np.intersect1d(a, b).size > a.size // 2 for _, a, b in weights):
        return None
    return f"both sides draw their own numbers, from one distribution as far as {len(weights)} weights show: {_described(weights[0][1])}"


def _differing(case: Case) -> list[tuple[Match, np.ndarray, np.ndarray]]:
    if case.quantity != INITIAL:
        return []
    sides = [side.weights for side in case.sides]
    arrays = [(match, match.arrays(*sides)) for match in case.matching.matches if match.names[0] in case.names]
    return [(match, both[0], both[1]) for match, both in arrays if both]


def _weights(case: Case) -> list[tuple[Match, np.ndarray, np.ndarray]]:
    """Those that differ and are drawn, as their values say."""
    drawn = [(match, a, b) for match, a, b in _differing(case) if min(np.unique(a).size, np.unique(b).size) >= FEWEST]
    return [(match, a.astype(np.float64), b.astype(np.float64)) for match, a, b in drawn]


def _described(array: np.ndarray) -> str:
    """The distribution of an array in words: uniform up to a limit, normal, or normal and cut off at two deviations."""
    values = np.asarray(array, np.float64).ravel()
    deviation, largest = values.std(), np.abs(values).max()
    kurtosis = float(((values - values.mean()) ** 4).mean() / deviation**4)
    error = SURE * math.sqrt(24 / values.size)
    if largest / deviation <= math.sqrt(3) * 1.02 and abs(kurtosis - 1.8) < error:
        return f"uniform of deviation {deviation:.4g}"
    if largest / deviation <= CUT * 1.03 and values.size >= 500 and kurtosis < 2.6:
        return f"normal, cut off at two deviations, of deviation {deviation:.4g}"
    return (
        f"normal of deviation {deviation:.4g}"
        if abs(kurtosis - 3) < error
        else f"some distribution of deviation {deviation:.4g}"
    )


def _far(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two samples come from two distributions, by the test of Kolmogorov and Smirnov: once in 100,000 by chance."""
    x, y = np.sort(a, axis=None), np.sort(b, axis=None)
    every = np.concatenate([x, y])
    shares = np.searchsorted(x, every, "right") / x.size, np.searchsorted(y, every, "right") / y.size
    return bool(np.abs(shares[0] - shares[1]).max() > 2.47 * math.sqrt(1 / x.size + 1 / y.size))


def _fans(a: np.ndarray, b: np.ndarray, match: Match, case: Case) -> str:
    """The fan and the gain that each deviation follows from, where both do and are not the same."""
    shape = case.sides[0].weights[match.a[0]].shape
    if len(match.a) > 1 or len(shape) < 2:
        return ""
    torch = case.sides[0].framework.startswith("PyTorch")
    inputs, outputs = (shape[1], shape[0]) if torch else (shape[-2], shape[-1])
    area = math.prod(shape) // (inputs * outputs)
    fans = {"fan_in": inputs * area, "fan_out": outputs * area, "fan_avg": (inputs + outputs) * area / 2}
    named = []
    for array in (a, b):
        error = SURE / math.sqrt(2 * array.size)
        fits = [
            f"{gain} / {name}"
            for name, fan in fans.items()
            for gain, value in GAINS.items()
            if abs(math.log(array.std() / math.sqrt(value / fan))) < error
        ]
        named.append(" or ".join(fits))
    return f" (variance {named[0]} in A, {named[1]} in B)" if all(named) and named[0] != named[1] else ""


RULES: tuple[Rule, ...] = (another_initializer, another_constant, drawn_anew)
