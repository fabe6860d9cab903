"""Inverse error functions: erfinv, and the normal distribution's ndtri.

With w = -log(1 - x^2), erfinv x / x is smooth in w near 0 and erfinv |x| / sqrt w in sqrt w beyond: M. Giles,
Approximating the erfinv Function, GPU Computing Gems 2 (2011). For float64 a step of Halley's method follows.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial, with_sign
from repro.portable.definitions.functions.errors import erf, erfc
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials
from repro.portable.numbers.polynomials import ERFINV_ENDS, ERFINV_SPLIT, erfinv_far, erfinv_middle, erfinv_near


def _from(xp: Backend, x: Array, w: Array, bits: int) -> Array:
    """erfinv |x|, whose w is given."""
    near = x * polynomial(xp, xp.clip(w, -1.0, ERFINV_SPLIT) - ERFINV_SPLIT / 2, erfinv_near())
    root = xp.sqrt(xp.clip(w, ERFINV_ENDS[0] ** 2, ERFINV_ENDS[2] ** 2))
    inverse = 1.0 / root
    far = root * polynomial(xp, inverse - erfinv_middle(0), erfinv_far(0))
    if bits == 53:
        farther = root * polynomial(xp, inverse - erfinv_middle(1), erfinv_far(1))
        far = xp.where(root > ERFINV_ENDS[1], farther, far)
    return xp.where(w < ERFINV_SPLIT, near, far)


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
    y = xp.where(tail == 0.0, xp.inf, xp.where(tail > 0.0, y * polynomials.constant("sqrt 2")[0], xp.nan))
    return xp.where(lower, -y, y)


def _improved(xp: Backend, y: Array, residual: Array) -> Array:
    """A step of Halley's method, of what erf y is too large."""
    half = exp(xp, y * y * 0.5)
    step = residual * half * half * polynomials.constant("sqrt pi / 2")[0]
    return y - step / plus(xp, y, step, 1.0)
