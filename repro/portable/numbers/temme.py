"""Coefficients of N. Temme's expansion of the incomplete gamma functions, by fractions.

NIST's Digital Library of Mathematical Functions, 8.12.
"""

from fractions import Fraction
from functools import cache

from repro.portable.numbers.polynomials import Coefficients, floats, stirling_series

ORDERS, TERMS = 12, 22


def _deviations(terms: int) -> list[Fraction]:
    """x / a - 1 = eta + eta^2 / 3 + eta^3 / 36 - ..., from the first on: NIST's DLMF, 8.12.14."""
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, terms + 1):
        products = sum((j * alpha[j] * alpha[n - j + 1] for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - products) / (n + 1))
    return alpha[1:]


@cache
def deviations() -> Coefficients:
    """(x / a - 1) / eta in eta: see orders."""
    return floats(_deviations(TERMS))


@cache
def orders() -> tuple[Coefficients, ...]:
    """N. Temme's c_k in eta, with eta^2 / 2 = x / a - 1 - log(x / a): DLMF, 8.12.7 to 8.12.13."""
    terms = TERMS + 2 * ORDERS
    alpha = [Fraction(0), *_deviations(terms + 2)]
    gamma = _scaled_gamma(ORDERS)
    first = [(n + 2) * alpha[n + 2] - (n == 0) for n in range(terms)]
    rows = [first]
    for k in range(1, ORDERS):
        before = rows[-1]
        rows.append([(-1) ** k * gamma[k] * first[n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    return tuple(floats(row[:TERMS]) for row in rows)


def _scaled_gamma(terms: int) -> list[Fraction]:
    """gamma(a + 1) exp(a) / (a^a sqrt(2 pi a)) = 1 + 1 / (12 a) + 1 / (288 a^2) - ..., the exponential of Stirling's series."""
    logarithm = [Fraction(0)] * (terms + 1)
    for k, each in enumerate(stirling_series((terms + 1) // 2)):
        logarithm[2 * k + 1] = each
    numbers = [Fraction(1)]
    for n in range(1, terms + 1):
        numbers.append(sum((k * logarithm[k] * numbers[n - k] for k in range(1, n + 1)), Fraction(0)) / n)
    return numbers
