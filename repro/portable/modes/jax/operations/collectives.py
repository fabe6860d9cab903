"""Sums over devices: all numbers are gathered, and their sum is exact.

Other collectives move and choose. What XLA itself divides among devices, as with jit and sharded arrays, is exact as
well: its partial sums are integers.
"""

from typing import Any

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
