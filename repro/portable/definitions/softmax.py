"""Softmax and its logarithm, of the last axis."""

from repro.portable.definitions.exponentials import logarithm, powers
from repro.portable.definitions.grids import Operation, exact_dot, exact_sum
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers.constants import EXP_BITS


def shares(xp: Backend, x: Array) -> Array:
    """The softmax, float32; those below 2^-100 keep their value, too."""
    power, total, _ = powers(xp, xp.f64(x) * 2.0**EXP_BITS)
    return xp.f32(power * (1.0 / total))


def shares_backward(xp: Backend, y: Array, gradient: Array, slices: int = 1) -> Array:
    """y (g - the sum of g y), of the result."""
    along = xp.f64(xp.f32(exact_dot(xp, gradient, y, (-1,), slices=slices)))
    return xp.f32(xp.f64(y) * (xp.f64(gradient) - along))


def _forward(xp: Backend, x: Array):
    power, total, _ = powers(xp, xp.f64(x) * 2.0**EXP_BITS)
    y = xp.r32(power * (1.0 / total))
    return y, (y,)


def _backward(xp: Backend, saved, gradient, needs, shapes):
    (y,) = saved
    along = xp.r32(exact_dot(xp, gradient, y, (-1,)))
    return (xp.r32(xp.f64(y) * (xp.f64(gradient) - xp.f64(along))),)


softmax = Operation(_forward, _backward)


def log_softmax(xp: Backend, x: Array) -> Array:
    """x - max - log(sum of exp(x - max)), float32."""
    z = xp.f64(x)
    _, total, bits = powers(xp, z * 2.0**EXP_BITS)
    return xp.r32((z - xp.maximum_of(z)) - logarithm(xp, total * 2.0**-bits))


def log_softmax_backward(xp: Backend, y: Array, gradient: Array) -> Array:
    """g - softmax(x) sum(g); the softmax is that of y."""
    share = xp.f64(shares(xp, y))
    along = xp.f64(xp.f32(exact_sum(xp, gradient, (-1,))))
    return xp.f32(xp.f64(gradient) - share * along)
