"""Products of numbers, and what the first numbers along an axis give.

Numbers meet in an order that depends on their places alone. So what the first ones give does not depend on those that
follow, nor on how many do.
"""

from collections.abc import Callable

from repro.portable.definitions.xp import Array, Backend

BLOCK = 8
"""Numbers that are added one after the other: with 16, XLA computes more sums anew."""


def product(xp: Backend, x: Array) -> Array:
    """The product over the last axis, float64 [..., N] -> [...]: neighbors meet, in rounds."""
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


def cumulative_sum(xp: Backend, x: Array, axis: int) -> Array:
    """Sums of the first 1, 2, ... numbers along an axis, float64; the shape of x.

    Each block of numbers is added up from its first one on. Then what the blocks before give, found in the same way, is
    added.
    """
    along, size = (slice(None),) * axis, x.shape[axis]
    whole = size // BLOCK * BLOCK
    rest = _in_order([x[(*along, slice(each, each + 1))] for each in range(whole, size)])
    if not whole:
        return xp.concatenate(rest, axis)
    columns = _in_order([x[(*along, slice(each, whole, BLOCK))] for each in range(BLOCK)])
    before = cumulative_sum(xp, columns[-1], axis)
    blocks = xp.stack(columns, axis + 1)
    shape = *x.shape[:axis], whole // BLOCK, 1, *x.shape[axis + 1 :]
    further = blocks[(*along, slice(1, None))] + xp.reshape(before, shape)[(*along, slice(0, -1))]
    blocks = xp.concatenate([blocks[(*along, slice(0, 1))], further], axis)
    result = xp.reshape(blocks, (*x.shape[:axis], whole, *x.shape[axis + 1 :]))
    return xp.concatenate([result, *(before[(*along, slice(-1, None))] + each for each in rest)], axis)


def _in_order(parts: list[Array]) -> list[Array]:
    """Sums of the first 1, 2, ... arrays."""
    sums = parts[:1]
    for part in parts[1:]:
        sums.append(sums[-1] + part)
    return sums
