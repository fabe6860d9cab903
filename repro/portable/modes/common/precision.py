"""The precision of the mode, which dispatchers hand over to the definitions that ask for it."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from repro.portable.numbers.precisions import SLICES


class Setting:
    """The precision that the mode was enabled with; self-checks compute with another."""

    slices = SLICES["high"]
    """The number of slices of float32 operands."""


setting = Setting()


def handed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given the number of slices at each call, where it has a parameter `slices`."""
    if "slices" not in inspect.signature(function).parameters:
        return function

    @wraps(function)
    def with_slices(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, slices=setting.slices, **options)

    return with_slices
