"""Gradients that are exact sums over samples, however these are split: `repro portable --elastic`.

A gradient of a weight has one grid for each output, whose unit the largest number of the whole step decides. A
micro-batch, or a rank, does not know that number. So units are at fixed places, 2^(w k) for integers k, and what is added
is kept as two sums of integers, at the place of the largest number so far and at the next one below. Where a larger
number comes, the second sum is left out and the first one takes its place: it is what it would have been from the
beginning. So the sums depend on the terms alone, not on their order, nor on what was added with what.

`Parts` are (a, b, k), float64: they stand for (a 2^w + b) 2^(w (k - 2) - more). k broadcasts over a and b.

`Rows` are the operands of such products, while they are few: (q, a, b, k), float32 [rows, I], [rows, O], [rows, O], and
float64 [1, O]. What is done with the sums may be done with each term as well.
"""

from repro.portable.definitions import convolution, grids
from repro.portable.definitions.bits import exponent_above, pow2_f32, pow2_f64
from repro.portable.definitions.grids import operands, product, quantize
from repro.portable.definitions.xp import Array, Axes, Backend
from repro.portable.numbers.constants import BITS

Parts = tuple[Array, Array, Array]
Rows = tuple[Array, Array, Array, Array]
PRODUCT = BITS + 1
"""Bits between two places, of operands of products: each of the two integers is at most 2^BITS."""
SUM = 25
"""Bits between two places of numbers that are only added: at most 2^24, so that float64 holds sums of 2^29."""


def _place(xp: Backend, x: Array, axes: Axes, width: int) -> Array:
    """The least k with |x| < 2^(width k - 1) along the axes, float64; of a NaN, and from 2^127 on, NaN."""
    e = xp.f64(exponent_above(xp, x, axes))
    return xp.where(e > 127.0, xp.nan, xp.floor((e + 0.5) * (1.0 / width)) + 1.0)


def _power(xp: Backend, k: Array, width: int, more: int) -> Array:
    """2^(width k + more), float64; 1 where k is NaN."""
    return pow2_f64(xp, xp.integer(xp.where(k == k, k, 0.0) * float(width) + float(more)))


def sums(xp: Backend, x: Array, axes: Axes, share: float) -> Parts:
    """The sums of x times a power of two along the axes, which stay with size 1; x float32."""
    x = xp.f64(x) * share
    a, b, k = _numbers(xp, x, axes)
    return _sum(xp.sum(a, axes)), _sum(xp.sum(b, axes)), k


def numbers(xp: Backend, x: Array, axes: Axes, share: float) -> Parts:
    """The numbers x times a power of two, each its own sum, with one place along the axes."""
    return _numbers(xp, xp.f64(x) * share, axes)


def _numbers(xp: Backend, x: Array, axes: Axes) -> Parts:
    k = _place(xp, xp.f32(x), axes, SUM)
    rest = x * _power(xp, k, -SUM, SUM)
    a = xp.rint(rest)
    return a, xp.rint((rest - a) * 2.0**SUM), k


def operand(xp: Backend, x: Array, axes: Axes) -> Parts:
    """x, float32, as integers of BITS bits for a product: float32, but for k."""
    k = _place(xp, x, axes, PRODUCT)
    rest = x * pow2_f32(xp, xp.integer((1.0 - xp.where(k == k, k, 0.0)) * float(PRODUCT)))
    a = xp.rint(rest)
    return a, xp.rint((rest - a) * 2.0**PRODUCT), k


def _sum(x: Array) -> Array:
    """A sum whose zeros are positive: kernels give either."""
    return x + 0.0


def of_linear(xp: Backend, saved: tuple[Array, ...], gradient: Array, share: float) -> tuple[Array, ...]:
    """Operands of the gradient of a weight [O, I] of `linear`, whose forward pass saved that; gradient [rows, O].

    They are a and b, of which each is multiplied by the third, and k.
    """
    q, p, w, _ = saved
    a, b, k = operand(xp, gradient * (p * share), (0,))
    return xp.operand_like(a, w), xp.operand_like(b, w), q, k


def of_rows(xp: Backend, x: Array, gradient: Array, share: float) -> tuple[Array, ...]:
    """Operands, as of_linear, of the sum over rows of gradient [rows, O] times x [rows, I]: [O, I]. Each row of x has its grid."""
    q, p = quantize(xp, x, (1,))
    q, like = xp.operands(q, q, work=x.shape[0] * x.shape[1] * gradient.shape[1])
    a, b, k = operand(xp, gradient * (p * share), (0,))
    return xp.operand_like(a, like), xp.operand_like(b, like), q, k


def multiplied(xp: Backend, a: Array, b: Array, q: Array, k: Array) -> Parts:
    """The products of such operands."""
    first, second = (product(xp, xp.transpose(each), q) for each in (a, b))
    return first, second, xp.transpose(k)


def rows_of_linear(xp: Backend, saved: tuple[Array, ...], gradient: Array, share: float) -> Rows:
    """The rows of the gradient of a weight [O, I] of `linear`: as of_linear, but not of slices of int8."""
    q, p = saved
    return xp.f32(q[0]), *operand(xp, gradient * (p * share), (0,))


def joined(xp: Backend, one: Rows, other: Rows) -> Rows:
    """The rows of two sums as those of one."""
    (q, a, b, k), (r, c, d, m) = one, other
    place = _higher(xp, k, m)
    (a, b, _), (c, d, _) = at(xp, (a, b, k), place), at(xp, (c, d, m), place)
    return *(xp.concatenate(pair, 0) for pair in ((q, r), (a, c), (b, d))), place


def made(xp: Backend, q: Array, a: Array, b: Array, k: Array) -> Parts:
    """The products of rows."""
    first, second = (xp.transpose(xp.f64(each)) @ xp.f64(q) for each in (a, b))
    return first, second, xp.transpose(k)


def rounded_rows(xp: Backend, q: Array, a: Array, b: Array, k: Array) -> Array:
    """What the products of up to 2^12 rows stand for, float32: both as one product, which is exact."""
    both = xp.transpose(xp.f64(a) * 2.0**PRODUCT + xp.f64(b))
    return xp.r32(_sum(both @ xp.f64(q)) * _unit(xp, xp.transpose(k), PRODUCT, BITS))


def of_convolution(xp: Backend, x: Array, weight: Array, gradient: Array, how: tuple, share: float) -> Parts:
    """The gradient of a weight of `planar_forward`, as [O, h, w, I / groups]; how: stride, padding, dilation, groups."""
    how = *how, convolution.PLANAR
    q, p = quantize(xp, x, convolution.all_but("B", convolution.PLANAR))
    w = quantize(xp, xp.permute(weight, (0, 2, 3, 1)), (0, 1, 2, 3))[0]
    work = grids.count(xp, weight.shape, (0, 1, 2, 3)) * grids.count(xp, x.shape, (0, 2, 3))
    (q,), (w,) = operands(xp, [q], [w], work=work, groups=how[3], layout=convolution.PLANAR)
    a, b, k = operand(xp, gradient * (p * share), convolution.all_but("C", convolution.PLANAR))
    shape = tuple(weight.shape[axis] for axis in (0, 2, 3, 1))
    first, second = (_sum(xp.convolve_with(q, xp.operand_like(each, w), shape, *how)) for each in (a, b))
    return first, second, xp.reshape(k, (-1, 1, 1, 1))


def added(xp: Backend, one: Parts, other: Parts, width: int) -> Parts:
    """Two sums as one."""
    (a, b, k), (c, d, m) = one, other
    place = _higher(xp, k, m)
    a, b = _moved(xp, a, b, place - k)
    c, d = _moved(xp, c, d, place - m)
    return a + c, b + d, place


def _higher(xp: Backend, k: Array, m: Array) -> Array:
    return xp.where(k < m, m, xp.where(m == m, k, m))


def at(xp: Backend, parts: Parts, place: Array) -> Parts:
    """Sums at a place that is not below their own."""
    a, b, k = parts
    return *_moved(xp, a, b, place - k), place


def _moved(xp: Backend, a: Array, b: Array, by: Array) -> tuple[Array, Array]:
    return xp.where(by == 0.0, a, 0.0), xp.where(by == 0.0, b, xp.where(by == 1.0, a, 0.0))


def rounded(xp: Backend, parts: Parts, width: int, more: int, times: float) -> Array:
    """The sum times a power of two, rounded to float32."""
    return xp.r32(value(xp, parts, width, more) * times)


def added_and_rounded(xp: Backend, one: Parts, other: Parts, width: int, more: int) -> tuple[Parts, Array]:
    """Two sums as one, and its value, float32."""
    parts = added(xp, one, other, width)
    return parts, rounded(xp, parts, width, more, 1.0)


def value(xp: Backend, parts: Parts, width: int, more: int) -> Array:
    """The sum in float64, rounded once; NaN where a term was 2^127 or more, or NaN."""
    a, b, k = parts
    return (a * 2.0**width + b) * _unit(xp, k, width, more)


def _unit(xp: Backend, k: Array, width: int, more: int) -> Array:
    return xp.where(k == k, _power(xp, k, width, -2 * width - more), xp.nan)
