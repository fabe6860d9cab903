"""Errors of Bessel functions beside 40 digits of mpmath, as JSON: in units in the last place of float32, and relative ones of float64.

Those of float64 are relative to the size of the waves: near a zero of a function no digit may be right.
"""

import json
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mp, mpf

from repro.portable.backends.numpy import Backend
from repro.portable.definitions import functions
from repro.portable.definitions.functions import cylinders

FUNCTIONS: dict[str, Callable[[mpf], mpf]] = {
    "j0": mpmath.j0,
    "j1": mpmath.j1,
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
    "k0": lambda x: mpmath.besselk(0, x),
    "k1": lambda x: mpmath.besselk(1, x),
    "k0e": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "k1e": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "spherical_j0": mpmath.sinc,
}
ZEROS = [
    float(function(n))
    for n in range(1, 9)
    for function in (
        lambda n: mpmath.besseljzero(0, n),
        lambda n: mpmath.besseljzero(1, n),
        lambda n: mpmath.besselyzero(0, n),
        lambda n: mpmath.besselyzero(1, n),
    )
]


def arguments(number: int) -> np.ndarray:
    """float32 of all magnitudes, many between 0 and 30, and next to zeros."""
    random = np.random.Generator(np.random.Philox(7))
    large, small = 2.0 ** random.uniform(-120, 120, number), random.uniform(0.0, 30.0, 3 * number)
    next_to = np.array(ZEROS, np.float32)
    return np.concatenate(
        [large.astype(np.float32), small.astype(np.float32), next_to, np.nextafter(next_to, np.float32(0))]
    )


def main() -> None:
    mp.dps = 40
    x = arguments(150)
    results = {}
    for name, exact in FUNCTIONS.items():
        right = [exact(mpf(float(each))) for each in x]
        single = functions.rounded(getattr(cylinders, name))(Backend, x)
        double = getattr(cylinders, name)(Backend, x.astype(np.float64))
        usual = [2.0**-126 < abs(each) < 2.0**127 for each in right]
        units = [
            abs(mpf(float(y)) - each) / mpf(float(np.spacing(abs(np.float32(each)))))
            for y, each in zip(single, right, strict=True)
        ]
        size = [
            max(abs(each), 0 if name[0] == "k" else min(1, 1 / mpf(float(at)) ** (1 if name[0] == "s" else 0.5)))
            for each, at in zip(right, x, strict=True)
        ]
        far = [abs(mpf(float(y)) - each) / most for y, each, most in zip(double, right, size, strict=True)]
        results[name] = [
            float(max(error for error, here in zip(errors, usual, strict=True) if here)) for errors in (units, far)
        ]
    print(json.dumps(results))


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main()
