"""Sums over devices: all numbers of a sum are gathered, and it is exact.

Other collectives move and choose. What XLA itself divides among devices, as with jit and sharded arrays, is exact as
well: its partial sums are integers.
"""

from functools import partial
from typing import Any

from jax import Array
from jax._src.lax import parallel

from repro.portable.modes.jax.dispatcher.registry import rule
from repro.portable.modes.jax.operations.sums import reduce_sum


@rule("psum", "psum_invariant")
def psum(lower: Any, ctx: Any, x: Any, *, axes: Any, axis_index_groups: Any = None) -> Any:
    """Over named axes of devices, and of the array."""
    (aval,), (result,) = ctx.avals_in, ctx.avals_out
    places = tuple(axis for axis in axes if isinstance(axis, int))
    names = tuple(axis for axis in axes if not isinstance(axis, int))
    if names:
        groups = parallel._replica_groups(ctx.module_context.axis_context, names, axis_index_groups)
        gathered = aval.update(shape=(len(groups[0]), *aval.shape))
        (x,) = parallel._all_gather_lowering(
            ctx.replace(primitive=None, avals_out=[gathered]),
            x,
            all_gather_dimension=0,
            axis_name=names,
            axis_index_groups=axis_index_groups,
            axis_size=len(groups[0]),
            tiled=False,
        )
        aval, places = gathered, (0, *(axis + 1 for axis in places))
    return lower(reduce_sum, ctx.replace(avals_in=[aval], avals_out=[result]), x, axes=places)


@rule("reduce_scatter")
def reduce_scatter(lower: Any, ctx: Any, x: Any, *, axis_name: Any, scatter_dimension: int, **how: Any) -> Any:
    """Over named axes of devices: each gets the numbers of its part from all of them."""
    (aval,), groups = ctx.avals_in, how["axis_index_groups"]
    (x,) = parallel._all_to_all_lowering(
        ctx.replace(primitive=None, avals_out=[aval]),
        x,
        split_axis=scatter_dimension,
        concat_axis=scatter_dimension,
        axis_name=axis_name,
        axis_index_groups=groups,
        tiled=True,
    )
    return lower(
        partial(_sum_of_parts, parts=how["axis_size"], axis=scatter_dimension, shape=ctx.avals_out[0].shape), ctx, x
    )


def _sum_of_parts(x: Array, *, parts: int, axis: int, shape: tuple[int, ...]) -> Array:
    """The sum of parts that lie one after another along an axis."""
    split = x.reshape(*x.shape[:axis], parts, x.shape[axis] // parts, *x.shape[axis + 1 :])
    return reduce_sum(split, axes=(axis,)).reshape(shape)
