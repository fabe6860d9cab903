"""Calls of TensorFlow's Python, which is made of raw operations: tf.math, tf.nn, tf.linalg, tf.image, tf.signal, keras.ops."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from programs.fuzz.cases import Case
from programs.fuzz.tensorflow_draws import KINDS, TYPES, Draw, arrays, gradients, results

Function = Callable[..., Any]
Given = Callable[[Draw], list[Any]]
CALLS: dict[str, tuple[Function, Given]] = {}
"""The function and its arguments by a name."""


def call(name: str, function: Function, given: Given) -> None:
    """Names a call; one by hand comes after a module's own and takes its place."""
    CALLS[name] = function, given


def _required(function: Function) -> int:
    """The number of arguments that a function needs; 0 where that is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)


def _module(title: str, module: Any, given: Given, left_out: str = "") -> None:
    """Functions of one or two arrays, each with as many as it needs."""
    for name in dir(module):
        function = getattr(module, name)
        if name[0] == "_" or isinstance(function, type) or not callable(function) or name in left_out.split():
            continue
        if (number := _required(function)) in (1, 2):
            call(f"{title}.{name}", function, partial(_first, number, given))


def _first(number: int, given: Given, draw: Draw) -> list[Any]:
    return given(draw)[:number]


NO_NUMBERS = "get get_item is_tensor convert_to_tensor deserialize serialize custom_gradient fori_loop map scan"
_module("tf.math", tf.math, lambda d: [d.elements(), d.elements()])
_module("tf.nn", tf.nn, lambda d: [d(5, 7), d(5, 7)], "experimental")
_module("tf.linalg", tf.linalg, lambda d: [d.definite(3, 5, 5), d.definite(3, 5, 5)])
_module("tf.signal", tf.signal, lambda d: [d(2, 64), 16])
_module("keras.ops", keras.ops, lambda d: [d(5, 7), d(5, 7)], NO_NUMBERS)
_module("keras.activations", keras.activations, lambda d: [d.elements()], NO_NUMBERS)
_module("keras.losses", keras.losses, lambda d: [d.unit(5, 7), d.unit(5, 7)], NO_NUMBERS)

# --- images -----------------------------------------------------------------------------------------------------------

for _method in ("bilinear", "nearest", "bicubic", "area", "gaussian", "lanczos3", "lanczos5", "mitchellcubic"):
    call(
        f"tf.image.resize {_method}",
        lambda x, method=_method: tf.image.resize(x, (5, 11), method, antialias=method != "area"),
        lambda d: [d(2, 9, 8, 3)],
    )
    call(
        f"tf.image.resize {_method} of bytes",
        lambda x, method=_method: tf.image.resize(x, (5, 11), method),
        lambda d: [d.integers(0, 256, 2, 9, 8, 3, dtype=np.uint8)],
    )
IMAGES: dict[str, tuple[Any, ...]] = {
    "adjust_brightness": (0.1,),
    "adjust_contrast": (1.25,),
    "adjust_gamma": (1.25,),
    "adjust_hue": (0.125,),
    "adjust_saturation": (1.25,),
    "rgb_to_grayscale": (),
    "rgb_to_hsv": (),
    "rgb_to_yuv": (),
    "rgb_to_yiq": (),
    "hsv_to_rgb": (),
    "per_image_standardization": (),
    "sobel_edges": (),
    "image_gradients": (),
    "total_variation": (),
    "flip_left_right": (),
    "rot90": (),
    "central_crop": (0.5,),
    "pad_to_bounding_box": (1, 2, 12, 12),
    "extract_glimpse": ((3, 3), [[0.25, 0.5], [-0.5, 0.0]]),
}
for _name, _more in IMAGES.items():
    call(
        f"tf.image.{_name}",
        lambda x, name=_name, more=_more: getattr(tf.image, name)(x, *more),
        lambda d: [d.unit(2, 9, 8, 3)],
    )
for _target in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bool"):
    call(f"tf.cast to {_target}", lambda x, target=_target: tf.cast(x, target), lambda d: [d.elements()])
    call(
        f"tf.saturate_cast to {_target}",
        lambda x, target=_target: tf.saturate_cast(x, target),
        lambda d: [d.elements()],
    )
    call(
        f"tf.image.convert_image_dtype to {_target}",
        lambda x, target=_target: tf.image.convert_image_dtype(x, tf.as_dtype(target)),
        lambda d: [d.elements()],
    )
call("tf.image.ssim", lambda x, y: tf.image.ssim(x, y, 1.0), lambda d: [d.unit(2, 16, 16, 3), d.unit(2, 16, 16, 3)])
call("tf.image.psnr", lambda x, y: tf.image.psnr(x, y, 1.0), lambda d: [d.unit(2, 16, 16, 3), d.unit(2, 16, 16, 3)])
call(
    "tf.image.crop_and_resize",
    lambda x, boxes: tf.image.crop_and_resize(x, boxes, [0, 1, 0], (4, 5)),
    lambda d: [d(2, 9, 8, 3), d.singles(3, 4)],
)
call(
    "tf.image.non_max_suppression",
    lambda boxes, scores: tf.image.non_max_suppression(boxes, scores, 9, 0.25),
    lambda d: [d.singles(50, 4), d.singles(50)],
)
call("tf.image.decode_jpeg", lambda x: tf.io.decode_jpeg(tf.io.encode_jpeg(x)), lambda d: [_bytes(d)])
call("tf.image.adjust_jpeg_quality", lambda x: tf.image.adjust_jpeg_quality(x, 50), lambda d: [_bytes(d)])


def _bytes(d: Draw) -> Any:
    return d.integers(0, 256, 17, 23, 3, dtype=np.uint8)


# --- others -----------------------------------------------------------------------------------------------------------

call("tf.nn.conv2d", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), lambda d: [d(2, 9, 8, 3), d(3, 3, 3, 4)])
call(
    "tf.nn.conv2d_transpose",
    lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 9, 8, 4), 2),
    lambda d: [d(2, 5, 4, 3), d(3, 3, 4, 3)],
)
call("tf.nn.atrous_conv2d", lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), lambda d: [d(2, 9, 8, 3), d(3, 3, 3, 4)])
call("tf.nn.moments", lambda x: tf.nn.moments(x, (0, 1)), lambda d: [d(5, 7, 3)])
call("tf.nn.local_response_normalization", tf.nn.local_response_normalization, lambda d: [d(2, 4, 4, 9)])
call("tf.nn.max_pool_with_argmax", lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, "SAME"), lambda d: [d(2, 9, 8, 3)])
call(
    "tf.nn.batch_normalization",
    lambda x, m, v: tf.nn.batch_normalization(x, m, v, None, None, 1e-3),
    lambda d: [d(5, 7), d(7), d.positive(7)],
)
call(
    "tf.nn.ctc_loss",
    lambda x: tf.nn.ctc_loss([[1, 2, 3], [2, 3, 0]], x, [3, 2], [11, 10], blank_index=0),
    lambda d: [d(11, 2, 6)],
)
call("tf.einsum", lambda x, y: tf.einsum("...ij,...jk->...ik", x, y), lambda d: [d(3, 4, 5), d(5, 6)])
call("tf.tensordot", lambda x, y: tf.tensordot(x, y, 1), lambda d: [d(3, 4, 5), d(5, 6)])
call("tf.norm", tf.norm, lambda d: [d(5, 7)])
call("tf.math.bincount of weights", lambda x: tf.math.bincount([0, 2, 2, 1, 0], x), lambda d: [d(5)])
call("tf.histogram_fixed_width", lambda x: tf.histogram_fixed_width(x, [-2.0, 2.0], 9), lambda d: [d.singles(5, 7)])
call("tf.clip_by_global_norm", lambda x, y: tf.clip_by_global_norm([x, y], 1.0), lambda d: [d(5, 7), d(3)])
call(
    "tf.sparse.sparse_dense_matmul",
    lambda x, y: tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(x), y),
    lambda d: [d(5, 7), d(7, 3)],
)
call("tf.ragged mean", lambda x: tf.reduce_mean(tf.RaggedTensor.from_row_lengths(x, [2, 0, 5]), 1), lambda d: [d(7)])
call("tf.strings of numbers", lambda x: tf.strings.to_number(tf.strings.as_string(x)), lambda d: [d.singles(7)])


SAMPLES = [("plain", each) for each in TYPES] + [
    ("special", "float32"),
    ("graph", "float32"),
    ("huge", "bfloat16"),
    ("tiny", "float32"),
    ("scalar", "float64"),
    ("empty", "float16"),
    ("special", "bfloat16"),
]


def cases(everything: bool) -> Iterator[Case]:
    """All samples, or one by turns."""
    turns = cycle(SAMPLES)
    for name in CALLS:
        for kind, dtype in SAMPLES if everything else [next(turns)]:
            yield from _calls(name, kind, dtype)


def _calls(name: str, kind: str, dtype: str) -> Iterator[Case]:
    yield Case(name, f"{dtype} {kind}", lambda double: _computed(name, kind, dtype, double, results))
    if kind in ("plain", "graph"):
        yield Case(name, f"{dtype} {kind} gradients", lambda double: _computed(name, kind, dtype, double, gradients))


def _computed(name: str, kind: str, dtype: str, double: bool, what: Function) -> list[np.ndarray]:
    function, given = CALLS[name]
    draw = Draw(name, dtype, kind if kind in KINDS else "plain", double)
    return arrays(what(function, given(draw), kind == "graph"))
