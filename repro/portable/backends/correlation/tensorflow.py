"""Convolution in TensorFlow as one matrix product, and its gradients.

Images are [C, H, W, B] and kernels [h, w, I, O], of any type: float32 from layers.py, and float64 with exact sums from
portable numerics. Its counterpart is repro/portable/backends/correlation/jax.py.
"""

import tensorflow as tf

BATCH_LAST = (3, 1, 2, 0)  # [B, H, W, C] -> [C, H, W, B], and back


def correlate(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """[I, H, W, B] and [h, w, I, O] -> [O, H - h + 1, W - w + 1, B]: one matrix product."""
    height, width, _, outputs = kernel.shape
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    side = _side(x, rows, columns)
    placed = tf.reshape(_placed(kernel, side), (-1, side * side * outputs))
    y = tf.matmul(placed, _patches(x, rows, columns), transpose_a=True)
    y = tf.reshape(y, (side, side, outputs, rows // side, columns // side, -1))
    return tf.reshape(tf.transpose(y, (2, 3, 0, 4, 1, 5)), (outputs, rows, columns, -1))


def correlate_with(x: tf.Tensor, gradient: tf.Tensor) -> tf.Tensor:
    """The gradient of correlate with respect to its kernel, of that with respect to its result [O, R, C, B]."""
    outputs, rows, columns, _ = gradient.shape
    height, width = x.shape[1] - rows + 1, x.shape[2] - columns + 1
    side = _side(x, rows, columns)
    squares = tf.reshape(gradient, (outputs, rows // side, side, columns // side, side, -1))
    squares = tf.reshape(tf.transpose(squares, (2, 4, 0, 1, 3, 5)), (side * side * outputs, -1))
    product = tf.matmul(_patches(x, rows, columns), squares, transpose_b=True)
    product = tf.reshape(product, (width + side - 1, height + side - 1, -1, side, side, outputs))
    places = [product[j : j + width, i : i + height, :, i, j] for i in range(side) for j in range(side)]
    return tf.transpose(tf.add_n(places), (1, 0, 2, 3))


def _side(x: tf.Tensor, rows: int, columns: int) -> int:
    """The side of the squares of results that a patch of x gives.

    Two for images of one channel: their matrices, 10 x 25 in LeNet, are too small for products at full speed. As
    40 x 36 they have 1.4 times the operations, but patches, which overlap less, take a third of the memory.
    """
    return 2 if x.shape[0] == 1 and rows % 2 == columns % 2 == 0 else 1


def _placed(kernel: tf.Tensor, side: int) -> tf.Tensor:
    """[h, w, I, O] -> [w + side - 1, h + side - 1, I, side, side, O]: between zeros, for each result of a square."""
    kernel, last = tf.transpose(kernel, (1, 0, 2, 3)), side - 1
    places = [tf.pad(kernel, ((j, last - j), (i, last - i), (0, 0), (0, 0))) for i in range(side) for j in range(side)]
    return tf.reshape(tf.stack(places, 3), (*places[0].shape[:3], side, side, -1))


def _patches(x: tf.Tensor, rows: int, columns: int) -> tf.Tensor:
    """[C, H, W, B] -> [w * h * C, squares * B], in the order of a placed kernel: where each of its elements meets x."""
    side = _side(x, rows, columns)
    down, across = range(x.shape[1] - rows + side), range(x.shape[2] - columns + side)
    # Column by column, as oneDNN adds under PyTorch: where sums are not exact, equal rounding means equal maxima in the
    # pools. Of more than eight pieces at once, XLA would make each, and then copy it to its place.
    joined = [tf.concat([x[:, i : i + rows : side, j : j + columns : side] for i in down], 0) for j in across]
    return tf.reshape(tf.stack(joined), (len(down) * len(across) * x.shape[0], -1))


def spread(gradient: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """The gradient of correlate with respect to x. What overlaps is added.

    Row by row of the kernel: what one product gives is still in the caches when it is added.
    """
    height, width, inputs, outputs = kernel.shape
    _, rows, columns, _ = gradient.shape
    lines = []
    for i in range(height):
        parts = tf.reshape(kernel[i], (-1, outputs)) @ tf.reshape(gradient, (outputs, -1))
        parts = tf.reshape(parts, (width, inputs, rows, columns, -1))
        lines.append(tf.add_n([_between(parts[j], 2, j, width - 1 - j) for j in range(width)]))  # [I, R, W, B]
    return tf.add_n([_between(line, 1, i, height - 1 - i) for i, line in enumerate(lines)])


def _between(x: tf.Tensor, axis: int, before: int, after: int) -> tf.Tensor:
    """x between zeros along an axis, `before` and `after` of them."""
    return tf.pad(x, [(before, after) if axis == each else (0, 0) for each in range(len(x.shape))])
