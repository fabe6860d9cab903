"""Shares and parts of a batch for mnist_tensorflow.py.

Each thread has a share, and its parts one after another. TensorFlow works on the shares side by side, each by a program
that XLA compiled, and threads wait for one another once a step. Threads that share an operation wait for one another in
each. A small part's patches fit the caches of a core.

Functions are of weights, images [B, 28, 28], labels [B] and keep [B, units], where B is that of a batch or of a part.
Where `threads` is None, as on GPUs and in portable numerics, a batch is worked on whole. Its counterpart is
repro/trainers/native/jax/parts.py.
"""

from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

from repro.trainers.loop import layout


def mean_over_shares(function: Callable, threads: int | None) -> Callable:
    """Takes the mean of a function over a batch that threads share: a loss, and a gradient for each of the weights."""
    if threads is None:
        return function

    @tf.function(jit_compile=True)
    def of_share(weights: list[tf.Tensor], *arrays: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        count = _parts_in(threads, arrays[0])
        if count == 1:
            return function(weights, *arrays)
        parts = [tf.reshape(array, (count, -1, *array.shape[1:])) for array in arrays]

        def add(i: tf.Tensor, total: tuple[tf.Tensor, list[tf.Tensor]]):
            return i + 1, tf.nest.map_structure(tf.add, total, function(weights, *(array[i] for array in parts)))

        start = tf.constant(0.0), [tf.zeros_like(weight) for weight in weights]
        _, total = tf.while_loop(lambda i, _: i < count, add, (0, start))
        return tf.nest.map_structure(lambda sums: sums / count, total)

    def of_batch(weights: list[tf.Tensor], *arrays: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return _mean([of_share(weights, *share) for share in _shares(threads, *arrays)])

    return of_batch


def joined_shares(function: Callable, threads: int | None) -> Callable:
    """Join shares of a batch, for results by name, and the loss's gradients with respect to them and to the weights.

    Results of parts are joined along the batch; of losses it is the mean.
    """
    of_part = tf.function(function, jit_compile=threads is not None)

    def of_batch(weights: list[tf.Tensor], *arrays: tf.Tensor) -> tuple[dict, dict, list[tf.Tensor]]:
        results, gradients = [], []
        for share in _shares(threads, *arrays):
            parts = [of_part(weights, *part) for part in _cut(_parts_in(threads, share[0]), *share)]
            gradients.append(tf.nest.map_structure(_mean_in_turn, *(part_gradients for _, _, part_gradients in parts)))
            results += parts
        forward, backward, _ = zip(*results, strict=True)
        return _side_by_side(forward), _side_by_side(backward, 1 / len(backward)), _mean(gradients)

    return of_batch


def joined_logits(function: Callable, threads: int | None) -> Callable:
    """The logits of images [B, 28, 28], without dropout."""
    of_part = tf.function(function, jit_compile=threads is not None)

    def of_batch(weights: list[tf.Tensor], images: tf.Tensor) -> tf.Tensor:
        parts = _cut(_parts_in(threads, images, 64), images)
        return tf.concat([of_part(weights, part, None) for (part,) in parts], 0)

    return of_batch


def _shares(threads: int | None, *arrays: tf.Tensor) -> Iterator[tuple[tf.Tensor, ...]]:
    return _cut(layout.shares_of(len(arrays[0]), threads) if threads else 1, *arrays)


def _parts_in(threads: int | None, share: tf.Tensor, least: int = layout.LEAST) -> int:
    return len(share) // layout.part_of(len(share), least) if threads else 1


def _cut(count: int, *arrays: tf.Tensor) -> Iterator[tuple[tf.Tensor, ...]]:
    """Arrays [B, ...] cut along the batch into `count` equal parts."""
    return zip(*(tf.split(array, count) for array in arrays), strict=True)


def _mean(shares: list):
    """The mean of equal structures of tensors.

    Not by tf.add_n: TensorFlow joins it with the optimizer's sum and adds in an order that differs from run to run.
    """
    if len(shares) == 1:
        return shares[0]
    return tf.nest.map_structure(lambda *tensors: tf.reduce_mean(tf.stack(tensors), 0), *shares)


def _mean_in_turn(*parts: tf.Tensor) -> tf.Tensor:
    """The mean of a share's parts, added up as its program does."""
    return sum(parts) / len(parts)


def _side_by_side(parts: Sequence[dict[str, tf.Tensor]], scale: float = 1.0) -> dict[str, tf.Tensor]:
    """Results of a batch from those of its parts: arrays joined, times `scale`; of losses the mean."""
    alike = {name: [part[name] for part in parts] for name in parts[0]}
    return {name: tf.concat(each, 0) * scale if each[0].shape.rank else _mean(each) for name, each in alike.items()}
