"""Reference: activations and their gradients, in float64."""

import numpy as np

from reference.arithmetic import Array
from reference.functions import exp, expm1, sigmoid
from reference.functions import softplus as softplus_of_one
from reference.special import erf, ndtr
from repro.portable.numbers import polynomials

CUBIC = 0.044715


def gelu(x: Array, tanh: bool = False, bits: int = 53) -> Array:
    x = np.where(np.isneginf(x), np.nan, x)
    return x * (sigmoid(_twice_u(x), bits) if tanh else ndtr(x, bits))


def gelu_backward(gradient: Array, x: Array, tanh: bool = False, bits: int = 53) -> Array:
    x = np.where(np.isinf(x), np.nan, x)
    if tanh:
        share, other = sigmoid(_twice_u(x)), sigmoid(-_twice_u(x))
        steepness = (x * x * (3.0 * CUBIC) + 1.0) * polynomials.constant("2 sqrt (2 / pi)")[0]
        return gradient * (x * share * (other * steepness) + share)
    density = exp(x * x * -0.5, 53) * polynomials.constant("1 / sqrt (2 pi)")[0]
    share = ndtr(x, bits)
    if bits == 24:
        near = 0.5 + 0.5 * erf(np.clip(x, -1, 1) * polynomials.constant("sqrt 1/2")[0])
        share = np.where(np.abs(x) < 1, near, share)
    return gradient * (x * density + share)


def _twice_u(x: Array) -> Array:
    return (x * x * x * CUBIC + x) * polynomials.constant("2 sqrt (2 / pi)")[0]


def silu(x: Array, bits: int = 53) -> Array:
    x = np.where(np.isneginf(x), np.nan, x)
    return x * sigmoid(x, bits)


def silu_backward(gradient: Array, x: Array, bits: int = 53) -> Array:
    x = np.where(np.isinf(x), np.nan, x)
    return gradient * (sigmoid(x) * (x * sigmoid(-x) + 1.0))


def mish(x: Array, bits: int = 53) -> Array:
    x = np.where(np.isneginf(x), np.nan, x)
    power = exp(np.minimum(x, 300.0), bits)
    n = power * (power + 2.0)
    return x * (n / (n + 2.0))


def mish_backward(gradient: Array, x: Array, bits: int = 53) -> Array:
    x = np.where(np.isinf(x), np.nan, x)
    power = exp(np.minimum(x, 300.0), 53)
    n = power * (power + 2.0)
    inverse = 1.0 / (n + 2.0)
    rest = ((n + 2.0) - 1.0) * 4.0 * inverse * inverse
    return gradient * (np.clip(x, -800.0, 800.0) * sigmoid(x) * rest + n * inverse)


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0, bits: int = 53) -> Array:
    return np.where(x * beta > threshold, x, softplus_of_one(x * beta, bits) * (1.0 / beta))


def softplus_backward(gradient: Array, x: Array, beta: float = 1.0, threshold: float = 20.0, bits: int = 53) -> Array:
    return np.where(x * beta > threshold, gradient, gradient * sigmoid(x * beta, bits))


def elu(x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, bits: int = 53) -> Array:
    return np.where(x < 0, expm1(x * input_scale, bits) * (alpha * scale), x * scale)


def elu_backward(
    gradient: Array,
    x: Array,
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    is_result: bool = False,
    bits: int = 53,
) -> Array:
    power = x + alpha * scale if is_result else exp(x * input_scale, bits) * (alpha * scale)
    return np.where(x > 0, gradient * scale, gradient * input_scale * power)


def hardsigmoid(x: Array, bits: int = 53) -> Array:
    return np.clip(x + 3.0, 0.0, 6.0) * (1.0 / 6.0)


def hardsigmoid_backward(gradient: Array, x: Array, bits: int = 53) -> Array:
    return np.where(np.abs(x) < 3, gradient * (1.0 / 6.0), 0.0)


def hardswish(x: Array, bits: int = 53) -> Array:
    return x * np.clip(x + 3.0, 0.0, 6.0) * (1.0 / 6.0)


def hardswish_backward(gradient: Array, x: Array, bits: int = 53) -> Array:
    return np.select([x <= -3, x >= 3], [0.0, gradient], gradient * ((x * 2.0 + 3.0) * (1.0 / 6.0)))


def log_sigmoid_backward(gradient: Array, x: Array, bits: int = 53) -> Array:
    return gradient * sigmoid(-x, bits)


def sigmoid_backward(gradient: Array, y: Array, bits: int = 53) -> Array:
    return gradient * ((1.0 - y) * y)


def tanh_backward(gradient: Array, y: Array, bits: int = 53) -> Array:
    return gradient * ((1.0 - y) * (1.0 + y))


def glu(a: Array, b: Array, bits: int = 53) -> Array:
    return a * sigmoid(b, bits)


def glu_backward(gradient: Array, a: Array, b: Array, bits: int = 53) -> tuple[Array, Array]:
    share = sigmoid(b, bits)
    return gradient * share, gradient * (a * (share * sigmoid(-b, bits)))
