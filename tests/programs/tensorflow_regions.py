"""Boxes, regions and places of maxima beside TensorFlow's own kernels, which must choose the same, in eager code and graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.modes.tensorflow.dispatcher import dispatch

DRAWN = np.random.Generator(np.random.PCG64(51))
BOXES = DRAWN.integers(-64, 128, (40, 4)).astype(np.float32) / 64
BOXES = np.concatenate([BOXES, BOXES[:20] + np.float32(2.0**-6)])
SCORES = DRAWN.integers(0, 30, 60).astype(np.float32) / 32  # several are equal
POINTS = DRAWN.permutation(180).astype(np.float32) / 180  # several that are equal are in no known order, of classes
IMAGES = DRAWN.integers(-(2**20), 2**20, (2, 9, 8, 5)).astype(np.float32) / 2**18
GRID = np.round(IMAGES)  # with equal numbers
WHERE = np.array([0, 1] * 30, np.int32)
TOTAL = 2.0**-18
"""The largest error relative to the largest number of a result: TensorFlow's own places and sums are of float32."""

raw = tf.raw_ops
CHOICES: dict[str, Callable[[], Any]] = {
    "NonMaxSuppression": lambda: raw.NonMaxSuppression(
        boxes=BOXES, scores=SCORES, max_output_size=20, iou_threshold=0.2
    ),
    "NonMaxSuppressionV2": lambda: raw.NonMaxSuppressionV2(
        boxes=BOXES, scores=SCORES, max_output_size=60, iou_threshold=0.1
    ),
    "tf.image.non_max_suppression": lambda: tf.image.non_max_suppression(BOXES, SCORES, 50, 0.3, 0.2),
    "tf.image.non_max_suppression of half": lambda: tf.image.non_max_suppression(
        tf.cast(BOXES, tf.float16), tf.cast(SCORES, tf.float16), 50, 0.3
    ),
    "tf.image.non_max_suppression_padded": lambda: tf.image.non_max_suppression_padded(
        BOXES, SCORES, 50, 0.3, pad_to_max_output_size=True
    ),
    "NonMaxSuppressionV4": lambda: raw.NonMaxSuppressionV4(
        boxes=BOXES,
        scores=SCORES,
        max_output_size=50,
        iou_threshold=0.3,
        score_threshold=0.1,
        pad_to_max_output_size=True,
    ),
    "NonMaxSuppressionV5": lambda: raw.NonMaxSuppressionV5(
        boxes=BOXES,
        scores=SCORES,
        max_output_size=50,
        iou_threshold=0.3,
        score_threshold=0.1,
        soft_nms_sigma=0.0,
        pad_to_max_output_size=True,
    ),
    "NonMaxSuppressionWithOverlaps": lambda: tf.image.non_max_suppression_overlaps(
        np.abs(BOXES @ BOXES.T) * 0.25, SCORES, 30, 0.25, 0.1
    ),
    "tf.image.combined_non_max_suppression": lambda: tf.image.combined_non_max_suppression(
        BOXES.reshape(2, 30, 1, 4), POINTS[:180].reshape(2, 30, 3), 5, 12, 0.3, 0.1
    ),
    "of each class": lambda: tf.image.combined_non_max_suppression(
        BOXES.reshape(2, 10, 3, 4), POINTS[:60].reshape(2, 10, 3), 4, 40, 0.3, pad_per_class=True, clip_boxes=False
    ),
    "MaxPoolWithArgmax": lambda: tf.nn.max_pool_with_argmax(GRID, 3, 2, "SAME"),
    "MaxPoolWithArgmax of all images": lambda: tf.nn.max_pool_with_argmax(
        GRID, (2, 3), (1, 2), "VALID", output_dtype=tf.int32, include_batch_in_index=True
    ),
    "gradient of MaxPool3D": lambda: slopes(lambda x: tf.nn.max_pool3d(x, 2, 1, "SAME"), GRID[..., None]),
    "gradient of MaxPoolWithArgmax": lambda: slopes(lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")[0], GRID),
}
"""What has to be equal."""
NUMBERS: dict[str, Callable[[], Any]] = {
    "softened suppression": lambda: tf.image.non_max_suppression_with_scores(BOXES, SCORES, 50, 0.5, 0.1, 0.5),
    "crop_and_resize": lambda: tf.image.crop_and_resize(IMAGES, BOXES, WHERE, (4, 6)),
    "crop_and_resize of bytes": lambda: tf.image.crop_and_resize(
        tf.cast(GRID, tf.uint8), BOXES, WHERE, (1, 5), "nearest", 2.5
    ),
    "gradient of crop_and_resize": lambda: slopes(
        lambda x, y: tf.image.crop_and_resize(x, y, WHERE, (4, 5)), IMAGES, BOXES
    ),
    "LRN": lambda: tf.nn.lrn(IMAGES, 2, 1.0, 0.25, 0.75),
    "gradient of LRN": lambda: slopes(lambda x: tf.nn.lrn(x, 1, 0.5, 0.25, 0.5), IMAGES),
}
"""What has to be near."""


def slopes(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    given = [tf.constant(each) for each in arrays]
    with tf.GradientTape() as tape:
        tape.watch(given)
        result = function(*given)
    weights = tf.reshape(tf.cast(tf.range(tf.size(result)) % 9, result.dtype), tf.shape(result))
    return tape.gradient(result, given, weights)


def wrong() -> list[str]:
    """Calls with another result than TensorFlow's own, or other bits in a graph."""
    lines = []
    for limit, calls in ((0.0, CHOICES), (TOTAL, NUMBERS)):
        for name, call in calls.items():
            with dispatch.Passing():
                native = [each.numpy() for each in tf.nest.flatten(call())]
            eager = [each.numpy() for each in tf.nest.flatten(call())]
            graph = [each.numpy() for each in tf.nest.flatten(tf.function(call)())]
            for x, y, own in zip(eager, graph, native, strict=True):
                if (x.dtype, x.shape) != (own.dtype, own.shape) or not near(x, own, limit):
                    lines.append(f"{name}: {x.ravel()[:6]}, TensorFlow's own {own.ravel()[:6]}")
                if not np.array_equal(x, y):
                    lines.append(f"{name}: other bits in a graph")
    return lines


def near(x: np.ndarray, own: np.ndarray, limit: float) -> bool:
    error = np.abs(x.astype(np.float64) - own.astype(np.float64)).max(initial=0)
    return bool(error <= limit * np.abs(own.astype(np.float64)).max(initial=0))
