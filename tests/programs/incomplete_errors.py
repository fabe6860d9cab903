"""Errors of the incomplete gamma and beta functions and of their neighbors, in float64, beside 40 digits of mpmath, as JSON."""

import json
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mp, mpf

from repro.portable.backends.numpy import Backend
from repro.portable.definitions.functions import beta, errors, incomplete, zeta

PARAMETERS = (1e-9, 0.01, 0.5, 3.0, 19.9, 20.1, 60.0, 400.0)
SHARES = (0.1, 0.69, 0.71, 0.99, 1.0, 1.02, 1.29, 1.31, 3.0)
"""Of the parameter, on both sides of where formulas change."""
PAIRS = [(a, a * share) for a in PARAMETERS for share in SHARES] + [(0.3, 0.9), (0.6, 0.9), (2.0, 1e-8), (1e-9, 0.7)]
NEXT_TO_ZERO = [(1e-3, 5e-324), (1e-3, 1e-310), (0.5, 1e-310), (0.5, 3e-302), (1.0, 1e-301)]
BETAS = [(0.5, 0.7, 0.2), (0.03, 53.0, 0.43), (8.0, 3.0, 0.9), (300.0, 200.0, 0.6), (0.2, 0.1, 1e-9)]
LEFT = [(n, x) for n in (1, 2, 5) for x in (-0.3, -2.5, -9.4, -200.7, 0.2, 7.0, 1e4)]


def tails(a: float, x: float) -> tuple[mpf, mpf]:
    """igamma and igammac, each with its own digits."""
    return mpmath.gammainc(a, 0, x, regularized=True), mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def slope(function: Callable[[mpf], mpf], at: mpf) -> mpf:
    step = at * mpf(10) ** -14
    return (function(at + step) - function(at - step)) / (2 * step)


def exact_slope(a: float, x: float) -> mpf:
    """The derivative of igamma, by the smaller tail."""
    if tails(a, x)[0] < 0.5:
        return slope(lambda a: tails(a, mpf(x))[0], mpf(a))
    return -slope(lambda a: tails(a, mpf(x))[1], mpf(a))


def exact_beta(a: float, b: float, x: float) -> mpf:
    lower = mpmath.betainc(a, b, 0, x, regularized=True) < 0.5
    ends = (0, x) if lower else (x, 1)
    change = slope(lambda a: mpmath.betainc(a, b, *ends, regularized=True), mpf(a)) * (1 if lower else -1)
    density = mpf(x) ** (a - 1) * (1 - mpf(x)) ** (mpf(b) - 1) / mpmath.beta(a, b)
    return -change / density / (1 - mpf(x))


def largest(result: np.ndarray, exact: list[mpf]) -> float:
    return max(float(abs((mpf(float(y)) - each) / each)) for y, each in zip(result, exact, strict=True))


def main() -> None:
    mp.dps = 50
    a, x = map(np.array, zip(*PAIRS, strict=True))
    shares = [tails(*pair) for pair in PAIRS]
    slopes = [exact_slope(*pair) for pair in PAIRS]
    small, smallest = map(np.array, zip(*NEXT_TO_ZERO, strict=True))
    densities = [mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)) for a, x in (map(mpf, p) for p in PAIRS)]
    first, second, place = map(np.array, zip(*BETAS, strict=True))
    order, point = (np.array(each, float) for each in zip(*LEFT, strict=True))
    scaled = np.array([-25.0, -1.0, 0.3, 5.0, 27.9, 28.1, 1e3])
    with np.errstate(all="ignore"):
        results = {
            "igamma": largest(incomplete.igamma(Backend, a, x), [lower for lower, _ in shares]),
            "igammac": largest(incomplete.igammac(Backend, a, x), [upper for _, upper in shares]),
            "igamma_slope": largest(incomplete.igamma_slope(Backend, a, x), slopes),
            "igamma_slope next to 0": largest(
                incomplete.igamma_slope(Backend, small, smallest), [exact_slope(*pair) for pair in NEXT_TO_ZERO]
            ),
            "gamma_slope": largest(
                incomplete.gamma_slope(Backend, a, x), [-s / d for s, d in zip(slopes, densities, strict=True)]
            ),
            "beta_slope": largest(beta.slope(Backend, place, first, second), [exact_beta(*each) for each in BETAS]),
            "beta_share": largest(
                beta.share(Backend, first, second, place),
                [mpmath.betainc(a, b, 0, x, regularized=True) for a, b, x in BETAS],
            ),
            "polygamma": largest(zeta.polygamma(Backend, order, point), [mpmath.polygamma(n, mpf(z)) for n, z in LEFT]),
            "erfcx": largest(
                errors.erfcx(Backend, scaled), [mpmath.exp(mpf(z) ** 2) * mpmath.erfc(mpf(z)) for z in scaled]
            ),
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
