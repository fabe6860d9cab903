"""Interpolation of images: nearest, linear, cubic, and without aliases."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from repro.portable.definitions.resampling import Taps, cubic, linear, nearest, smoothed
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.operations.resampling import resampled, resampled_bytes, spread

aten = torch.ops.aten
Sizes = Sequence[int]


def interpolation(name: str, dimensions: int, taps: Callable[..., Taps], options: int = 1) -> None:
    """An operation and its gradient, with this number of options between sizes and scales."""
    own = getattr(aten, name)

    def axes(sizes: Sizes, output_size: Sizes, given: Sequence[Any]) -> list[Taps]:
        scales = [scale if scale is not None and scale > 0 else None for scale in given[options:]]
        scales += [None] * (dimensions - len(scales))
        each = zip(sizes, output_size, scales, strict=True)
        return [taps(size, outputs, *given[:options], scale) for size, outputs, scale in each]

    @define(name, integers=True)
    def forward(self: Tensor, output_size: Sizes, *given: Any, **named: Any) -> Tensor:
        given = (*given, *named.values())
        misfit = self.dim() != dimensions + 2 or min(output_size) < 1 or 0 in self.shape[1:]
        if not misfit and options and dimensions == 2 and self.dtype == torch.uint8:
            return resampled_bytes(self, axes(self.shape[2:], output_size, given))
        if misfit or (options and not self.is_floating_point()):
            return own(self, output_size, *given)
        return resampled(self, axes(self.shape[2:], output_size, given))

    @define(f"{name}_backward")
    def backward(grad_output: Tensor, output_size: Sizes, input_size: Sizes, *given: Any, **named: Any) -> Tensor:
        return spread(grad_output, axes(input_size[2:], output_size, (*given, *named.values())))


for _dimensions, _name in enumerate(("linear1d", "bilinear2d", "trilinear3d"), 1):
    interpolation(f"upsample_{_name}", _dimensions, linear)
    interpolation(f"upsample_nearest{_dimensions}d", _dimensions, partial(nearest, exact=False), 0)
    interpolation(f"_upsample_nearest_exact{_dimensions}d", _dimensions, partial(nearest, exact=True), 0)
interpolation("upsample_bicubic2d", 2, cubic)
interpolation("_upsample_bilinear2d_aa", 2, partial(smoothed, cubic=False))
interpolation("_upsample_bicubic2d_aa", 2, partial(smoothed, cubic=True))
