"""Pointwise operations: activations, scale, dropout, rotary positions."""

from functools import reduce

from repro.portable.definitions.grids import Operation, exact_dot, exact_sum
from repro.portable.definitions.random import keep
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import NODE_BITS, SCALE, SHIFT, STEP_BITS


def _add_forward(xp: Backend, a, b):
    """a + b, of one shape."""
    return xp.r32(xp.f64(a) + xp.f64(b)), ()


def _add_backward(xp: Backend, saved, gradient, needs, shapes):
    return gradient, gradient


add = Operation(_add_forward, _add_backward)


def add_up(xp: Backend, parts):
    """Arrays added from the first on, rounded to float32 each time."""
    return reduce(lambda a, b: xp.r32(xp.f64(a) + xp.f64(b)), parts)


def pixels(xp: Backend, images):
    """uint8 -> float32, as the networks of the reference trainers take them."""
    return xp.r32(xp.f64(images) * SCALE - SHIFT)


def _relu_forward(xp: Backend, x):
    """max(x, 0), NaN where x is."""
    return xp.where(x < 0, 0.0, x), (x,)


def _relu_backward(xp: Backend, saved, gradient, needs, shapes):
    """0 where x is 0."""
    return (xp.where(saved[0] > 0, gradient, 0.0),)


relu = Operation(_relu_forward, _relu_backward)


def _activation_forward(xp: Backend, x, name: str):
    """x G(x), or G(x) for `sigmoid`, by the table of this name; NaN where x is."""
    factor = piecewise(xp, x, name, derivative=False)
    if name != "sigmoid":
        factor = xp.f64(_inside(xp, x, name)) * factor
    return xp.where(x != x, x, xp.r32(factor)), (x,)


def _activation_backward(xp: Backend, saved, gradient, needs, shapes, name: str):
    (x,) = saved
    slope = xp.r32(xp.f64(gradient) * piecewise(xp, x, name, derivative=True))
    return (xp.where(x != x, x, slope),)


activation = Operation(_activation_forward, _activation_backward)


def _inside(xp: Backend, x, name: str):
    """x itself, or where the activation is a constant beyond its table, the table's end."""
    return xp.clip(x, -tables.reach(name), tables.reach(name)) if name == "tanh" else x


def piecewise(xp: Backend, x, name: str, derivative: bool):
    """A factor or a derivative, float64, by tables.activation; any number where x is NaN."""
    nodes, slopes = xp.tables(x, tables.activation, name, derivative)
    end = tables.reach(name)
    inside = xp.clip(xp.where(x != x, 0.0, x), -end, end)
    steps = xp.integer(xp.rint(xp.f64(inside) * 2.0**STEP_BITS)) + end * 2**STEP_BITS
    split = STEP_BITS - NODE_BITS
    node, rest = xp.shift_right(steps, split), steps & (2**split - 1)
    return xp.take(nodes, node) + xp.take(slopes, node) * xp.f64(rest)


def _affine_forward(xp: Backend, x, scale, shift):
    """x scale + shift, or x scale where shift is None; both [C], for the last axis of x."""
    y = xp.f64(x) * xp.f64(scale)
    return xp.r32(y if shift is None else y + xp.f64(shift)), (x, scale, shift)


def _affine_backward(xp: Backend, saved, gradient, needs, shapes):
    x, scale, shift = saved
    rows, values = (xp.reshape(array, (-1, array.shape[-1])) for array in (gradient, x))
    grad_x = xp.r32(xp.f64(gradient) * xp.f64(scale)) if needs[0] else None
    grad_scale = xp.r32(exact_dot(xp, rows, values, (0,), batch=True))[0]
    grad_shift = None if shift is None else xp.r32(exact_sum(xp, rows, (0,), batch=True))[0]
    return grad_x, grad_scale, grad_shift


affine = Operation(_affine_forward, _affine_backward)


def _dropout_forward(xp: Backend, x, key, step, rate: float, rows: bool):
    """x / (1 - rate) where random.keep says so, 0 elsewhere; with `rows` for whole channels of each sample."""
    shape = (x.shape[0], *(1,) * (len(x.shape) - 2), x.shape[-1]) if rows else tuple(x.shape)
    held = keep(xp, key, step, shape, rate)
    return _drop(xp, x, held, rate), (held,)


def _dropout_backward(xp: Backend, saved, gradient, needs, shapes, rate: float, rows: bool):
    return _drop(xp, gradient, saved[0], rate), None, None


dropout = Operation(_dropout_forward, _dropout_backward)


def _drop(xp: Backend, x, held, rate: float):
    return xp.where(held, xp.r32(xp.f64(x) * tables.float32(1 / (1 - rate))), 0.0)


def _rotate_forward(xp: Backend, x, base: float):
    """Rotary positions: x [..., T, D], the pairs (x_i, x_(i + D/2)) turned by the angle of position and i."""
    return _turned(xp, x, base, 1.0), ()


def _rotate_backward(xp: Backend, saved, gradient, needs, shapes, base: float):
    return (_turned(xp, gradient, base, -1.0),)


rotate = Operation(_rotate_forward, _rotate_backward)


def _turned(xp: Backend, x, base: float, sign: float):
    half = x.shape[-1] // 2
    cos, sin = (xp.f64(table) for table in xp.tables(x, tables.rotations, x.shape[-2], x.shape[-1], base))
    a, b, sin = xp.f64(x[..., :half]), xp.f64(x[..., half:]), sin * sign
    return xp.concatenate((xp.r32(a * cos - b * sin), xp.r32(b * cos + a * sin)), -1)
