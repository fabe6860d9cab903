"""Softmax and its logarithm, of the last axis."""

from repro.portable.constants import EXP_BITS
from repro.portable.operations.attention import powers
from repro.portable.operations.grids import exact_sum
from repro.portable.operations.losses import logarithm
from repro.portable.xp import Backend


def log_softmax(xp: Backend, x):
    """x - max - log(sum of exp(x - max)), float32."""
    z = xp.f64(x)
    _, total, bits = powers(xp, xp.rint(z * 2.0**EXP_BITS))
    return xp.r32((z - xp.maximum_of(z)) - logarithm(xp, total * 2.0**-bits))


def log_softmax_backward(xp: Backend, y, gradient):
    """g - softmax(x) sum(g); the softmax is that of y."""
    shares, total, _ = powers(xp, xp.rint(xp.f64(y) * 2.0**EXP_BITS))
    share = xp.f64(xp.r32(shares * (1.0 / total)))
    along = xp.f64(xp.r32(exact_sum(xp, gradient, (-1,))))
    return xp.r32(xp.f64(gradient) - share * along)
