"""Arguments of the libraries, checked for every framework.

Each has one form, or a UsageError of one line says what is wrong.
"""

from collections.abc import Sequence
from typing import Any

from repro.errors import UsageError

Pair = tuple[int, int]
Edges = tuple[Pair, Pair]
"""Rows above and below, columns to the left and to the right."""


def refuse(function: str, why: str) -> UsageError:
    """The line that says what is wrong."""
    return UsageError(f"portable numerics: {function}: {why}")


def check(function: str, holds: bool, why: str) -> None:
    """UsageError with this line unless that holds."""
    if not holds:
        raise refuse(function, why)


def kind(array: Any) -> str:
    """The type of an array's numbers, as float32, by the name that all frameworks have for it."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def check_floats(function: str, **arrays: Any) -> None:
    """UsageError for the first of these arrays that is not of float32, or holds nothing, or has an unknown shape."""
    for name, array in arrays.items():
        if array is not None:
            if kind(array) != "float32":
                raise refuse(function, f"{name} is {kind(array)}; convert it to float32")
            _check_shape(function, name, array)


def check_integers(function: str, name: str, array: Any) -> None:
    """UsageError where an array is not of integers, or holds nothing, or has an unknown shape."""
    check(function, "int" in kind(array), f"{name} is {kind(array)} and must be of integers")
    _check_shape(function, name, array)


def check_mask(function: str, name: str, array: Any) -> None:
    """UsageError where an array is not of bool."""
    check(function, kind(array) == "bool", f"{name} is {kind(array)} and must be bool")


def _check_shape(function: str, name: str, array: Any) -> None:
    if getattr(array.shape, "rank", 0) is None or None in tuple(array.shape):
        remedy = "make batches of one size, as by drop_remainder=True"
        raise refuse(function, f"{name} has the shape {array.shape}, which must be known; {remedy}")
    if 0 in tuple(array.shape):
        raise refuse(function, f"{name} of shape {list(array.shape)} holds no numbers; give one sample at least")


def check_range(function: str, name: str, least: int, most: int, size: int) -> None:
    """UsageError where indices from `least` to `most` are not all from 0 to size - 1."""
    inside = least >= 0 and most < size
    check(function, inside, f"{name} has numbers from {least} to {most}; they must be from 0 to {size - 1}")


def check_fit(function: str, fits: bool, *arrays: Any) -> None:
    """UsageError with the shapes of these arrays unless they fit."""
    check(function, fits, f"shapes {' and '.join(str(list(each.shape)) for each in arrays)} do not fit one another")


def check_channels(function: str, channels: int, **arrays: Any) -> None:
    """UsageError for the first of these arrays, unless None, that is not of shape [channels]."""
    for name, array in arrays.items():
        if array is not None:
            check(function, tuple(array.shape) == (channels,), f"{name} must be [{channels}], not {list(array.shape)}")


def check_images(function: str, name: str, x: Any) -> None:
    """UsageError unless an array has four dimensions."""
    check(function, len(x.shape) == 4, f"{name} {list(x.shape)} must have 4 dimensions, as images have")


def check_attention(function: str, query: Any, key: Any, value: Any, is_causal: bool) -> None:
    """UsageError unless these are [..., T, D], [..., S, D] and [..., S, E], and T = S where a query's place counts."""
    (*outer, rows, size), (*outer_k, columns, size_k), (*outer_v, columns_v, _) = (
        tuple(each.shape) if len(each.shape) > 1 else (None, 0, 0) for each in (query, key, value)
    )
    fits = rows and outer == outer_k == outer_v and size == size_k and columns == columns_v
    check_fit(function, bool(fits), query, key, value)
    alike = not is_causal or rows == columns  # frameworks differ in what they line up
    check(function, alike, f"is_causal with {rows} queries and {columns} keys is ambiguous; give a mask")


def check_samples(function: str, terms: int) -> None:
    """UsageError where a channel has one number, whose variance over n - 1 there is not."""
    check(function, terms > 1, "a variance in training needs more than one value per channel; make the batch larger")


def check_share(function: str, name: str, value: float) -> None:
    """UsageError unless a number is at least 0 and below 1."""
    check(function, 0 <= value < 1, f"{name}={value} must be at least 0 and below 1")


def dropout_key(function: str, seed: int, stream: int) -> int:
    """The key of random numbers for one of a network's dropouts. UsageError for numbers that are too large."""
    check(function, 0 <= seed < 2**32, f"seed={seed} must be from 0 to 2^32 - 1")
    check(function, 0 <= stream < 2**30, f"stream={stream} must be from 0 to 2^30 - 1")
    return seed + 2**32 * stream


def pair(function: str, name: str, value: Any, least: int = 1) -> Pair:
    """Two integers, of rows and columns, of one for both or of two. UsageError for anything else, or less."""
    given = (value,) if isinstance(value, int) else tuple(value)
    both = given * 2 if len(given) == 1 else given
    if len(both) != 2 or not all(isinstance(each, int) and each >= least for each in both):
        raise refuse(function, f"{name}={value!r} must be an integer of at least {least}, or a pair of them")
    return both


def edges(
    function: str, padding: int | str | Sequence[Any], image: Pair, kernel: Pair, stride: Pair, dilation: Pair = (1, 1)
) -> Edges:
    """How far an image of this size is padded on each side.

    padding: an integer, a pair of them, a pair of pairs, "VALID", or "SAME" as TensorFlow and Flax have it: the result
    has the size of the image over the stride, rounded up, and an odd row or column comes last. UsageError for another
    padding, and where a kernel is larger than what it slides over.
    """
    spans = [hole * (length - 1) + 1 for hole, length in zip(dilation, kernel, strict=True)]
    found: tuple[Pair, ...]
    if isinstance(padding, str):
        if padding.upper() not in ("VALID", "SAME"):
            raise refuse(function, f"padding={padding!r} must be VALID, SAME, an integer or a pair")
        missing = (
            max(0, (-(-size // step) - 1) * step + span - size)
            for size, step, span in zip(image, stride, spans, strict=True)
        )
        found = tuple((each // 2, each - each // 2) for each in missing) if padding.upper() == "SAME" else ((0, 0),) * 2
    elif isinstance(padding, int) or all(isinstance(each, int) for each in padding):
        found = tuple((each, each) for each in pair(function, "padding", padding, 0))
    else:
        check(function, len(padding) == 2, f"padding={padding!r} must be a pair of pairs")
        found = tuple(pair(function, "padding", each, 0) for each in padding)
    for size, (before, after), span in zip(image, found, spans, strict=True):
        fits = before + size + after >= span
        remedy = "make it smaller, or the padding larger"
        check(function, fits, f"the kernel reaches over {span} of {before + size + after}; {remedy}")
    return found[0], found[1]


def window(
    function: str, size: Any, stride: Any, padding: int | str | Sequence[Any], image: Pair
) -> tuple[Pair, Pair, Edges]:
    """Size and stride of the windows of a pool, and how far images are padded. The stride is the size unless given."""
    kernel = pair(function, "kernel_size", size)
    step = kernel if stride is None else pair(function, "stride", stride)
    around = edges(function, padding, image, kernel, step)
    small = all(2 * max(each) <= length for each, length in zip(around, kernel, strict=True))
    check(function, small, f"padding={padding} is more than half of kernel_size={size}")
    return kernel, step, around
