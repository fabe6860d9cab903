"""A batch in parts, for mnist_jax.py: one after another, so that the patches of a part fit a CPU's caches.

Functions are of weights, images [B, 28, 28], labels [B] and keep [B, units], where B is that of a batch or of a part.
"""

from collections.abc import Callable

import jax
import optax
from jax import Array
from optax.microbatching import AccumulationType

MEAN, CONCAT = AccumulationType.MEAN, AccumulationType.CONCAT


def mean(function: Callable, part: int | None) -> Callable:
    """function's mean over parts of this size; None: of the whole batch."""
    return _in_parts(function, part, MEAN)


def joined(look: Callable, part: int | None) -> Callable:
    """The same for what `look` finds: results by name, the loss's gradients with respect to them and to the weights.

    Results of a part have its images along their first axis, and are joined along it; of losses it is the mean.
    """

    def look_at_all(weights, images, *others):
        def look_at_part(*operands):
            seen, backward, gradients = look(*operands)
            share = (part or len(images)) / len(images)  # of the part's own mean loss in that of the batch
            return seen, {name: array * share if array.ndim else array for name, array in backward.items()}, gradients

        seen, _, _ = jax.eval_shape(look, weights, images, *others)
        kinds = {name: CONCAT if array.ndim else MEAN for name, array in seen.items()}
        return _in_parts(look_at_part, part, (kinds, kinds, MEAN))(weights, images, *others)

    return look_at_all


def shared(look: Callable, count: int) -> Callable:
    """The same for `count` shares of a batch, each of neighboring images, as threads have them, one after another."""

    def look_at_all(weights, *arrays):
        share = len(arrays[0]) // count
        *found, gradients = joined(look, share)(weights, *(_across(array, count) for array in arrays))
        return *jax.tree.map(lambda array: _across(array, share) if array.ndim else array, found), gradients

    return look_at_all


def _across(array: Array, count: int) -> Array:
    """[B, ...] -> [B, ...]: the first images of `count` shares, then all second ones; a part takes every n-th."""
    return array.reshape(count, -1, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)


def _in_parts(function: Callable, part: int | None, kinds) -> Callable:
    return optax.microbatch(function, (1, 2, 3), part, kinds)
