"""Non-maximum suppression: boxes that no better one overlaps, as TensorFlow's kernels have it for CPUs.

https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/kernels/image/non_max_suppression_op.cc
"""

import heapq
from collections.abc import Callable

import numpy as np

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, define
from repro.portable.modes.tensorflow.operations.functions import FUNCTIONS, evaluate

Similarity = Callable[[int, Array], Array]
"""How much boxes, by their places, are like one box."""


def overlaps(boxes: Array) -> Similarity:
    """The intersection over the union with each of some boxes [N, 4], corners in any order; 0 of a box without area."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = high - low
    area = sides[:, 0] * sides[:, 1]

    def similarity(box: int, others: Array) -> Array:
        common = np.minimum(high[box], high[others]) - np.maximum(low[box], low[others])
        common = np.maximum(common, common.dtype.type(0))
        common = common[:, 0] * common[:, 1]
        ratio = common / ((area[others] + area[box]) - common)
        return np.where((area[others] <= 0) | (area[box] <= 0), ratio.dtype.type(0), ratio)

    return similarity


def by_table(table: Array) -> Similarity:
    return lambda box, others: table[others, box]


def suppressed(scores: Array, similarity: Similarity, number: int, limit: Array, least: Array) -> Array:
    """The places of at most `number` boxes, best first; the first of equal scores is better."""
    candidates = np.flatnonzero(scores > least)
    order = candidates[np.argsort(-scores[candidates].astype(np.float64), kind="stable")]
    chosen: list[int] = []
    while len(order) and len(chosen) < number:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        order = order[~(similarity(best, order) > limit)]
    return np.array(chosen, np.int32)


def softened(scores: Array, similarity: Similarity, number: int, least: Array, sigma: Array) -> tuple[Array, Array]:
    """Places and scores of boxes, best first, where a box that is like a better one loses a share of its score."""
    dtype = scores.dtype
    scale = dtype.type(-0.5) / sigma
    waiting = [(-float(score), place, 0) for place, score in enumerate(scores) if score > least]
    heapq.heapify(waiting)
    chosen: list[int] = []
    values: list[Array] = []
    while waiting and len(chosen) < number:
        negative, place, begin = heapq.heappop(waiting)
        before = score = dtype.type(-negative)
        others = np.array(chosen[begin:][::-1], np.int64)
        alike = similarity(place, others) if len(others) else np.zeros(0, dtype)
        for weight in evaluate(FUNCTIONS["exp"], scale * alike * alike):
            score = score * weight
            if score <= least:
                break
        if score == before:
            chosen.append(place)
            values.append(score)
        elif score > least:
            heapq.heappush(waiting, (-float(score), place, len(chosen)))
    return np.array(chosen, np.int32), np.array(values, dtype)


def _checked(boxes: Array, scores: Array, limit: float) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1] or not 0 <= limit <= 1:
        raise ValueError(f"boxes {list(boxes.shape)}, scores {list(scores.shape)} and overlap {limit} do not fit")


def _padded(x: Array, size: int) -> Array:
    return np.concatenate([x, np.zeros((max(0, size - len(x)), *x.shape[1:]), x.dtype)])


@define("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max(given: Attributes, boxes: Array, scores: Array, number: Array, *limits: Array) -> Array:
    limit = limits[0] if limits else np.asarray(given["iou_threshold"], scores.dtype)
    least = limits[1] if len(limits) > 1 else np.asarray(np.finfo(scores.dtype).min)
    _checked(boxes, scores, float(limit))
    return suppressed(scores, overlaps(boxes), int(number), limit, least)


@define("NonMaxSuppressionV4")
def non_max_padded(
    given: Attributes, boxes: Array, scores: Array, number: Array, limit: Array, least: Array
) -> tuple[Array, Array]:
    _checked(boxes, scores, float(limit))
    chosen = suppressed(scores, overlaps(boxes), int(number), limit, least)
    count = np.asarray(len(chosen), np.int32)
    return _padded(chosen, int(number)) if given["pad_to_max_output_size"] else chosen, count


@define("NonMaxSuppressionV5")
def non_max_softened(
    given: Attributes, boxes: Array, scores: Array, number: Array, limit: Array, least: Array, sigma: Array
) -> tuple[Array, Array, Array]:
    _checked(boxes, scores, float(limit))
    if sigma > 0:
        chosen, values = softened(scores, overlaps(boxes), int(number), least, sigma)
    else:
        chosen = suppressed(scores, overlaps(boxes), int(number), limit, least)
        values = scores[chosen]
    count = np.asarray(len(chosen), np.int32)
    if given["pad_to_max_output_size"]:
        chosen, values = _padded(chosen, int(number)), _padded(values, int(number))
    return chosen, values, count


@define("NonMaxSuppressionWithOverlaps")
def non_max_of_overlaps(
    given: Attributes, table: Array, scores: Array, number: Array, limit: Array, least: Array
) -> Array:
    if table.shape != (*scores.shape, *scores.shape):
        raise ValueError(f"overlaps {list(table.shape)} and scores {list(scores.shape)} do not fit")
    return suppressed(scores, by_table(table), int(number), limit, least)


@define("CombinedNonMaxSuppression")
def combined(
    given: Attributes, boxes: Array, scores: Array, each: Array, number: Array, limit: Array, least: Array
) -> tuple[Array, Array, Array, Array]:
    """The best boxes [B, N, 1 or C, 4] of all classes, each class by itself: boxes, scores, classes, and their number."""
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[2] not in (1, scores.shape[2]) or not 0 <= limit <= 1:
        raise ValueError(f"boxes {list(boxes.shape)}, scores {list(scores.shape)} and overlap {limit} do not fit")
    classes, size = scores.shape[2], int(number)
    size = min(size, int(each) * classes) if given["pad_per_class"] else size
    results = []
    for image, points in zip(boxes, scores, strict=True):
        parts = []
        for label in range(classes):
            own = image[:, label if image.shape[1] > 1 else 0]
            chosen = suppressed(points[:, label], overlaps(own), int(each), limit, least)
            parts.append((own[chosen], points[chosen, label], np.full(len(chosen), label, np.float32)))
        corners, values, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
        best = np.argsort(-values, kind="stable")[:size]
        corners = np.clip(corners[best], 0, 1) if given["clip_boxes"] else corners[best]
        count = np.asarray(len(best), np.int32)
        results.append((*(_padded(x, size) for x in (corners, values[best], labels[best])), count))
    corners, values, labels, counts = (np.stack(part) for part in zip(*results, strict=True))
    return corners, values, labels, counts
