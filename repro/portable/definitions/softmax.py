"""Softmax and its logarithm, of the last axis, of float32 or float64."""

from repro.portable.definitions.bits import is_float64
from repro.portable.definitions.exponentials import logarithm, powers
from repro.portable.definitions.functions.arithmetic import plus
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.grids import Operation, exact_dot, exact_sum
from repro.portable.definitions.sums import exact
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers.constants import EXP_BITS, POWER_BITS

LAST = (-1,)


def shares(xp: Backend, x: Array) -> Array:
    """The softmax, of the type of x; those of float32 below 2^-100 keep their value, too."""
    if is_float64(x):
        power = exp(xp, x - xp.maximum_of(x))
        return power / exact(xp, power, LAST)
    power, total = powers(xp, xp.f64(x) * 2.0**EXP_BITS)
    return xp.f32(power * (1.0 / total))


def shares_backward(xp: Backend, y: Array, gradient: Array, slices: int = 1) -> Array:
    """y (g - the sum of g y), of the result; of float64 g y - y (the sum of g y)."""
    if is_float64(y):
        product = gradient * y
        return plus(xp, -y, exact(xp, product, LAST), product)
    along = xp.f64(xp.f32(exact_dot(xp, gradient, y, LAST, slices=slices)))
    return xp.f32(xp.f64(y) * (xp.f64(gradient) - along))


def _forward(xp: Backend, x: Array):
    power, total = powers(xp, xp.f64(x) * 2.0**EXP_BITS)
    y = xp.r32(power * (1.0 / total))
    return y, (y,)


def _backward(xp: Backend, saved, gradient, needs, shapes):
    (y,) = saved
    along = xp.r32(exact_dot(xp, gradient, y, LAST))
    return (xp.r32(xp.f64(y) * (xp.f64(gradient) - xp.f64(along))),)


softmax = Operation(_forward, _backward)


def log_softmax(xp: Backend, x: Array) -> Array:
    """x - max - log(sum of exp(x - max)), of the type of x."""
    if is_float64(x):
        below = x - xp.maximum_of(x)
        return below - log(xp, exact(xp, exp(xp, below), LAST))
    z = xp.f64(x)
    _, total = powers(xp, z * 2.0**EXP_BITS)
    return xp.r32((z - xp.maximum_of(z)) - logarithm(xp, total * 2.0**-POWER_BITS))


def log_softmax_backward(xp: Backend, y: Array, gradient: Array) -> Array:
    """g - softmax(x) sum(g); the softmax is that of y, of float64 exp(y)."""
    if is_float64(y):
        return plus(xp, -exp(xp, y), exact(xp, gradient, LAST), gradient)
    share = xp.f64(shares(xp, y))
    along = xp.f64(xp.f32(exact_sum(xp, gradient, LAST)))
    return xp.f32(xp.f64(gradient) - share * along)
