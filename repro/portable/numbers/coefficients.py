"""Coefficients of polynomials, by decimal arithmetic.

Each polynomial meets its function at Chebyshev's nodes of an interval, which comes within a small factor of the least
largest error (L. Trefethen, Approximation Theory and Approximation Practice, theorem 16.1). The functions are summed
with 60 digits from their series; no function of a C library is called, so each machine has the same coefficients, of
which each is rounded once, to float64.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import count

DIGITS = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863")
Function = Callable[[Decimal], Decimal]


def series(first: Decimal | int, ratio: Callable[[int], Decimal]) -> Function:
    """first (1 + ratio(1) x (1 + ratio(2) x (1 + ...))), until a term changes nothing."""

    def function(x: Decimal) -> Decimal:
        total = term = Decimal(first)
        for n in count(1):
            term *= ratio(n) * x
            if total + term == total:
                return total
            total += term
        raise AssertionError

    return function


def interpolated(function: Function, low: Decimal | float, high: Decimal | float, terms: int) -> tuple[float, ...]:
    """The polynomial of this many terms that meets the function at Chebyshev's nodes: its coefficients, last first."""
    with localcontext() as context:
        context.prec = DIGITS
        middle, half = (Decimal(low) + Decimal(high)) / 2, (Decimal(high) - Decimal(low)) / 2
        nodes = [middle + half * cosine(PI * (2 * k + 1) / (2 * terms)) for k in range(terms)]
        differences = [function(node) for node in nodes]
        for order in range(1, terms):  # Newton's divided differences
            for k in range(terms - 1, order - 1, -1):
                differences[k] = (differences[k] - differences[k - 1]) / (nodes[k] - nodes[k - order])
        coefficients = [differences[-1]]
        for difference, node in zip(differences[-2::-1], nodes[-2::-1], strict=True):  # times x - node, and plus
            coefficients = [
                a - node * b for a, b in zip([*coefficients, Decimal(0)], [Decimal(0), *coefficients], strict=True)
            ]
            coefficients[-1] += difference
        return tuple(map(float, coefficients))


_even_cosine = series(1, lambda n: Decimal(-1) / ((2 * n - 1) * 2 * n))


def cosine(x: Decimal) -> Decimal:
    return _even_cosine(x * x)


def parts(x: Decimal, *bits: int) -> tuple[float, ...]:
    """Numbers that add up to x: each but the last is x, or what is left of it, cut to this many bits; the last rounded."""
    parts = []
    with localcontext() as context:
        context.prec = DIGITS
        for kept in bits:
            unit = Decimal(2) ** (math.frexp(x)[1] - kept)
            parts.append(float(x // unit * unit))
            x -= Decimal(parts[-1])
    return (*parts, float(x))
