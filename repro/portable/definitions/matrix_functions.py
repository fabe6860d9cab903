"""Functions of whole matrices in float64: pseudoinverses, least squares, the exponential.

Arrays are [..., rows, columns], none of them empty. A matrix of a batch has the bits that it has alone.
"""

from math import factorial

from repro.portable.definitions import linalg
from repro.portable.definitions.bits import exponent, pow2_f64
from repro.portable.definitions.linalg import total
from repro.portable.definitions.products import batched
from repro.portable.definitions.xp import Array, Backend

# --- inverses of any rank ---------------------------------------------------------------------------------------------


def inverse_values(xp: Backend, values: Array, least: Array) -> Array:
    """1 / s of values [..., K] that are larger than `least` [..., 1], else 0."""
    counts = (abs(values) > least) | (values != values)
    return xp.where(counts, 1.0 / xp.where(counts, values, 1.0), 0.0)


def pseudoinverse(xp: Backend, left: Array, inverse: Array, right: Array) -> Array:
    """[..., N, M] of vectors [..., M, K] and [..., K, N] of a matrix and of the inverses [..., K] of its values."""
    return batched(xp, xp.transpose(right) * inverse[..., None, :], xp.transpose(left))


def least_squares(xp: Backend, left: Array, inverse: Array, right: Array, b: Array) -> Array:
    """x [..., N, R] of the least norm with the least |a x - b|, of the vectors of a and the inverses of its values."""
    return batched(xp, xp.transpose(right), batched(xp, xp.transpose(left), b) * inverse[..., :, None])


# --- the exponential --------------------------------------------------------------------------------------------------

ORDER = 13
LARGEST = 4.0
"""The norm up to which the approximant of this order errs by about 13!^2 / (26! 27!) 4^27, or 2^-62."""


def _coefficients() -> list[float]:
    """Those of the numerator of H. Pade's approximant of exp, that of 1 first."""
    m, whole = ORDER, factorial(2 * ORDER) // factorial(ORDER)
    return [factorial(2 * m - k) // factorial(m - k) / (factorial(k) * whole) for k in range(m + 1)]


def exponential(xp: Backend, x: Array) -> Array:
    """exp of square matrices, by squaring that of a part of them; NaN of one that is not finite, or whose exp overflows."""
    size = x.shape[-1]
    norm = xp.maximum_of(total(xp, abs(x)))[..., None]
    finite = norm < xp.inf
    x, norm = xp.where(finite, x, 0.0), xp.where(finite, norm, 0.0)
    share = norm * (1.0 / LARGEST)
    turns = xp.where(share > 1.0, xp.f64(exponent(xp, xp.where(share > 1.0, share, 1.0))) + 1.0, 0.0)
    x = x * pow2_f64(xp, -xp.integer(turns))
    one = linalg.identity(xp, x, size, size)
    c, x2 = _coefficients(), batched(xp, x, x)
    x4 = batched(xp, x2, x2)
    x6 = batched(xp, x4, x2)
    odd = batched(xp, x6, x6 * c[13] + x4 * c[11] + x2 * c[9]) + x6 * c[7] + x4 * c[5] + x2 * c[3] + one * c[1]
    even = batched(xp, x6, x6 * c[12] + x4 * c[10] + x2 * c[8]) + x6 * c[6] + x4 * c[4] + x2 * c[2] + one * c[0]
    odd = batched(xp, x, odd)
    factors, _, order = linalg.lu(xp, even - odd)
    y = linalg.lu_solve(xp, factors, order, even + odd)

    def square(state: tuple[Array, Array]) -> tuple[Array, Array]:
        y, left = state
        return xp.where(left > 0.0, batched(xp, y, y), y), left - 1.0

    def going(state: tuple[Array, Array]) -> Array:
        return xp.maximum_of(xp.reshape(state[1], (-1,)))[0] > 0.0

    return xp.where(finite, xp.repeat_while(going, square, (y, turns))[0], xp.nan)
