"""Inverse error functions: erfinv, and the normal distribution's ndtri.

With w = -log(1 - x^2), erfinv x / x is smooth in w near 0 and erfinv |x| / sqrt w in sqrt w beyond: M. Giles,
Approximating the erfinv Function, GPU Computing Gems 2 (2011). For float64 a step of Halley's method follows.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import cache

from repro.portable import coefficients
from repro.portable.coefficients import PI
from repro.portable.operations.functions.arithmetic import absolute, plus, polynomial, with_sign
from repro.portable.operations.functions.errors import erf, erfc, scaled_erfc
from repro.portable.operations.functions.exponential import exp
from repro.portable.operations.functions.logarithmic import log
from repro.portable.xp import Array, Backend

SPLIT = 5.0
"""The w from which on the root of w is taken."""
ENDS = 2.2, 11.0, 28.0
"""Of sqrt w: one polynomial up to the second, another beyond, where float32 has no number."""
TERMS = 13, 16, 14
ROOT_OF_PI = float(PI.sqrt())
ROOT_OF_TWO = float(Decimal(2).sqrt())


def _inverse(w: Decimal) -> tuple[Decimal, Decimal]:
    """x and erfinv x, by Newton's method for log erfc."""
    power = (-w).exp()
    x = (1 - power).sqrt()
    aim = (power / (1 + x)).ln()
    y = x if w < 2 else w.sqrt() - w.sqrt().ln() / w.sqrt()
    for _ in range(60):
        scaled = scaled_erfc(y)
        step = (scaled.ln() - y * y - aim) * scaled * PI.sqrt() / 2
        y += step
        if abs(step) < Decimal(10) ** -25:
            break
    return x, y


@cache
def _near() -> tuple[float, ...]:
    """erfinv x / x, in w less half of SPLIT."""
    half = Decimal(SPLIT) / 2

    def function(u: Decimal) -> Decimal:
        x, y = _inverse(u + half)
        return y / x

    return coefficients.interpolated(function, -half, half, TERMS[0])


@cache
def _far(part: int) -> tuple[float, ...]:
    """erfinv x / sqrt w, in 1 / sqrt w less its middle."""
    middle = _middle(part)
    function: Callable[[Decimal], Decimal] = lambda u: _inverse((u + middle) ** -2)[1] * (u + middle)  # noqa: E731
    half = Decimal(1 / ENDS[part]) - middle
    return coefficients.interpolated(function, -half, half, TERMS[part + 1])


def _middle(part: int) -> Decimal:
    return Decimal((1 / ENDS[part] + 1 / ENDS[part + 1]) / 2)


def _from(xp: Backend, x: Array, w: Array, bits: int) -> Array:
    """erfinv |x|, whose w is given."""
    near = x * polynomial(xp, xp.clip(w, -1.0, SPLIT) - SPLIT / 2, _near())
    root = xp.sqrt(xp.clip(w, ENDS[0] ** 2, ENDS[2] ** 2))
    inverse = 1.0 / root
    far = root * polynomial(xp, inverse - float(_middle(0)), _far(0))
    if bits == 53:
        farther = root * polynomial(xp, inverse - float(_middle(1)), _far(1))
        far = xp.where(root > ENDS[1], farther, far)
    return xp.where(w < SPLIT, near, far)


def erfinv(xp: Backend, x: Array, bits: int = 53) -> Array:
    """The number of which x is the erf: infinity at 1, NaN beyond."""
    size = absolute(xp, x)
    other = 1.0 - size
    y = _from(xp, size, -log(xp, xp.where(other > 0.0, other * (1.0 + size), 1.0), bits), bits)
    if bits == 53:
        residual = xp.where(size < 0.5, erf(xp, y) - size, other - erfc(xp, y))
        y = _improved(xp, y, residual)
    y = xp.where(size == 1.0, xp.inf, xp.where(size < 1.0, y, xp.nan))
    return with_sign(xp, y, x)


def ndtri(xp: Backend, p: Array, bits: int = 53) -> Array:
    """The number of which p is the ndtr: infinite at 0 and 1, NaN beyond."""
    lower = p < 0.5
    tail = xp.where(lower, p, 1.0 - p)
    sound = xp.where(tail > 0.0, tail, 0.5)
    size = 1.0 - sound * 2.0
    y = _from(xp, size, -log(xp, sound * 4.0 * (1.0 - sound), bits), bits)
    if bits == 53:
        residual = xp.where(size < 0.5, erf(xp, y) - size, sound * 2.0 - erfc(xp, y))
        y = xp.where(sound < 2.0**-1000, y, _improved(xp, y, residual))
    y = xp.where(tail == 0.0, xp.inf, xp.where(tail > 0.0, y * ROOT_OF_TWO, xp.nan))
    return xp.where(lower, -y, y)


def _improved(xp: Backend, y: Array, residual: Array) -> Array:
    """A step of Halley's method, of what erf y is too large."""
    half = exp(xp, y * y * 0.5)
    step = residual * half * half * (ROOT_OF_PI / 2)
    return y - step / plus(xp, y, step, 1.0)
