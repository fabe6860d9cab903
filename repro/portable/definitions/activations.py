"""Activations and their gradients, by functions of float64.

Arrays are float64, and so are results: functions.rounded makes a definition for float32 of each. Constants are numbers.
Formulas and arguments are those of PyTorch's operations of these names; `gradient` is that of the result. A gradient
that is 0 somewhere is a sum that cancels there: so it takes 53 bits of its functions, for float32, too.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus
from repro.portable.definitions.functions.errors import ndtr, ndtr_of_small
from repro.portable.definitions.functions.exponential import exp, expm1, sigmoids
from repro.portable.definitions.functions.exponential import sigmoid as logistic
from repro.portable.definitions.functions.logarithmic import softplus as softplus_of_one
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import polynomials

DENSITY = polynomials.constant("1 / sqrt (2 pi)")[0]
ROOT = polynomials.constant("2 sqrt (2 / pi)")[0]
"""2 sqrt(2 / pi): tanh u is 2 sigmoid(2 u) - 1."""
CUBIC = 0.044715


def gelu(xp: Backend, x: Array, tanh: bool = False, bits: int = 53) -> Array:
    """x ndtr x; or x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3): D. Hendrycks, K. Gimpel, 1606.08415."""
    x = xp.where(x == -xp.inf, xp.nan, x)
    return x * (logistic(xp, _twice_u(xp, x), bits) if tanh else ndtr(xp, x, bits))


def gelu_backward(xp: Backend, gradient: Array, x: Array, tanh: bool = False, bits: int = 53) -> Array:
    """ndtr x + x times the density of the normal distribution, which is 0 near -0.75."""
    x = _finite(xp, x)
    if tanh:
        share, other = sigmoids(xp, _twice_u(xp, x))
        steepness = plus(xp, x * x, 3.0 * CUBIC, 1.0) * ROOT
        return gradient * plus(xp, x * share, other * steepness, share)
    density = exp(xp, x * x * -0.5) * DENSITY
    share = ndtr(xp, x, bits)
    if bits == 24:
        share = xp.where(absolute(xp, x) < 1.0, ndtr_of_small(xp, x), share)
    return gradient * plus(xp, x, density, share)


def _finite(xp: Backend, x: Array) -> Array:
    """Infinities give NaN, as the product of one with 0 does."""
    return xp.where(absolute(xp, x) < xp.inf, x, xp.nan)


def _twice_u(xp: Backend, x: Array) -> Array:
    return plus(xp, x * x * x, CUBIC, x) * ROOT


def silu(xp: Backend, x: Array, bits: int = 53) -> Array:
    """x sigmoid x."""
    x = xp.where(x == -xp.inf, xp.nan, x)
    return x * logistic(xp, x, bits)


def silu_backward(xp: Backend, gradient: Array, x: Array, bits: int = 53) -> Array:
    """sigmoid x (1 + x (1 - sigmoid x)), which is 0 near -1.28."""
    x = _finite(xp, x)
    share, other = sigmoids(xp, x)
    return gradient * (share * plus(xp, x, other, 1.0))


def mish(xp: Backend, x: Array, bits: int = 53) -> Array:
    """x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2): D. Misra, 1908.08681."""
    x = xp.where(x == -xp.inf, xp.nan, x)
    n, below = _mish_terms(xp, x, bits)
    return x * (n / below)


def mish_backward(xp: Backend, gradient: Array, x: Array, bits: int = 53) -> Array:
    """t + x sigmoid x (1 - t^2) with t = n / (n + 2), which is 0 near -1.19."""
    x = _finite(xp, x)
    n, below = _mish_terms(xp, x, 53)
    inverse = 1.0 / below
    rest = (below - 1.0) * 4.0 * inverse * inverse
    return gradient * plus(xp, xp.clip(x, -800.0, 800.0) * logistic(xp, x), rest, n * inverse)


def _mish_terms(xp: Backend, x: Array, bits: int) -> tuple[Array, Array]:
    """n and n + 2."""
    power = exp(xp, xp.clip(x, -800.0, 300.0), bits)
    return power * (power + 2.0), plus(xp, power, power + 2.0, 2.0)


def softplus(xp: Backend, x: Array, beta: float = 1.0, threshold: float = 20.0, bits: int = 53) -> Array:
    """log(1 + e^(beta x)) / beta; x where beta x is above the threshold."""
    steep = x * beta
    return xp.where(steep > threshold, x, softplus_of_one(xp, steep, bits) * (1.0 / beta))


def softplus_backward(
    xp: Backend, gradient: Array, x: Array, beta: float = 1.0, threshold: float = 20.0, bits: int = 53
) -> Array:
    """sigmoid(beta x)."""
    steep = x * beta
    return xp.where(steep > threshold, gradient, gradient * logistic(xp, steep, bits))


def elu(
    xp: Backend, x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, bits: int = 53
) -> Array:
    """scale x; alpha scale (e^(input_scale x) - 1) below 0. SELU and CELU are ELU with other constants."""
    return xp.where(x < 0.0, expm1(xp, x * input_scale, bits) * (alpha * scale), x * scale)


def elu_backward(
    xp: Backend,
    gradient: Array,
    x: Array,
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    is_result: bool = False,
    bits: int = 53,
) -> Array:
    """From x, or from the result in its place."""
    power = x + alpha * scale if is_result else exp(xp, x * input_scale, bits) * (alpha * scale)
    return xp.where(x > 0.0, gradient * scale, gradient * input_scale * power)


def hardsigmoid(xp: Backend, x: Array, bits: int = 53) -> Array:
    """(x + 3) / 6 from 0 to 1."""
    return xp.clip(x + 3.0, 0.0, 6.0) * SIXTH


def hardsigmoid_backward(xp: Backend, gradient: Array, x: Array, bits: int = 53) -> Array:
    """1 / 6 between -3 and 3."""
    return xp.where(absolute(xp, x) < 3.0, gradient * SIXTH, 0.0)


def hardswish(xp: Backend, x: Array, bits: int = 53) -> Array:
    """x hardsigmoid x."""
    return x * xp.clip(x + 3.0, 0.0, 6.0) * SIXTH


def hardswish_backward(xp: Backend, gradient: Array, x: Array, bits: int = 53) -> Array:
    """(2 x + 3) / 6 between -3 and 3, and 0 or 1 elsewhere."""
    inside = gradient * ((x * 2.0 + 3.0) * SIXTH)
    return xp.where(x <= -3.0, 0.0, xp.where(x >= 3.0, gradient, inside))


SIXTH = 1.0 / 6.0


def log_sigmoid_backward(xp: Backend, gradient: Array, x: Array, bits: int = 53) -> Array:
    """sigmoid(-x)."""
    return gradient * logistic(xp, -x, bits)


def sigmoid_backward(xp: Backend, gradient: Array, y: Array, bits: int = 53) -> Array:
    """y (1 - y), of the result."""
    return gradient * ((1.0 - y) * y)


def tanh_backward(xp: Backend, gradient: Array, y: Array, bits: int = 53) -> Array:
    """1 - y^2, of the result: (1 - y) (1 + y)."""
    return gradient * ((1.0 - y) * (1.0 + y))


def glu(xp: Backend, a: Array, b: Array, bits: int = 53) -> Array:
    """a sigmoid b, of the halves of what PyTorch's operation takes."""
    return a * logistic(xp, b, bits)


def glu_backward(xp: Backend, gradient: Array, a: Array, b: Array, bits: int = 53) -> tuple[Array, Array]:
    """With respect to both halves."""
    share, other = sigmoids(xp, b, bits)
    return gradient * share, gradient * (a * (share * other))
