"""Complex numbers as pairs of a real and an imaginary part, float64: the parts of results are rounded by who calls."""

from repro.portable.definitions import products
from repro.portable.definitions.functions.arithmetic import absolute, plus, with_sign
from repro.portable.definitions.functions.exponential import exp
from repro.portable.definitions.functions.inverse import atan2
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.definitions.functions.powers import hypot
from repro.portable.definitions.functions.trigonometric import cos, sin
from repro.portable.definitions.xp import Array, Backend

Pair = tuple[Array, Array]


def times(xp: Backend, a: Pair, b: Pair) -> Pair:
    """The product: that of two parts of float32 is exact, and their sum is rounded once."""
    return plus(xp, a[0], b[0], -(a[1] * b[1])), plus(xp, a[0], b[1], a[1] * b[0])


def cumulative(xp: Backend, z: Pair) -> Pair:
    """The products of the first 1, 2, ... numbers along the last axis: with what is 1, 2, 4, ... places before."""
    step = 1
    while step < z[0].shape[-1]:
        more = times(xp, tuple(each[..., step:] for each in z), tuple(each[..., :-step] for each in z))
        z = tuple(xp.concatenate([each[..., :step], rest], -1) for each, rest in zip(z, more, strict=True))
        step *= 2
    return z


def product(xp: Backend, z: Pair) -> Pair:
    """The product along the last axis, which stays with size 1: of neighbors, then of their products, and so on."""
    while (terms := z[0].shape[-1]) > 1:
        even = tuple(each[..., 0 : terms - 1 : 2] for each in z)
        made = times(xp, even, tuple(each[..., 1::2] for each in z))
        z = tuple(
            xp.concatenate([each, rest[..., terms - 1 :]], -1) if terms % 2 else each
            for each, rest in zip(made, z, strict=True)
        )
    return z


def over(xp: Backend, a: Pair, b: Pair) -> Pair:
    """The quotient, without large squares: R. Smith, CACM 5 (1962). By 0 each part is divided alone."""
    real_is_larger = absolute(xp, b[0]) >= absolute(xp, b[1])
    first, second = xp.where(real_is_larger, b[0], b[1]), xp.where(real_is_larger, b[1], b[0])
    zero = (first == 0) & (second == 0)
    ratio = second / xp.where(zero, 1.0, first)
    divisor = plus(xp, second, ratio, first)
    real = xp.where(real_is_larger, plus(xp, a[1], ratio, a[0]), plus(xp, a[0], ratio, a[1])) / divisor
    imaginary = xp.where(real_is_larger, plus(xp, -a[0], ratio, a[1]), plus(xp, a[1], ratio, -a[0])) / divisor
    alone = absolute(xp, first)
    return xp.where(zero, a[0] / alone, real), xp.where(zero, a[1] / alone, imaginary)


def size(xp: Backend, z: Pair) -> Array:
    """The absolute value."""
    return hypot(xp, *z)


def angle(xp: Backend, z: Pair) -> Array:
    return atan2(xp, z[1], z[0])


def direction(xp: Backend, z: Pair) -> Pair:
    """The number of size 1 in the direction of z; 0 of 0."""
    divisor = size(xp, z)
    divisor = xp.where(divisor == 0, 1.0, divisor)
    return z[0] / divisor, z[1] / divisor


def polar(xp: Backend, length: Array, turn: Array) -> Pair:
    """The number of this size and angle."""
    return length * cos(xp, turn), length * sin(xp, turn)


def exponential(xp: Backend, z: Pair) -> Pair:
    """exp, by Euler's formula; real of a real number."""
    length = exp(xp, z[0])
    real, imaginary = polar(xp, length, z[1])
    return xp.where(z[1] == 0, length, real), xp.where(z[1] == 0, z[1], imaginary)


def logarithm(xp: Backend, z: Pair) -> Pair:
    """The logarithm of the absolute value, near 1 as log(1 + (|z|^2 - 1)) / 2, and the angle."""
    length, a, b = size(xp, z), absolute(xp, z[0]), absolute(xp, z[1])
    near = (length > 0.5) & (length < 2.0)
    large, small = (xp.where(near, each, 1.0) for each in (xp.where(a > b, a, b), xp.where(a > b, b, a)))
    square = plus(xp, large - 1.0, large + 1.0, small * small)
    return xp.where(near, log1p(xp, square) * 0.5, log(xp, length)), angle(xp, z)


def root(xp: Backend, z: Pair) -> Pair:
    """The square root in the right half plane, without a difference of near numbers."""
    large = xp.sqrt(size(xp, z) * 0.5 + absolute(xp, z[0]) * 0.5)
    small = xp.where(large == 0, z[1], z[1] * 0.5 / xp.where(large == 0, 1.0, large))
    left = z[0] < 0
    return xp.where(left, absolute(xp, small), large), xp.where(left, with_sign(xp, large, z[1]), small)


def matmul(xp: Backend, a: Pair, b: Pair, slices: int) -> Pair:
    """[..., M, K] and [..., K, N], float32 or float64 -> [..., M, N], rounded once.

    Both parts of a row of the first, or of a column of the second, have one grid.
    """
    rows, turned = xp.concatenate([a[0], -a[1]], -1), xp.concatenate([a[1], a[0]], -1)
    columns = xp.concatenate([b[0], b[1]], -2)
    return products.batched(xp, rows, columns, slices), products.batched(xp, turned, columns, slices)
