"""What a user gives to the functions of portable numerics, in any framework: one form for each, or one clear line."""

from collections.abc import Sequence
from typing import Any

from repro.errors import UsageError

Pair = tuple[int, int]
Edges = tuple[Pair, Pair]
"""Rows above and below, columns to the left and to the right."""


def refuse(function: str, why: str) -> UsageError:
    """The line that says what is wrong."""
    return UsageError(f"portable numerics: {function}: {why}")


def check_floats(function: str, **arrays: Any) -> None:
    """UsageError for the first of these arrays that is not of float32, or holds nothing, or has an unknown shape."""
    for name, array in arrays.items():
        if array is not None:
            kind = array.dtype.name
            check(
                function, kind == "float32", f"{name} is {kind}, and float32 is needed: no other precision is mixed in"
            )
            _check_shape(function, name, array)


def check_integers(function: str, name: str, array: Any) -> None:
    """UsageError where an array is not of integers, or holds nothing, or has an unknown shape."""
    check(function, "int" in array.dtype.name, f"{name} is {array.dtype.name} and must be of integers")
    _check_shape(function, name, array)


def _check_shape(function: str, name: str, array: Any) -> None:
    known = getattr(array.shape, "rank", 0) is not None and None not in tuple(array.shape)
    check(function, known, f"{name} has the shape {array.shape}, which must be known; make batches of one size, as by "
          "drop_remainder=True")  # fmt: skip
    check(function, 0 not in tuple(array.shape), f"{name} of shape {list(array.shape)} holds nothing")


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


def check_images(function: str, x: Any) -> None:
    """UsageError unless an array has four dimensions."""
    check(function, len(x.shape) == 4, f"images must be [B, H, W, C], not {list(x.shape)}")


def check_attention(function: str, query: Any, key: Any, value: Any, is_causal: bool) -> None:
    """UsageError unless these are [..., T, D], [..., S, D] and [..., S, E], and T = S where a query's place counts."""
    (*outer, rows, size), (*outer_k, columns, size_k), (*outer_v, columns_v, _) = (
        tuple(each.shape) if len(each.shape) > 1 else (None, 0, 0) for each in (query, key, value)
    )
    fits = rows and outer == outer_k == outer_v and size == size_k and columns == columns_v
    check_fit(function, bool(fits), query, key, value)
    alike = not is_causal or rows == columns  # frameworks differ in what they line up
    check(function, alike, f"is_causal with {rows} queries and {columns} keys; give a mask")


def dropout_key(function: str, seed: int, stream: int) -> int:
    """The key of random numbers for one of a network's dropouts. UsageError for numbers that are too large."""
    check(function, 0 <= seed < 2**32, f"seed={seed} must be from 0 to 2^32 - 1")
    check(function, 0 <= stream < 2**30, f"stream={stream} must be from 0 to 2^30 - 1")
    return seed + 2**32 * stream


def check(function: str, holds: bool, why: str) -> None:
    """UsageError with this line unless that holds."""
    if not holds:
        raise refuse(function, why)


def pair(function: str, name: str, value: Any, least: int = 1) -> Pair:
    """Two integers, of rows and columns, of one for both or of two. UsageError for anything else, or less."""
    both = (value, value) if isinstance(value, int) else tuple(value)
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
        check(function, before + size + after >= span, f"the kernel reaches over {span} of {before + size + after}")
    return found[0], found[1]
