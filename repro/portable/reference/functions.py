"""Reference: elementary functions of float64, and their rounding.

The formulas of repro/portable/operations/functions with NumPy's own functions in place of arithmetic on bits, and with
Python's integers. `bits` is 24 or 53, as there. A function of two arrays takes both of one shape.
"""

import numpy as np

from repro.portable import polynomials, tables
from repro.portable.reference.arithmetic import Array

(LN2,), (LN2_HIGH, LN2_LOW) = polynomials.constant("ln 2"), polynomials.constant("ln 2", 42)
(PI,) = polynomials.constant("pi")
ROOT = float.fromhex("0x1.6a09e667f3bccp-1")


def polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """By Horner's rule."""
    total = np.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        total = total * x + each
    return total


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b, and what its rounding took away."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a b, and what its rounding took away, by extended integers: both have 53 bits, and nothing overflows."""
    product = a * b
    lost = np.zeros_like(product)
    for at in np.ndindex(product.shape):
        if np.isfinite(product[at]) and product[at]:
            lost[at] = float(_exact(a[at]) * _exact(b[at]) - _exact(product[at]))
    return product, lost


def _exact(x: float):
    from fractions import Fraction

    return Fraction(float(x))
