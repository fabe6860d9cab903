"""Convolution in TensorFlow by minimal filtering, and its two gradients, with fewer multiplications than by definition.

repro/native/filtering.py says how, repro/portable/tensorflow/convolution.py is the definition. The twin is
repro/native/jax/filtering.py.
"""

import tensorflow as tf

from repro.native.filtering import TILE, Filter, pairs, tiles


def correlate(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """[I, H, W, B] and [h, w, I, O] -> [O, H - h + 1, W - w + 1, B]."""
    height, width, _, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    pair = pairs(width)
    products = tf.matmul(_of_kernel(pair, kernel), _of_image(pair, x, rows, columns), transpose_a=True)
    y = tf.matmul(pair.result.T, tf.reshape(products, (products.shape[0], -1)))
    y = tf.reshape(y, (pair.tile, outputs, rows, columns // pair.tile, -1))
    return tf.reshape(tf.transpose(y, (1, 2, 3, 0, 4)), (outputs, rows, columns, -1))


def correlate_with(x: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    tile = tiles(width)
    products = tf.matmul(_of_image(tile, x, rows, columns), _of_gradient(tile, gradient), transpose_b=True)
    kernel = tf.matmul(tile.kernel.T, tf.reshape(products, (products.shape[0], -1)))
    return tf.transpose(tf.reshape(kernel, (width, height, -1, outputs)), (1, 0, 2, 3))


def spread(gradient: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """The gradient of correlate with respect to x. What overlaps is added."""
    height, width, inputs, _ = kernel.shape
    _, rows, columns, batch = gradient.shape
    line, count, tile = columns // TILE * batch, width + TILE - 1, tiles(width)
    parts = tf.matmul(_of_kernel(tile, kernel), _of_gradient(tile, gradient))
    parts = tf.reshape(parts, (count, height, inputs, -1))
    total = tf.zeros((count, inputs, (rows + height - 1) * line), gradient.dtype)
    for i in range(height):  # in place: a sum of padded parts takes XLA a twentieth of the step longer
        first, end = i * line, (i + rows) * line
        total = tf.raw_ops.TensorStridedSliceUpdate(
            input=total, begin=[0, 0, first], end=[count, inputs, end], strides=[1, 1, 1],
            value=total[:, :, first:end] + parts[:, i],
        )  # fmt: skip
    x = tf.reshape(tf.matmul(tile.image.T, tf.reshape(total, (count, -1))), (count, inputs, -1, columns // TILE, batch))
    turns = -(-count // TILE)  # a tile's columns are its own four, and some of those after
    x = tf.reshape(tf.pad(x, [(0, turns * TILE - count)] + 4 * [(0, 0)]), (turns, TILE, *x.shape[1:]))
    x = tf.add_n([tf.pad(x[i], 3 * [(0, 0)] + [(i, turns - 1 - i), (0, 0)]) for i in range(turns)])
    x = tf.transpose(x, (1, 2, 3, 0, 4))
    return tf.reshape(x, (*x.shape[:2], -1, batch))[:, :, : columns + width - 1]


def _of_image(form: Filter, x: tf.Tensor, rows: int, columns: int) -> tf.Tensor:
    """[C, H, W, B] -> [N, h * C, rows * tiles * B]: what a kernel's rows meet in each tile of results, by product."""
    # Column by column: of strided slices, which are fewer, XLA would compute x, a pooling, anew for each.
    met = [tf.stack([x[:, :, i + j] for j in range(0, columns, form.tile)], 2) for i in range(form.image.shape[1])]
    values = tf.matmul(form.image, tf.reshape(tf.stack(met), (len(met), -1)))
    values = tf.reshape(values, (-1, *met[0].shape))
    height = x.shape[1] - rows + 1
    joined = tf.concat([values[:, :, i : i + rows] for i in range(height)], 1)
    return tf.reshape(joined, (values.shape[0], height * x.shape[0], -1))


def _of_kernel(form: Filter, kernel: tf.Tensor) -> tf.Tensor:
    """[h, w, I, O] -> [N, h * I, O]: its rows, by product."""
    values = tf.matmul(form.kernel, tf.reshape(tf.transpose(kernel, (1, 0, 2, 3)), (kernel.shape[1], -1)))
    return tf.reshape(values, (values.shape[0], -1, kernel.shape[-1]))


def _of_gradient(form: Filter, gradient: tf.Tensor) -> tf.Tensor:
    """[O, R, C, B] -> [N, O, R * tiles * B]: its tiles, by product."""
    met = tf.stack([gradient[:, :, i :: form.tile] for i in range(form.tile)])
    values = tf.matmul(form.result, tf.reshape(met, (form.tile, -1)))
    return tf.reshape(values, (values.shape[0], gradient.shape[0], -1))
