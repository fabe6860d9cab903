"""Operations on numbers one by one: activations, scale and shift, dropout, rotary positions."""

from repro.portable import tables
from repro.portable.constants import NODE_BITS, STEP_BITS
from repro.portable.operations.grids import Operation, exact_dot, exact_sum
from repro.portable.operations.random import keep


def _add_forward(X, a, b):
    """a + b, of one shape."""
    return X.r32(X.f64(a) + X.f64(b)), ()


def _add_backward(X, saved, gradient, needs, shapes):
    return gradient, gradient


add = Operation(_add_forward, _add_backward)


def _relu_forward(X, x):
    """max(x, 0), NaN where x is."""
    return X.where(x < 0, 0.0, x), (x,)


def _relu_backward(X, saved, gradient, needs, shapes):
    """0 where x is 0."""
    return (X.where(saved[0] > 0, gradient, 0.0),)


relu = Operation(_relu_forward, _relu_backward)


def _activation_forward(X, x, name: str):
    """x G(x), or G(x) for `sigmoid`, by the table of this name; NaN where x is."""
    factor = piecewise(X, x, name, derivative=False)
    if name != "sigmoid":
        factor = X.f64(_inside(X, x, name)) * factor
    return X.where(x != x, x, X.r32(factor)), (x,)


def _activation_backward(X, saved, gradient, needs, shapes, name: str):
    (x,) = saved
    slope = X.r32(X.f64(gradient) * piecewise(X, x, name, derivative=True))
    return (X.where(x != x, x, slope),)


activation = Operation(_activation_forward, _activation_backward)


def _inside(X, x, name: str):
    """x itself, or where the activation is a constant beyond its table, the table's end."""
    return X.clip(x, -tables.reach(name), tables.reach(name)) if name == "tanh" else x


def piecewise(X, x, name: str, derivative: bool):
    """A factor or a derivative, float64, by tables.activation; any number where x is NaN."""
    nodes, slopes = X.tables(x, tables.activation, name, derivative)
    end = tables.reach(name)
    inside = X.clip(X.where(x != x, 0.0, x), -end, end)
    steps = X.integer(X.rint(X.f64(inside) * 2.0**STEP_BITS)) + end * 2**STEP_BITS
    split = STEP_BITS - NODE_BITS
    node, rest = X.shift_right(steps, split), steps & (2**split - 1)
    return X.take(nodes, node) + X.take(slopes, node) * X.f64(rest)


def _affine_forward(X, x, scale, shift):
    """x scale + shift, or x scale where shift is None; both [C], for the last axis of x."""
    y = X.f64(x) * X.f64(scale)
    return X.r32(y if shift is None else y + X.f64(shift)), (x, scale, shift)


def _affine_backward(X, saved, gradient, needs, shapes):
    x, scale, shift = saved
    rows, values = (X.reshape(array, (-1, array.shape[-1])) for array in (gradient, x))
    of_x = X.r32(X.f64(gradient) * X.f64(scale)) if needs[0] else None
    of_scale = X.r32(exact_dot(X, rows, values, (0,), batch=True))[0]
    of_shift = None if shift is None else X.r32(exact_sum(X, rows, (0,), batch=True))[0]
    return of_x, of_scale, of_shift


affine = Operation(_affine_forward, _affine_backward)


def _dropout_forward(X, x, key, step, rate: float, rows: bool):
    """x / (1 - rate) where random.keep says so, 0 elsewhere; with `rows` for whole channels of each sample."""
    shape = (x.shape[0], *(1,) * (len(x.shape) - 2), x.shape[-1]) if rows else tuple(x.shape)
    kept = keep(X, key, step, shape, rate)
    return _drop(X, x, kept, rate), (kept,)


def _dropout_backward(X, saved, gradient, needs, shapes, rate: float, rows: bool):
    return _drop(X, gradient, saved[0], rate), None, None


dropout = Operation(_dropout_forward, _dropout_backward)


def _drop(X, x, kept, rate: float):
    return X.where(kept, X.r32(X.f64(x) * tables.float32(1 / (1 - rate))), 0.0)


def _rotate_forward(X, x, base: float):
    """Rotary positions: x [..., T, D], the pairs (x_i, x_(i + D/2)) turned by the angle of position and i."""
    return _turned(X, x, base, 1.0), ()


def _rotate_backward(X, saved, gradient, needs, shapes, base: float):
    return (_turned(X, gradient, base, -1.0),)


rotate = Operation(_rotate_forward, _rotate_backward)


def _turned(X, x, base: float, sign: float):
    half = x.shape[-1] // 2
    cos, sin = (X.f64(table) for table in X.tables(x, tables.rotations, x.shape[-2], x.shape[-1], base))
    a, b, sin = X.f64(x[..., :half]), X.f64(x[..., half:]), sin * sign
    return X.concatenate((X.r32(a * cos - b * sin), X.r32(b * cos + a * sin)), -1)
