"""A batch in parts, for mnist_tensorflow.py: a part for each thread.

TensorFlow works on the parts side by side, and threads wait for one another once a step. Threads that share an
operation wait for one another in each.
"""

from collections.abc import Iterator

import tensorflow as tf


def cut(most: int, *arrays: tf.Tensor) -> Iterator[tuple[tf.Tensor, ...]]:
    """Arrays [B, ...] cut along the batch into equal parts, `most` or, where that does not divide B, fewer."""
    size = arrays[0].shape[0]
    count = next(n for n in range(min(most, size), 0, -1) if size % n == 0)
    return zip(*(tf.split(array, count) for array in arrays), strict=True)


def mean(parts: list):
    """The mean of equal structures of tensors.

    Not by tf.add_n: TensorFlow joins it with the optimizer's sum and adds in an order that differs from run to run.
    """
    if len(parts) == 1:
        return parts[0]
    return tf.nest.map_structure(lambda *tensors: tf.reduce_mean(tf.stack(tensors), 0), *parts)


def joined(parts: list[dict[str, tf.Tensor]], scale: float = 1.0) -> dict[str, tf.Tensor]:
    """What was seen of each part of a batch -> of the batch: arrays side by side, times `scale`; of losses the mean."""
    alike = {name: [part[name] for part in parts] for name in parts[0]}
    return {name: tf.concat(seen, 0) * scale if seen[0].shape.rank else mean(seen) for name, seen in alike.items()}
