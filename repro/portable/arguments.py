"""Arguments of the libraries, checked for every framework.

Each has one form, or a UsageError of one line says what is wrong.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.errors import UsageError

Pair = tuple[int, int]
Edges = tuple[Pair, Pair]
"""Rows above and below, columns to the left and to the right."""


def refuse(function: str, why: str) -> UsageError:
    """The line that says what is wrong."""
    return UsageError(f"portable numerics: {function}: {why}")


def check(function: str, holds: bool, why: str) -> None:
    """Raises UsageError with this line unless `holds`."""
    if not holds:
        raise refuse(function, why)


def refuse_second_derivative() -> UsageError:
    """The line for a gradient that is differentiated in JAX or TensorFlow."""
    remedy = "where none is meant, compute the inner gradient at stop_gradient(x)"
    return refuse("gradient", f"second derivatives have no portable form; {remedy}")


def kind(array: Any) -> str:
    """The type of an array's numbers, as float32, by the name that all frameworks have for it."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def check_floats(function: str, **arrays: Any) -> None:
    """Raises UsageError for the first of these arrays that is not of float32, is empty, or has an unknown shape."""
    for name, array in arrays.items():
        if array is not None:
            if kind(array) != "float32":
                raise refuse(function, f"{name} is {kind(array)}; convert it to float32")
            _check_known(function, name, array)


def check_integers(function: str, name: str, array: Any) -> None:
    """Raises UsageError if an array is not of integers, is empty, or has an unknown shape."""
    check(function, "int" in kind(array), f"{name} is {kind(array)} and must be of integers")
    _check_known(function, name, array)


def check_range(function: str, name: str, least: int, most: int, size: int) -> None:
    """Raises UsageError if indices from `least` to `most` are not all from 0 to size - 1."""
    inside = least >= 0 and most < size
    check(function, inside, f"{name} has numbers from {least} to {most}; they must be from 0 to {size - 1}")


# --- numbers ----------------------------------------------------------------------------------------------------------


def check_number(function: str, name: str, value: Any, least: float = 0.0, most: float = math.inf) -> None:
    """Raises UsageError unless a number is finite and within these bounds."""
    inside = isinstance(value, (int, float, np.number)) and math.isfinite(value) and least <= value <= most
    bounds = f"from {least:g} to {most:g}" if most < math.inf else f"a number of at least {least:g}"
    check(function, bool(inside), f"{name}={value} must be {bounds if least > -math.inf else 'a finite number'}")


def check_share(function: str, name: str, value: Any) -> None:
    """Raises UsageError unless a number is at least 0 and, as float32, below 1."""
    inside = isinstance(value, (int, float, np.number)) and 0 <= np.float32(value) < 1
    check(function, bool(inside), f"{name}={value} must be at least 0 and below 1")


def check_integer(function: str, name: str, value: Any, size: int) -> None:
    """Raises UsageError unless a number is an integer from 0 to size - 1; the size is a power of two."""
    inside = isinstance(value, (int, np.integer)) and 0 <= value < size
    check(function, bool(inside), f"{name}={value} must be an integer from 0 to 2^{size.bit_length() - 1} - 1")


def check_count(function: str, name: str, value: Any) -> None:
    """Raises UsageError unless a number is an integer of at least 1."""
    check(function, isinstance(value, int) and value >= 1, f"{name}={value} must be an integer of at least 1")


def check_samples(function: str, terms: int) -> None:
    """Raises UsageError if a channel has only one number, so that its variance over n - 1 is undefined."""
    check(function, terms > 1, "a variance in training needs more than one value per channel; make the batch larger")


def dropout_key(function: str, seed: int, stream: int) -> int:
    """The key of random numbers for one of a network's dropouts. UsageError for numbers that are too large."""
    check_integer(function, "seed", seed, 2**32)
    check_integer(function, "stream", stream, 2**30)
    return seed + 2**32 * stream


# --- shapes -----------------------------------------------------------------------------------------------------------


def _check_known(function: str, name: str, array: Any) -> None:
    if getattr(array.shape, "rank", 0) is None or None in tuple(array.shape):
        remedy = "make batches of one size, as by drop_remainder=True"
        raise refuse(function, f"{name} has the shape {array.shape}, which must be known; {remedy}")
    if 0 in tuple(array.shape):
        raise refuse(function, f"{name} of shape {list(array.shape)} holds no numbers; give one sample at least")


def check_fit(function: str, fits: bool, *arrays: Any) -> None:
    """Raises UsageError with the shapes of these arrays if they do not fit."""
    check(function, fits, f"shapes {' and '.join(str(list(each.shape)) for each in arrays)} do not fit one another")


def check_alike(function: str, a: Any, b: Any) -> None:
    """Raises UsageError unless two arrays have one shape."""
    check_fit(function, tuple(a.shape) == tuple(b.shape), a, b)


def check_shapes(function: str, shape: Sequence[int], **arrays: Any) -> None:
    """Raises UsageError for the first of these arrays, unless None, that is not of this shape."""
    for name, array in arrays.items():
        if array is not None:
            same = tuple(array.shape) == tuple(shape)
            check(function, same, f"{name} must be {list(shape)}, not {list(array.shape)}")


def check_dimensions(function: str, least: int, **arrays: Any) -> None:
    """Raises UsageError for the first of these arrays that has fewer dimensions."""
    for name, array in arrays.items():
        enough = len(array.shape) >= least
        check(function, enough, f"{name} {list(array.shape)} has too few dimensions; give {least} at least")


def check_images(function: str, name: str, x: Any) -> None:
    """Raises UsageError unless an array has four dimensions."""
    check(function, len(x.shape) == 4, f"{name} {list(x.shape)} must have 4 dimensions, as images have")


def check_mask(function: str, name: str, mask: Any, shape: Sequence[int]) -> None:
    """Raises UsageError unless an array is of bool, and of a shape that is broadcast to this one."""
    check(function, kind(mask) == "bool", f"{name} is {kind(mask)} and must be bool")
    own = tuple(mask.shape)
    fits = len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False))
    check(function, fits, f"{name} of shape {list(own)} does not fit {list(shape)}")


# --- shapes of operations ---------------------------------------------------------------------------------------------
# Frameworks have other orders of axes: these say where the axes lie.


def check_linear(x: Any, weight: Any, bias: Any, inputs: int) -> None:
    """Raises UsageError unless the last axis of x fits the axis `inputs` of a matrix, and the bias its other axis."""
    fits = len(x.shape) >= 1 and len(weight.shape) == 2 and x.shape[-1] == weight.shape[inputs]
    check_fit("linear", fits, x, weight)
    check_shapes("linear", (weight.shape[1 - inputs],), bias=bias)


def check_convolution(x: Any, weight: Any, bias: Any, groups: int, channels: int, inputs: int, outputs: int) -> None:
    """Raises UsageError unless axis `channels` of images fits `inputs` of the weight, and groups and bias fit both."""
    check_count("conv2d", "groups", groups)
    fits = len(x.shape) == len(weight.shape) == 4 and x.shape[channels] == weight.shape[inputs] * groups
    check_fit("conv2d", fits and weight.shape[outputs] % groups == 0, x, weight)
    check_shapes("conv2d", (weight.shape[outputs],), bias=bias)


def check_embedding(weight: Any) -> None:
    """Raises UsageError unless this is a matrix."""
    check("embedding", len(weight.shape) == 2, f"weight must be [N, C], not {list(weight.shape)}")


def check_attention(function: str, query: Any, key: Any, value: Any, is_causal: bool, scale: float | None) -> None:
    """Raises UsageError unless these are [..., T, D], [..., S, D], [..., S, E], and T = S if a query's place counts."""
    (*outer, rows, size), (*outer_k, columns, size_k), (*outer_v, columns_v, _) = (
        tuple(each.shape) if len(each.shape) > 1 else (None, 0, 0) for each in (query, key, value)
    )
    fits = rows and outer == outer_k == outer_v and size == size_k and columns == columns_v
    check_fit(function, bool(fits), query, key, value)
    alike = not is_causal or rows == columns  # frameworks differ in what they line up
    check(function, alike, f"is_causal with {rows} queries and {columns} keys is ambiguous; give a mask")
    check_number(function, "scale", 1.0 if scale is None else scale, -math.inf)


def check_groups(function: str, name: str, x: Any, channels: int, groups: int) -> None:
    """Raises UsageError unless groups divide the axis `channels` of samples."""
    check_count(function, "groups", groups)
    check_dimensions(function, 2, **{name: x})
    check(function, x.shape[channels] % groups == 0, f"{groups} groups of shape {list(x.shape)} do not fit")


def check_rotary(name: str, x: Any, base: float) -> None:
    """Raises UsageError unless x is [..., T, D] with an even D."""
    even = len(x.shape) >= 2 and x.shape[-1] % 2 == 0
    check("rotary", even, f"{name} must be [..., T, D] with an even D, not {list(x.shape)}")
    check_number("rotary", "base", base, 1.0)


def check_labels(logits: Any, labels: Any, classes: int, label_smoothing: float) -> None:
    """Raises UsageError unless labels have the shape of logits without the axis `classes`, and smoothing is a share."""
    shape = tuple(logits.shape)
    fits = len(shape) >= 2 and tuple(labels.shape) == shape[:classes] + shape[classes:][1:]
    check_fit("cross_entropy", fits, logits, labels)
    check_number("cross_entropy", "label_smoothing", label_smoothing, 0.0, 1.0)


# --- images -----------------------------------------------------------------------------------------------------------


def pair(function: str, name: str, value: Any, least: int = 1) -> Pair:
    """Returns a pair of integers, for rows and columns, from one or two. UsageError for anything else, or less."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    both = given * 2 if len(given) == 1 else given
    if len(both) != 2 or not all(isinstance(each, int) and each >= least for each in both):
        raise refuse(function, f"{name}={value!r} must be an integer of at least {least}, or a pair of them")
    return both


def edges(
    function: str, padding: int | str | Sequence[Any], image: Pair, kernel: Pair, stride: Pair, dilation: Pair = (1, 1)
) -> Edges:
    """Computes how far an image of this size is padded on each side.

    padding: an integer, a pair of them, a pair of pairs, "VALID", or "SAME" as TensorFlow and Flax have it: the result
    has the size of the image over the stride, rounded up, and an odd row or column comes last. UsageError for another
    padding, and where a kernel is larger than what it slides over.
    """
    spans = [hole * (length - 1) + 1 for hole, length in zip(dilation, kernel, strict=True)]
    pairs: tuple[Pair, ...]
    if isinstance(padding, str):
        if padding.upper() not in ("VALID", "SAME"):
            raise refuse(function, f"padding={padding!r} must be VALID, SAME, an integer or a pair")
        missing = (
            max(0, (-(-size // step) - 1) * step + span - size)
            for size, step, span in zip(image, stride, spans, strict=True)
        )
        pairs = tuple((each // 2, each - each // 2) for each in missing) if padding.upper() == "SAME" else ((0, 0),) * 2
    elif isinstance(padding, (tuple, list)) and any(isinstance(each, (tuple, list)) for each in padding):
        check(function, len(padding) == 2, f"padding={padding!r} must be a pair of pairs")
        pairs = tuple(pair(function, "padding", each, 0) for each in padding)
    else:
        pairs = tuple((each, each) for each in pair(function, "padding", padding, 0))
    for size, (before, after), span in zip(image, pairs, spans, strict=True):
        fits = before + size + after >= span
        remedy = "make it smaller, or the padding larger"
        check(function, fits, f"the kernel reaches over {span} of {before + size + after}; {remedy}")
    return pairs[0], pairs[1]


def window(
    function: str, size: Any, stride: Any, padding: int | str | Sequence[Any], image: Pair
) -> tuple[Pair, Pair, Edges]:
    """The size and stride of a pool's windows, and the padding of images. The stride is the size unless given."""
    kernel = pair(function, "kernel_size", size)
    step = kernel if stride is None else pair(function, "stride", stride)
    around = edges(function, padding, image, kernel, step)
    small = all(2 * max(each) <= length for each, length in zip(around, kernel, strict=True))
    check(function, small, f"padding={padding} is more than half of kernel_size={size}")
    return kernel, step, around
