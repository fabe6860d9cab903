"""Parts of a batch for mnist_jax.py, one after another.

The patches of a small part fit a CPU's caches. Functions are of weights, images [B, 28, 28], labels [B] and keep
[B, units], where B is that of a batch or of a part. Its counterpart is repro/trainers/native/tensorflow/parts.py.
"""

from collections.abc import Callable

import jax
import optax
from jax import Array
from optax.microbatching import AccumulationType

MEAN, CONCAT = AccumulationType.MEAN, AccumulationType.CONCAT


def mean_over_parts(function: Callable, part: int | None) -> Callable:
    """Takes the mean of a function over parts of this size; None: over the whole batch."""
    return _in_parts(function, part, MEAN)


def joined_parts(function: Callable, part: int | None) -> Callable:
    """Join parts of a batch, for results by name, and the loss's gradients with respect to them and to the weights.

    Results of a part have its images along their first axis, and are joined along it; of losses it is the mean.
    """

    def of_batch(weights, images, *others):
        def of_part(*operands):
            forward, backward, gradients = function(*operands)
            share = (part or len(images)) / len(images)  # of the part's own mean loss in that of the batch
            backward = {name: array * share if array.ndim else array for name, array in backward.items()}
            return forward, backward, gradients

        forward, _, _ = jax.eval_shape(function, weights, images, *others)
        kinds = {name: CONCAT if array.ndim else MEAN for name, array in forward.items()}
        return _in_parts(of_part, part, (kinds, kinds, MEAN))(weights, images, *others)

    return of_batch


def joined_shares(function: Callable, count: int) -> Callable:
    """Join `count` shares of a batch, each of neighboring images, as threads have them, one after another."""

    def of_batch(weights, *arrays):
        share = len(arrays[0]) // count
        *results, gradients = joined_parts(function, share)(weights, *(_across(array, count) for array in arrays))
        return *jax.tree.map(lambda array: _across(array, share) if array.ndim else array, results), gradients

    return of_batch


def _across(array: Array, count: int) -> Array:
    """Reorders [B, ...]: the first images of `count` shares, then all second ones; a part takes every n-th."""
    return array.reshape(count, -1, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)


def _in_parts(function: Callable, part: int | None, kinds) -> Callable:
    return optax.microbatch(function, (1, 2, 3), part, kinds)
