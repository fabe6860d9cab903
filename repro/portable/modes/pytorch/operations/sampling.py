"""Images sampled at the places of a grid.

All is computed in float64, each operation rounded by itself, and each result rounded once; what places give back to the
pixels that they share is added exactly.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from repro.portable.definitions.resampling import SHARPNESS
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_float32
from repro.portable.modes.pytorch.operations import sums
from repro.portable.modes.pytorch.operations.indexing import rounded, total

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
FAR = 10.0
"""The distance outside of an image from which all places are alike."""

Factor: TypeAlias = Tensor
"""float64 [N, P]."""
Axis = list[tuple[Tensor, Tensor, Factor, Factor | None]]
"""Along an axis, of each tap: the pixel, whether there is one, its weight, and the slope of that by the coordinate."""


def places(grid: Tensor, axis: int, size: int, align_corners: bool) -> tuple[Tensor, float]:
    """Coordinates in pixels, float64 [N, P], of a grid [N, ..., dimensions], and pixels for 1 of the grid."""
    x = grid.select(-1, axis).double().flatten(1)
    slope = (size - 1) * 0.5 if align_corners else size * 0.5
    position = (x + 1.0) * slope
    return position if align_corners else position - 0.5, slope


def padded(x: Tensor, size: int, padding: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    """Coordinates within the image, as far as the padding moves them there, and their slope: 1, 0 or -1."""
    slope = torch.ones_like(x)
    if padding == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if not span:
            x, slope = torch.zeros_like(x), torch.zeros_like(x)
        else:
            slope = torch.where(x < low, -slope, slope)
            away = (x - low).abs()
            rest = torch.fmod(away, span)
            odd = torch.fmod(away, 2 * span) >= span
            x = torch.where(odd, span - rest, rest) + low
            slope = torch.where(odd, -slope, slope)
    if padding != ZEROS:
        x = torch.where(x == x, x, 0.0)
        slope = torch.where((x <= 0) | (x >= size - 1), 0.0, slope)
        x = x.clamp(0.0, size - 1.0)
    return torch.where(x == x, x, -FAR).clamp(-FAR, size + FAR), slope


def tap(pixel: Tensor, size: int, weight: Factor, slope: Factor | None) -> tuple[Tensor, Tensor, Factor, Factor | None]:
    inside = (pixel >= 0) & (pixel < size)
    return pixel.clamp(0, size - 1).long(), inside, weight, slope


def linear(x: Tensor, size: int, padding: int, align_corners: bool, slope: float) -> Axis:
    x, turned = padded(x, size, padding, align_corners)
    first = x.floor()
    share = x - first
    turned = turned * slope
    return [tap(first, size, 1.0 - share, -turned), tap(first + 1.0, size, share, turned)]


def nearest(x: Tensor, size: int, padding: int, align_corners: bool, slope: float) -> Axis:
    x, _ = padded(x, size, padding, align_corners)
    return [tap(x.round(), size, torch.ones_like(x), None)]


def cubic(x: Tensor, size: int, padding: int, align_corners: bool, slope: float) -> Axis:
    """The four pixels around a place, of which each is padded by itself."""
    x = torch.where(x.isfinite(), x, -FAR)
    first, a = x.floor(), SHARPNESS
    share = x - first
    taps = []
    for number in range(-1, 3):
        sign = 1.0 if number <= 0 else -1.0
        d = share - number if number <= 0 else number - share
        if number in (0, 1):
            weight = ((a + 2) * d - (a + 3)) * d * d + 1
            steep = (3 * (a + 2) * d - 2 * (a + 3)) * d
        else:
            weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            steep = (3 * a * d - 10 * a) * d + 8 * a
        pixel, _ = padded(first + number, size, padding, align_corners)
        taps.append(tap(pixel.floor(), size, weight, steep * (sign * slope)))
    return taps


AXES: dict[int, Callable[..., Axis]] = {BILINEAR: linear, NEAREST: nearest, BICUBIC: cubic}


def axes_of(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> list[Axis]:
    """For each axis of images, whose order is the other way round in a grid."""
    axes = []
    for axis, size in enumerate(x.shape[2:]):
        place, slope = places(grid, grid.shape[-1] - 1 - axis, size, align_corners)
        axes.append(AXES[mode](place, size, padding, align_corners, slope))
    return axes


def corners(axes: Sequence[Axis], sizes: Sequence[int], slope: int | None = None) -> Iterator[tuple[Tensor, Factor]]:
    """Pixels of flat images and their weights, 0 outside of the image; or slopes of these along one axis."""
    for taps in product(*axes):
        pixel: Tensor | None = None
        inside: Tensor | None = None
        weight: Tensor | None = None
        for axis, (index, within, share, steep) in enumerate(taps):
            factor = steep if axis == slope else share
            assert factor is not None
            pixel = index if pixel is None else pixel * sizes[axis] + index
            inside = within if inside is None else inside & within
            weight = factor if weight is None else weight * factor
        assert pixel is not None and weight is not None
        yield pixel, torch.where(inside, weight, 0.0)


def summed(x: Tensor, axes: Sequence[Axis], slope: int | None = None) -> Tensor:
    """Pixels times weights, float64 [N, C, P]; a pixel of no weight counts as 0, whatever it holds."""
    flat = x.flatten(2)
    total = None
    for pixel, weight in corners(axes, x.shape[2:], slope):
        part = flat.gather(2, pixel[:, None].expand(-1, flat.shape[1], -1)).double()
        part = torch.where(weight[:, None] == 0, 0.0, part * weight[:, None])
        total = part if total is None else total + part
    assert total is not None
    return total


def undefined(grid: Tensor, mode: int, padding: int) -> Tensor | None:
    """Places that have no pixels, bool [N, 1, P]; None where all have some, or zeros around the image.

    Places in a plane, as in PyTorch: in a volume those that are infinite or NaN lie outside of it.
    """
    if mode == BICUBIC or (mode == BILINEAR and padding == ZEROS and grid.shape[-1] == 2):
        return ~grid.isfinite().all(-1).flatten(1)[:, None]
    return None


@define("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    axes = axes_of(input, grid, interpolation_mode, padding_mode, align_corners)
    result, nowhere = summed(input, axes), undefined(grid, interpolation_mode, padding_mode)
    result = result if nowhere is None else result.masked_fill(nowhere, torch.nan)
    return rounded(result.view(*input.shape[:2], *grid.shape[1:-1]), input.dtype)


@define("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    axes = axes_of(input, grid, interpolation_mode, padding_mode, align_corners)
    gradient, nowhere = grad_output.flatten(2).double(), undefined(grid, interpolation_mode, padding_mode)
    gradient = gradient if nowhere is None else gradient.masked_fill(nowhere, 0.0)
    grad_input = _of_pixels(gradient, input, axes) if output_mask[0] else None
    if not output_mask[1]:
        return grad_input, None
    if interpolation_mode == NEAREST:
        return grad_input, torch.zeros_like(grid)
    gradients = []
    for axis in reversed(range(len(axes))):
        parts = rounded(summed(input, axes, axis) * gradient, as_float32(input).dtype)
        total = sums.exact(parts, (1,))
        gradients.append((total if nowhere is None else total.masked_fill(nowhere, torch.nan)).squeeze(1))
    return grad_input, rounded(torch.stack(gradients, -1).view(grid.shape), grid.dtype)


def _of_pixels(gradient: Tensor, x: Tensor, axes: Sequence[Axis]) -> Tensor:
    pixels, weights = zip(*corners(axes, x.shape[2:]), strict=True)
    pixel = torch.cat(pixels, 1)[:, None].expand(-1, x.shape[1], -1)
    parts = torch.cat([gradient * weight[:, None] for weight in weights], 2)
    zeros = torch.zeros(*x.shape[:2], x.shape[2:].numel(), dtype=torch.float64, device=x.device)
    result = total(rounded(parts, as_float32(x).dtype), lambda q: zeros.clone().scatter_add_(2, pixel, q), (-1,))
    return rounded(result, x.dtype).view(x.shape)


@define("affine_grid_generator")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """theta [N, d, d + 1] -> [N, ..., d]: for each pixel the place of its center, from -1 to 1."""
    total = None
    for axis, length in enumerate(size[2:]):
        steps = np.arange(length) * 2.0 / max(1, length - 1) - 1.0 if length > 1 else np.zeros(length)
        base = torch.from_numpy(steps if align_corners else steps * ((length - 1) / length)).to(theta.device)
        base = base.view(-1, *[1] * (len(size) - 3 - axis), 1)
        column = theta[:, :, len(size) - 3 - axis].double().view(-1, *[1] * (len(size) - 2), theta.shape[1])
        part = column * base
        total = part if total is None else total + part
    assert total is not None
    total = total + theta[:, :, -1].double().view(-1, *[1] * (len(size) - 2), theta.shape[1])
    return rounded(total, theta.dtype)
