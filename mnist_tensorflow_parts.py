"""A batch in parts, for mnist_tensorflow.py: a share for each thread, and its parts one after another.

TensorFlow works on the shares side by side, and threads wait for one another once a step. Threads that share an
operation wait for one another in each. What XLA makes patches of fits the caches of a core if a part is small.

Functions are of weights, images [B, 28, 28], labels [B] and keep [B, units], where B is that of a batch or of a part.
"""

from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf


def cut(count: int, *arrays: tf.Tensor) -> Iterator[tuple[tf.Tensor, ...]]:
    """Arrays [B, ...] cut along the batch into so many equal parts."""
    return zip(*(tf.split(array, count) for array in arrays), strict=True)


def mean(shares: list):
    """The mean of equal structures of tensors.

    Not by tf.add_n: TensorFlow joins it with the optimizer's sum and adds in an order that differs from run to run.
    """
    if len(shares) == 1:
        return shares[0]
    return tf.nest.map_structure(lambda *tensors: tf.reduce_mean(tf.stack(tensors), 0), *shares)


def in_turn(find: Callable, part: int) -> Callable:
    """find's mean over parts of this size, one after another: a loss, and a gradient for each of the weights."""

    def find_all(weights: list[tf.Tensor], *arrays: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        count = arrays[0].shape[0] // part
        if count == 1:
            return find(weights, *arrays)
        parts = [tf.reshape(array, (count, part, *array.shape[1:])) for array in arrays]

        def add(i: tf.Tensor, total: tuple[tf.Tensor, list[tf.Tensor]]):
            return i + 1, tf.nest.map_structure(tf.add, total, find(weights, *(array[i] for array in parts)))

        start = tf.constant(0.0), [tf.zeros_like(weight) for weight in weights]
        _, total = tf.while_loop(lambda i, _: i < count, add, (0, start))
        return tf.nest.map_structure(lambda sums: sums / count, total)

    return find_all


def mean_in_turn(parts: list):
    """The mean of equal structures of tensors, as in_turn() finds it."""
    return tf.nest.map_structure(lambda *tensors: sum(tensors) / len(tensors), *parts)


def joined(parts: Sequence[dict[str, tf.Tensor]], scale: float = 1.0) -> dict[str, tf.Tensor]:
    """What was seen of each part of a batch -> of the batch: arrays side by side, times `scale`; of losses the mean."""
    alike = {name: [part[name] for part in parts] for name in parts[0]}
    return {name: tf.concat(seen, 0) * scale if seen[0].shape.rank else mean(seen) for name, seen in alike.items()}
