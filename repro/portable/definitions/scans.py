"""Products, and what the first numbers along an axis give: numbers meet their neighbors, in rounds.

The order depends on their number alone.
"""

from collections.abc import Callable

from repro.portable.definitions.xp import Array, Backend


def product(xp: Backend, x: Array) -> Array:
    """The product over the last axis, float64 [..., N] -> [...]."""
    if not x.shape[-1]:
        x = xp.pad(x, [(0, 0)] * (len(x.shape) - 1) + [(0, 1)], 1.0)
    while x.shape[-1] > 1:
        even = x.shape[-1] & ~1
        x = xp.concatenate([x[..., 0:even:2] * x[..., 1:even:2], x[..., even:]], -1)
    return x[..., 0]


def cumulative(xp: Backend, x: Array, axis: int, join: Callable[[Array, Array], Array]) -> Array:
    """Results of a function of two arrays, joined over the first 1, 2, ... numbers along an axis; the shape of x."""
    along, size, step = (slice(None),) * axis, x.shape[axis], 1
    while step < size:
        more = join(x[(*along, slice(step, None))], x[(*along, slice(0, -step))])
        x = xp.concatenate([x[(*along, slice(0, step))], more], axis)
        step *= 2
    return x
