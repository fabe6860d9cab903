"""Average pooling, sums of windows in a fixed order; and the way back from maximum pooling."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from repro.portable.definitions.resampling import Taps, adaptive, pooled_size, windows
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.operations.resampling import resampled, spread

aten = torch.ops.aten
Sizes = Sequence[int]


def _average(dimensions: int) -> None:
    name = f"avg_pool{dimensions}d"
    own = getattr(aten, name)

    @define(name)
    def forward(self: Tensor, kernel_size: Sizes, stride: Sizes = (), padding: Sizes = (0,), *options: Any) -> Tensor:
        how = _how(dimensions, kernel_size, stride, padding, options)
        if _misfit(self, how):
            return own(self, kernel_size, stride, padding, *options)
        return resampled(self, *_windows(self, how))

    @define(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, *options: Any) -> Tensor:
        kernel_size, stride, padding, *rest = options
        return spread(grad_output, *_windows(self, _how(dimensions, kernel_size, stride, padding, rest)))


def _how(dimensions: int, kernel: Sizes, stride: Sizes, padding: Sizes, options: Sequence[Any]) -> tuple[Any, ...]:
    rest: tuple[Any, ...] = (False, True, None)
    ceil_mode, count_include_pad, divisor = (*options, *rest[len(options) :])
    sizes = [tuple(each) * (dimensions // len(each)) for each in (kernel, stride or kernel, padding)]
    return (*sizes, ceil_mode, count_include_pad, divisor)


def _misfit(x: Tensor, how: tuple[Any, ...]) -> bool:
    """True if PyTorch's own kernel has an error to raise."""
    kernel, stride, padding, ceil_mode, _, divisor = how
    if x.dim() - len(kernel) not in (1, 2) or divisor == 0 or min(*kernel, *stride) < 1 or min(padding) < 0:
        return True
    axes = zip(x.shape[-len(kernel) :], kernel, stride, padding, strict=True)
    return any(2 * pad > length or pooled_size(n, length, step, pad, ceil_mode) < 1 for n, length, step, pad in axes)


def _windows(x: Tensor, how: tuple[Any, ...]) -> tuple[list[Taps], Tensor | float]:
    kernel, stride, padding, ceil_mode, count_include_pad, divisor = how
    result = [windows(*each, ceil_mode) for each in zip(x.shape[-len(kernel) :], kernel, stride, padding, strict=True)]
    axes = [taps for taps, _ in result]
    if divisor is not None:
        return axes, 1.0 / divisor
    return axes, _share([held if count_include_pad else taps.counts for taps, held in result], x)


def _share(counts: list[np.ndarray], x: Tensor) -> Tensor | float:
    """1 over the number of numbers in each window."""
    if all((each == each[0]).all() for each in counts):
        return 1.0 / int(np.prod([each[0] for each in counts]))
    number = counts[0]
    for each in counts[1:]:
        number = number[..., None] * each
    return torch.from_numpy(1.0 / number).to(x.device)


def _adaptive(dimensions: int) -> None:
    name = f"_adaptive_avg_pool{dimensions}d"
    own = getattr(aten, name)

    def axes(x: Tensor, output_size: Sizes) -> tuple[list[Taps], Tensor | float]:
        result = [adaptive(*each) for each in zip(x.shape[-dimensions:], output_size, strict=True)]
        return result, _share([taps.counts for taps in result], x)

    @define(name)
    def forward(self: Tensor, output_size: Sizes) -> Tensor:
        if self.dim() - dimensions not in (1, 2) or min(output_size) < 1 or 0 in self.shape[1:]:
            return own(self, output_size)
        return resampled(self, *axes(self, output_size))

    @define(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        return spread(grad_output, *axes(self, grad_output.shape[-dimensions:]))


for _dimensions in (2, 3):
    _average(_dimensions)
    _adaptive(_dimensions)


# --- back to the places of maxima -------------------------------------------------------------------------------------


@compose("max_unpool2d", "max_unpool3d")
def max_unpool(self: Tensor, indices: Tensor, output_size: Sizes, *_: Any) -> Tensor:
    """Zeros with numbers at their indices; PyTorch's threads write to one place, of some windows, in any order."""
    axes = range(-len(output_size), 0)
    whole = self.new_zeros((*self.shape[: self.dim() - len(axes)], math.prod(output_size)))
    written = whole.scatter(-1, indices.flatten(axes[0]), self.flatten(axes[0]))
    return written.unflatten(-1, tuple(output_size))
