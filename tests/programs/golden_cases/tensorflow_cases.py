"""Operations of golden/operations.txt that TensorFlow alone has: elements, images, segments."""

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from programs.golden_cases.cases import Case, array, filler, index

CASES: dict[str, Case] = {}
case = filler(CASES)
raw = tf.raw_ops

SINGLE = ("float32",)
"""The types of what TensorFlow does not have in float64."""
PLANE, IMAGES, SHARES = array(12, 20), array(2, 8, 7, 3), array(2, 8, 7, 3, kind="share")

# --- sums, products, elements -----------------------------------------------------------------------------------------

case("l2_loss", tf.nn.l2_loss, PLANE)
case("bias_add", tf.nn.bias_add, IMAGES, array(3))
case("accumulate", lambda a, b: raw.AccumulateNV2(inputs=[a, b], shape=a.shape), PLANE, PLANE, gradient=False)
case("batch_matmul", lambda a, b: raw.BatchMatMul(x=a, y=b), array(2, 5, 9), array(2, 9, 4))
case("batch_matmul-adjoint", lambda a, b: raw.BatchMatMulV2(x=a, y=b, adj_x=True), array(2, 9, 5), array(2, 9, 4))
case(
    "batch_matmul-types",
    lambda a, b: raw.BatchMatMulV3(x=a, y=b, Tout=a.dtype, adj_y=True),
    array(2, 5, 9),
    array(2, 4, 9),
    gradient=False,
)
case("inv", lambda x: raw.Inv(x=x), PLANE)
case("inv-gradient", lambda y, g: raw.InvGrad(y=y, dy=g), PLANE, PLANE, gradient=False)
case("softplus-twice", lambda x, g: raw.SoftplusGrad(gradients=g, features=x), PLANE, PLANE)
case("cast-integers", lambda x: [tf.cast(x, each) for each in (tf.int32, tf.int64, tf.uint8)], PLANE, gradient=False)
case("lin_space", lambda x: raw.LinSpace(start=x[0], stop=x[1], num=13), array(2), gradient=False)
case("range", lambda x: tf.range(x[0], x[0] + 7, x[1]), array(2, kind="positive"), gradient=False)


def share(x: Any) -> Any:
    """The share of a beta distribution, whose gradient TensorFlow has with respect to x alone."""
    return tf.math.betainc(tf.fill(x.shape, tf.constant(2.5, x.dtype)), tf.fill(x.shape, tf.constant(0.75, x.dtype)), x)


case("betainc-share", share, array(240, kind="share"))

# --- images -----------------------------------------------------------------------------------------------------------


def projected(version: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """Images at places that a projective map gives."""
    more = {"fill_value": 0.3} if version is raw.ImageProjectiveTransformV3 else {}

    def function(x: Any, maps: Any) -> Any:
        maps = tf.cast(maps * 0.125 + [1, 0, 0, 0, 1, 0, 0, 0], tf.float32)
        return version(images=x, transforms=maps, output_shape=[5, 9], interpolation=mode, fill_mode="REFLECT", **more)

    return function


def moved(x: Any) -> Any:
    return raw.ScaleAndTranslate(images=x, size=[5, 9], scale=[0.7, 1.3], translation=[0.3, -0.2])


case("image-contrast", lambda x: tf.image.adjust_contrast(x, 1.3), SHARES, floats=SINGLE, gradient=False)
case("image-hue", lambda x: tf.image.adjust_hue(x, 0.3), SHARES, floats=SINGLE, gradient=False)
case("image-saturation", lambda x: tf.image.adjust_saturation(x, 1.3), SHARES, floats=SINGLE, gradient=False)
case("rgb_to_hsv", tf.image.rgb_to_hsv, SHARES)
case("hsv_to_rgb", tf.image.hsv_to_rgb, SHARES, gradient=False)
_maps = array(2, 8, kind="unit")
case("projective", projected(raw.ImageProjectiveTransformV2, "BILINEAR"), IMAGES, _maps, gradient=False)
case("projective-filled", projected(raw.ImageProjectiveTransformV3, "NEAREST"), IMAGES, _maps, gradient=False)
case("bicubic-images", lambda x: raw.ResizeBicubic(images=x, size=[5, 9], half_pixel_centers=True), IMAGES)
case("scale-and-translate", moved, IMAGES, floats=SINGLE)
for _version in ("", "V2"):
    case(
        f"batch_norm-version{_version[1:] or 1}",
        lambda x, a, b, version=_version: getattr(raw, f"FusedBatchNorm{version}")(
            x=x, scale=a, offset=b, mean=[], variance=[], epsilon=2.0**-10
        )[0],
        IMAGES,
        array(3),
        array(3),
        floats=SINGLE,
    )


def second(pool: Callable[..., Any], x: Any, g: Any) -> Any:
    """The gradient of a pool's gradient by the upstream one."""
    with tf.GradientTape() as outer:
        outer.watch(g)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = pool(x, 2, 2, "VALID")
        slope = inner.gradient(y, x, g)
    return outer.gradient(slope, g, x)


case("max_pool2d-twice", partial(second, tf.nn.max_pool2d), IMAGES, array(2, 4, 3, 3), gradient=False)
case(
    "max_pool3d-twice",
    partial(second, tf.nn.max_pool3d),
    array(2, 4, 5, 4, 3),
    array(2, 2, 2, 2, 3),
    gradient=False,
    floats=SINGLE,
)

WINDOW, KERNEL = [1, 3, 3, 1], array(3, 2, 3)
for _bits in (4, 8):
    case(
        f"fake-quantized-{_bits}",
        lambda x, bits=_bits: tf.quantization.fake_quant_with_min_max_args(x, -2.5, 1.5, bits),
        IMAGES,
        floats=SINGLE,
    )
case(
    "fake-quantized-range",
    lambda x, low, high: tf.quantization.fake_quant_with_min_max_vars(x, -low[0], high[0]),
    IMAGES,
    array(1, kind="positive"),
    array(1, kind="positive"),
    floats=SINGLE,
)
case(
    "fake-quantized-channels",
    lambda x, low, high: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, -low, high, narrow_range=True),
    IMAGES,
    array(3, kind="positive"),
    array(3, kind="positive"),
    floats=SINGLE,
)
for _number in (2, 3, 4):
    case(
        f"quantized-{_number}",
        lambda x, high, version=_number: getattr(raw, f"QuantizeAndDequantizeV{version}")(
            input=x, input_min=-high[0], input_max=high[1], num_bits=6, range_given=version == 4
        ),
        IMAGES,
        array(2, kind="positive"),
    )
case("resize-area", lambda x: raw.ResizeArea(images=x, size=[5, 9]), IMAGES, gradient=False)
case("dilation", lambda x, w: tf.nn.dilation2d(x, w, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]), IMAGES, KERNEL)
case("max_pool2d-tensors", lambda x: raw.MaxPoolV2(input=x, ksize=WINDOW, strides=WINDOW, padding="SAME"), IMAGES)


def twice_by_tensors(x: Any, g: Any) -> Any:
    """The second derivative of a maximum."""
    windows = {"ksize": WINDOW, "strides": WINDOW, "padding": "SAME"}
    y = raw.MaxPoolV2(input=x, **windows)
    return raw.MaxPoolGradGradV2(orig_input=x, orig_output=y, grad=g, **windows)


case("max_pool2d-tensors-twice", twice_by_tensors, IMAGES, IMAGES, gradient=False)

# --- boxes, regions, places of maxima ---------------------------------------------------------------------------------


def cropped(x: Any, boxes: Any) -> Any:
    return tf.image.crop_and_resize(x, tf.cast(boxes, tf.float32), [0, 1, 1, 0, 1], (5, 4))


def suppressed(boxes: Any, scores: Any) -> Any:
    """The boxes that each version keeps."""
    limits = {"boxes": boxes, "scores": scores, "max_output_size": 9, "iou_threshold": 0.3}
    more = {**limits, "score_threshold": 0.1}
    image = {"boxes": boxes[None, :, None], "scores": scores[None, :, None], "max_output_size_per_class": 9}
    return [
        *(raw.NonMaxSuppression(**limits), raw.NonMaxSuppressionV2(**limits), raw.NonMaxSuppressionV3(**more)),
        *raw.NonMaxSuppressionV4(**more),
        *raw.NonMaxSuppressionV5(**more, soft_nms_sigma=0.25),
        tf.image.non_max_suppression_overlaps(boxes @ tf.transpose(boxes), scores, 9, 1.5),
        *raw.CombinedNonMaxSuppression(**image, max_total_size=7, iou_threshold=0.3, score_threshold=0.1),
    ]


case("crop_and_resize", cropped, IMAGES, array(5, 4, kind="share"))
case("lrn", lambda x: tf.nn.lrn(x, 2, 1.0, 0.25, 0.75), array(2, 8, 7, 9), floats=SINGLE)
case("max_pool-places", lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")[0], IMAGES, floats=SINGLE)
case("suppression", suppressed, array(30, 4, kind="share"), array(30, kind="share"), floats=SINGLE, gradient=False)

# --- segments, indices ------------------------------------------------------------------------------------------------

ROWS, IDS = array(50, 3), index(11, 50)
case("segment_sum-sorted", lambda x, i: tf.math.segment_sum(x, tf.sort(i)), ROWS, IDS)
case("segment_mean", lambda x, i: tf.math.segment_mean(x, tf.sort(i)), ROWS, IDS)
for _name in ("sum", "mean", "sqrt_n"):
    _segment = getattr(tf.sparse, f"segment_{_name}")
    case(f"sparse_segment_{_name}", lambda x, i, j, f=_segment: f(x, i, tf.sort(j)), ROWS, index(50, 40), index(7, 40))
    case(
        f"sparse_segment_{_name}-number",
        lambda x, i, j, f=_segment: f(x, i, tf.sort(j), num_segments=9),
        ROWS,
        index(50, 40),
        index(7, 40),
    )
case(
    "bincount-weights",
    lambda i, w: raw.Bincount(arr=tf.cast(i, tf.int32), size=12, weights=w),
    IDS,
    array(50),
    gradient=False,
)
case("bincount-dense", lambda i, w: raw.DenseBincount(input=i, size=12, weights=w), IDS, array(50), gradient=False)

case("segment_prod", lambda x, i: tf.math.segment_prod(x, tf.sort(i)), ROWS, IDS, gradient=False)
case("segment_prod-unsorted", lambda x, i: tf.math.unsorted_segment_prod(x, i - 1, 12), ROWS, IDS)
for _name in ("Sum", "Mean", "SqrtN"):
    case(
        f"sparse_segment_{_name}-rows",
        lambda g, i, j, name=_name: getattr(raw, f"SparseSegment{name}GradV2")(
            grad=g, indices=i, segment_ids=tf.sort(j), dense_output_dim0=50
        )[0],
        array(7, 3),
        index(50, 40),
        index(7, 40),
        gradient=False,
    )
case("scatter_nd", lambda i, y: tf.scatter_nd(i[:, None], y, (11, 3)), IDS, ROWS)
case(
    "scatter_nd-add",
    lambda x, i, y: raw.ScatterNdNonAliasingAdd(input=x, indices=i[:, None], updates=y),
    array(11, 3),
    IDS,
    ROWS,
)


def sparse(x: Any, step: int) -> tf.SparseTensor:
    """Numbers [N] in a matrix [N / 3, 7], three in each row, in order."""
    places = tf.range(x.shape[0], dtype=tf.int64)
    return tf.SparseTensor(tf.stack([places // 3, places % 3 * step], 1), x, (x.shape[0] // 3, 7))


def merged(x: Any, y: Any, limit: float) -> Any:
    """Two sparse tensors that share some places: the places of their sum, and its numbers."""
    total = tf.sparse.add(sparse(x, 2), sparse(y, 3), limit)
    return total.values, tf.cast(total.indices, x.dtype)


def filled(x: Any, default: Any) -> Any:
    """Rows without a number get the default one."""
    rows = tf.SparseTensor(tf.stack([tf.range(30, dtype=tf.int64) * 2, tf.zeros(30, tf.int64)], 1), x, (60, 2))
    return tf.sparse.fill_empty_rows(rows, default[0])[0].values


def moved_places(x: Any, y: Any) -> Any:
    """Sparse tensors that are joined, cut and sorted."""
    joined = tf.sparse.concat(1, [sparse(x, 2), sparse(y, 3)])
    mixed = tf.SparseTensor(tf.reverse(joined.indices, [0]), tf.reverse(joined.values, [0]), joined.dense_shape)
    parts = tf.sparse.split(sp_input=tf.sparse.reorder(mixed), num_split=2, axis=1)
    return [tf.sparse.slice(joined, [2, 1], [5, 9]).values, *(each.values for each in parts)]


THIRTY = array(30)
case("sparse-add", lambda x, y: merged(x, y, 0.0)[0], THIRTY, THIRTY)
case("sparse-add-limit", lambda x, y: merged(x, y, 0.75), THIRTY, THIRTY, gradient=False)
case("sparse-add-dense", lambda x, y: tf.sparse.add(sparse(x, 2), y), THIRTY, array(10, 7))
case("sparse-sum", lambda x: tf.sparse.reduce_sum(sparse(x, 2), 0), THIRTY)
case("sparse-sum-all", lambda x: tf.sparse.reduce_sum(sparse(x, 2), keepdims=True), THIRTY)
case("sparse-slice", lambda x: tf.sparse.slice(sparse(x, 2), [2, 1], [5, 4]).values, THIRTY)
case("sparse-moves", moved_places, THIRTY, THIRTY, gradient=False)
case("sparse-fill", filled, THIRTY, array(1))
case("lstsq-slow", lambda a, b: tf.linalg.lstsq(a, b, fast=False), array(6, 4), array(6, 3), gradient=False)
case("lstsq-regular", lambda a, b: tf.linalg.lstsq(a, b, l2_regularizer=0.5), array(6, 4), array(6, 3))
case("sparse-softmax", lambda x: tf.sparse.softmax(sparse(x, 2)).values, THIRTY)
case("sparse-max", lambda x: tf.sparse.reduce_max(sparse(x, 2), 0), THIRTY, gradient=False)
case("sparse-times-dense", lambda x, y: (sparse(x, 2) * y).values, THIRTY, array(10, 7))
case(
    "sparse-sum-sparse",
    lambda x: tf.sparse.reduce_sum(sparse(x, 2), 1, output_is_sparse=True).values,
    THIRTY,
    gradient=False,
)
case("sparse-matmul", lambda a, b: raw.SparseMatMul(a=a, b=b), array(5, 9), array(9, 4), floats=SINGLE)
case("lu-square", lambda x: tf.linalg.lu(x)[0], array(2, 5, 5, kind="definite"), gradient=False)
case("tridiagonal-product", lambda a, b: tf.linalg.tridiagonal_matmul(a, b, "compact"), array(2, 3, 7), array(2, 7, 4))
