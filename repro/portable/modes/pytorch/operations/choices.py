"""Choices between numbers, whose zeros have no sign.

-0 and 0 are equal, and which of them a maximum gives depends on where in a vector they lie, and on the device: 0 here.
"""

from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define

aten = torch.ops.aten
NAMES = (
    *("maximum", "minimum", "fmax", "fmin", "amax", "amin", "max", "min", "aminmax", "softshrink"),
    *("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor"),
)


def unsigned(result: Any) -> Any:
    """Fresh results without -0."""
    if isinstance(result, Tensor):
        return result.add_(0.0) if result.is_floating_point() else result
    return tuple(unsigned(each) for each in result)


def _choice(name: str) -> None:
    base, _, kind = name.partition(".")
    own = getattr(getattr(aten, base), kind or "default")

    @define(name)
    def chosen(*arguments: Any, **options: Any) -> Any:
        return unsigned(own(*arguments, **options))


for _name in NAMES:
    _choice(_name)


@define("relu")
def relu(self: Tensor) -> Tensor:
    return aten.threshold(self, 0, 0)


@define("relu_")
def relu_(self: Tensor) -> Tensor:
    return aten.threshold_(self, 0, 0)


def _limits(name: str) -> None:
    """An operation that keeps numbers within limits, of which 0 is the one where signs of zeros meet."""
    own, in_place = getattr(aten, name), getattr(aten, f"{name}_")

    @define(name)
    def limited(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        result = own(self, *arguments, **options)
        return unsigned(result) if 0 in (*arguments, *options.values()) else result

    @define(f"{name}_")
    def limited_in_place(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        in_place(self, *arguments, **options)
        return unsigned(self) if 0 in (*arguments, *options.values()) else self


for _name in ("clamp", "clamp_min", "clamp_max", "hardtanh"):
    _limits(_name)
