"""Steps of recurrent layers, and their gradients.

Every sum and product of elements rounds to float32 by itself, as separate operations do. Arrays of a step have one row
for each sequence: what the layer makes of the input, `given` [N, G H], the state [N, H], and the weight [G H, H] of the
state as integers with their scales, see weights. `bias` [G H] belongs to the state's product.
"""

from collections.abc import Callable
from typing import Any

from repro.portable.definitions import activations
from repro.portable.definitions.functions import exponential, rounded
from repro.portable.definitions.grids import product, quantize, scaled
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers.constants import BITS

Gates = tuple[Array, ...]


def weights(xp: Backend, weight: Array) -> Any:
    """The weight on one grid: for the product with a state, and for that with a gradient."""
    q, p = quantize(xp, weight, (0, 1))
    q = xp.f64(q)
    return (xp.transpose(q)[None], p), (q[None], p)


def times(xp: Backend, x: Array, weight: Any, plus: Array | None = None) -> Array:
    """Rows of x times a weight, and what is added, float32, rounded once."""
    q, p = quantize(xp, x, (1,))
    return xp.r32(scaled(xp, product(xp, xp.f64(q)[None], weight[0]), 2 * BITS, p, weight[1], plus=plus))


# --- float32 arithmetic -----------------------------------------------------------------------------------------------


def _add(xp: Backend, a: Array, b: Array) -> Array:
    return xp.f32(xp.f64(a) + xp.f64(b))


def _less(xp: Backend, a: Any, b: Array) -> Array:
    return xp.f32((a if isinstance(a, float) else xp.f64(a)) - xp.f64(b))


def _mul(xp: Backend, a: Array, b: Array) -> Array:
    return xp.f32(xp.f64(a) * xp.f64(b))


def _relu(xp: Backend, x: Array) -> Array:
    return xp.where(x < 0, 0.0, x)


_sigmoid, _tanh = rounded(exponential.sigmoid), rounded(exponential.tanh)
_sigmoid_back = rounded(activations.sigmoid_backward)
_tanh_back = rounded(activations.tanh_backward)


def _relu_back(xp: Backend, gradient: Array, y: Array) -> Array:
    return xp.where(y > 0, gradient, 0.0)


def _parts(x: Array, number: int) -> Gates:
    size = x.shape[1] // number
    return tuple(x[:, index * size : (index + 1) * size] for index in range(number))


def _only(xp: Backend, running: Array | None, new: Array, old: Array) -> Array:
    """The new state of sequences that are not at their end, or not yet at their start."""
    return new if running is None else xp.where(running, new, old)


# --- long short-term memory -------------------------------------------------------------------------------------------


def lstm(xp: Backend, given: Array, state: Gates, weight: Any, bias: Array | None, running: Array | None) -> Any:
    """S. Hochreiter and J. Schmidhuber, Neural Computation 9 (8), 1997, as PyTorch has it. The next state, and what its gradient needs."""
    hidden, cell = state
    x = _add(xp, given, times(xp, hidden, weight, bias))
    ingoing, forgetting, candidate, outgoing = _parts(x, 4)
    i, f, g, o = (
        _sigmoid(xp, ingoing),
        _sigmoid(xp, forgetting),
        _tanh(xp, candidate),
        _sigmoid(xp, outgoing),
    )
    c = _add(xp, _mul(xp, f, cell), _mul(xp, i, g))
    t = _tanh(xp, c)
    h = _mul(xp, o, t)
    return (_only(xp, running, h, hidden), _only(xp, running, c, cell)), (i, f, g, o, t)


def lstm_back(xp: Backend, gradients: Gates, state: Gates, saved: Gates, weight: Any, running: Array | None) -> Any:
    """Gradients of what was given, of the state's product and of the state."""
    (grad_h, grad_c), (_, cell), (i, f, g, o, t) = gradients, state, saved
    grad_cell = _add(xp, grad_c, _tanh_back(xp, _mul(xp, grad_h, o), t))
    gates = (
        _sigmoid_back(xp, _mul(xp, grad_cell, g), i),
        _sigmoid_back(xp, _mul(xp, grad_cell, cell), f),
        _tanh_back(xp, _mul(xp, grad_cell, i), g),
        _sigmoid_back(xp, _mul(xp, grad_h, t), o),
    )
    grad_x = _joined(xp, running, gates)
    result = times(xp, grad_x, weight), _mul(xp, grad_cell, f)
    return grad_x, grad_x, tuple(_only(xp, running, new, old) for new, old in zip(result, gradients, strict=True))


def _joined(xp: Backend, running: Array | None, parts: Gates) -> Array:
    if running is not None:
        parts = tuple(xp.where(running, part, 0.0) for part in parts)
    return xp.concatenate(parts, 1)


# --- gated recurrent units --------------------------------------------------------------------------------------------


def gru(xp: Backend, given: Array, state: Gates, weight: Any, bias: Array | None, running: Array | None) -> Any:
    """K. Cho et al., arXiv 1406.1078, as PyTorch has it."""
    (hidden,) = state
    own_r, own_z, own_n = _parts(times(xp, hidden, weight, bias), 3)
    given_r, given_z, given_n = _parts(given, 3)
    r, z = _sigmoid(xp, _add(xp, own_r, given_r)), _sigmoid(xp, _add(xp, own_z, given_z))
    n = _tanh(xp, _add(xp, given_n, _mul(xp, own_n, r)))
    away = _less(xp, hidden, n)
    h = _add(xp, _mul(xp, away, z), n)
    return (_only(xp, running, h, hidden),), (r, z, n, own_n, away)


def gru_back(xp: Backend, gradients: Gates, state: Gates, saved: Gates, weight: Any, running: Array | None) -> Any:
    (grad_h,), (r, z, n, own_n, away) = gradients, saved
    grad_away = _mul(xp, grad_h, z)
    grad_n = _tanh_back(xp, _less(xp, grad_h, grad_away), n)
    grad_r = _sigmoid_back(xp, _mul(xp, grad_n, own_n), r)
    grad_z = _sigmoid_back(xp, _mul(xp, grad_h, away), z)
    grad_x = _joined(xp, running, (grad_r, grad_z, grad_n))
    grad_own = _joined(xp, running, (grad_r, grad_z, _mul(xp, grad_n, r)))
    return grad_x, grad_own, (_only(xp, running, _add(xp, grad_away, times(xp, grad_own, weight)), grad_h),)


# --- Elman's networks -------------------------------------------------------------------------------------------------


def _elman(function: Callable[..., Array]) -> Callable[..., Any]:
    def step(xp: Backend, given: Array, state: Gates, weight: Any, bias: Array | None, running: Array | None) -> Any:
        h = function(xp, _add(xp, given, times(xp, state[0], weight, bias)))
        return (_only(xp, running, h, state[0]),), (h,)

    return step


def _elman_back(function: Callable[..., Array]) -> Callable[..., Any]:
    def back(xp: Backend, gradients: Gates, state: Gates, saved: Gates, weight: Any, running: Array | None) -> Any:
        grad_x = _joined(xp, running, (function(xp, gradients[0], saved[0]),))
        return grad_x, grad_x, (_only(xp, running, times(xp, grad_x, weight), gradients[0]),)

    return back


rnn_tanh, rnn_tanh_back = _elman(_tanh), _elman_back(_tanh_back)
rnn_relu, rnn_relu_back = _elman(_relu), _elman_back(_relu_back)
