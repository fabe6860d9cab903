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


def check_float32(function: str, **dtypes: Any) -> None:
    """UsageError for the first of these dtypes, by the argument's name, that is not float32."""
    for name, dtype in dtypes.items():
        if dtype not in ("float32", "torch.float32"):
            raise refuse(function, f"{name} is {dtype} and must be float32; convert it, and leave mixed precision off")


def check_integer(function: str, **dtypes: Any) -> None:
    """UsageError for the first of these dtypes, by the argument's name, that is no integer's."""
    for name, dtype in dtypes.items():
        if "int" not in str(dtype):
            raise refuse(function, f"{name} is {dtype} and must be of integers")


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
