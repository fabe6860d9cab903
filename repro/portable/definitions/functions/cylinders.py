"""Bessel functions of orders 0 and 1: j0, j1, y0, y1, the modified k0, k1, k0e, k1e, and the spherical one of order 0.

J and Y by polynomials up to FAR, beyond by Hankel's amplitudes, sine and cosine: NIST's Digital Library of Mathematical Functions, 10.17.
Next to 0 Y and K have a logarithm, 10.8 and 10.31. J and Y have all terms for float32, too: near a zero the error is that of the terms of
which they are made. At an infinite x J and Y are NaN; of numbers below 0 Y and K are.
"""

from repro.portable.definitions.functions.arithmetic import absolute, plus, polynomial
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.functions.trigonometric import cos, sin
from repro.portable.definitions.xp import Array, Backend
from repro.portable.numbers import cylinders, polynomials
from repro.portable.numbers.cylinders import FAR, MIDDLE, NEAR

PIECES = (NEAR, MIDDLE), (MIDDLE, FAR)
TWO_OVER_PI = 2.0 * polynomials.constant("1 / pi")[0]


def _waves(xp: Backend, x: Array, order: int, second: bool) -> Array:
    """J, or Y, from FAR on: sqrt(1 / (pi x)) (P a - Q b), with a and b of sums of sine and cosine."""
    inverse = FAR / x
    square = plus(xp, inverse, inverse * FAR**-2, -0.5 * FAR**-2)
    p, q = (polynomial(xp, square, cylinders.amplitude(order, part)) for part in (0, 1))
    q = q * inverse * (1.0 / FAR)
    s, c = sin(xp, x), cos(xp, x)
    both, apart = s + c, s - c
    if order:
        first, other = (both, -apart) if second else (apart, both)
    else:
        first, other = (both, -apart) if not second else (apart, both)
    root = xp.sqrt(inverse * (polynomials.constant("1 / pi")[0] / FAR))
    y = root * plus(xp, p, first, q * other)
    return -y if order and second else y


def _between(xp: Backend, x: Array, kind: str, order: int) -> Array:
    low, high = (
        polynomial(xp, x - (begin + end) / 2.0, cylinders.between(kind, order, begin, end)) for begin, end in PIECES
    )
    return xp.where(x > MIDDLE, high, low)


def _first_near(xp: Backend, x: Array, order: int) -> Array:
    y = polynomial(xp, x * x, cylinders.first_near(order))
    return y * x if order else y


def _parts(xp: Backend, x: Array) -> tuple[Array, Array, Array]:
    """x, but harmless numbers where it is not near, not between, and not far."""
    return xp.clip(x, 0.0, NEAR), xp.clip(x, NEAR, FAR), xp.where(x > FAR, x, FAR)


def _joined(xp: Backend, x: Array, near: Array, middle: Array, far: Array) -> Array:
    return xp.where(x > FAR, xp.where(x < xp.inf, far, xp.nan), xp.where(x > NEAR, middle, near))


def _first(xp: Backend, x: Array, order: int) -> Array:
    near, middle, far = _parts(xp, x)
    y = _first_near(xp, near, order)
    y = _joined(xp, x, y, _between(xp, middle, "J", order), _waves(xp, far, order, second=False))
    return xp.where(x == x, y, x)


def _second(xp: Backend, x: Array, order: int) -> Array:
    near, middle, far = _parts(xp, x)
    near = xp.where(near > 0.0, near, 1.0)
    square = near * near
    rest, first = (polynomial(xp, square, made(order)) for made in (cylinders.second_near, cylinders.first_near))
    y = plus(xp, log(xp, near) * TWO_OVER_PI, first, rest)
    y = plus(xp, near, y, (1.0 / near) * -TWO_OVER_PI) if order else y
    y = _joined(xp, x, y, _between(xp, middle, "Y", order), _waves(xp, far, order, second=True))
    return xp.where(x > 0.0, y, xp.where(x == 0.0, -xp.inf, xp.nan))


def _third(xp: Backend, x: Array, order: int, bits: int, scaled: bool) -> Array:
    """K, or exp(x) K."""
    near = xp.where((x > 0.0) & (x <= NEAR), x, 1.0)
    square = near * near
    rest = polynomial(xp, square, cylinders.third_near(order, bits))
    other = polynomial(xp, square, cylinders.modified_near(order, bits))
    logarithm = log(xp, near, bits)
    y = plus(xp, near, plus(xp, logarithm, other, rest), 1.0 / near) if order else plus(xp, -logarithm, other, rest)
    four = 4.0 / xp.where(x > NEAR, x, NEAR)  # 1 / x would be subnormal for the largest numbers
    far = polynomial(xp, four * 0.25 - 0.5 / NEAR, cylinders.third_far(order, bits)) * (xp.sqrt(four) * 0.5)
    if scaled:
        y = y * exp(xp, near, bits)
    else:
        half = exp(xp, xp.where(x > NEAR, x * -0.5, -1.0), bits)
        far = far * half * half
    y = xp.where(x > NEAR, far, y)
    return xp.where(x > 0.0, y, xp.where(x == 0.0, xp.inf, xp.nan))


def j0(xp: Backend, x: Array, bits: int = 53) -> Array:
    return _first(xp, absolute(xp, x), 0)


def j1(xp: Backend, x: Array, bits: int = 53) -> Array:
    y = _first(xp, absolute(xp, x), 1)
    return xp.where(x < 0.0, -y, xp.where(x == 0.0, x, y))


def y0(xp: Backend, x: Array, bits: int = 53) -> Array:
    return _second(xp, x, 0)


def y1(xp: Backend, x: Array, bits: int = 53) -> Array:
    return _second(xp, x, 1)


def k0(xp: Backend, x: Array, bits: int = 53) -> Array:
    return _third(xp, x, 0, bits, scaled=False)


def k1(xp: Backend, x: Array, bits: int = 53) -> Array:
    return _third(xp, x, 1, bits, scaled=False)


def k0e(xp: Backend, x: Array, bits: int = 53) -> Array:
    """exp(x) k0 x."""
    return _third(xp, x, 0, bits, scaled=True)


def k1e(xp: Backend, x: Array, bits: int = 53) -> Array:
    """exp(x) k1 x."""
    return _third(xp, x, 1, bits, scaled=True)


def spherical_j0(xp: Backend, x: Array, bits: int = 53) -> Array:
    """sin x / x: 1 at 0, 0 at infinity."""
    size = absolute(xp, x)
    some = (size > 0.0) & (size < xp.inf)
    y = sin(xp, xp.where(some, x, 1.0), bits) / xp.where(some, x, 1.0)
    return xp.where(some, y, xp.where(size == 0.0, 1.0, xp.where(size == size, 0.0, x)))
