"""Operations of torchvision: suppression of boxes, and regions of images."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from repro.portable.pytorch.mode import doubles
from repro.portable.pytorch.mode.dispatch import define
from repro.portable.pytorch.mode.indexing import rounded
from repro.portable.pytorch.mode.sorting import sort

BITS = 30
"""Of a number that regions give back to a pixel: 2^22 of them add up exactly."""

ROWS = 2048
"""Bins that are computed at a time."""

Taps = list[tuple[Tensor, Tensor]]
"""Pixels along an axis and their weights, [R, bins] each."""


@define("torchvision::nms")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Which boxes [N, 4] stay, the best first: of those that overlap too much only the best; equals in their order.

    On the CPU, box by box; areas are float64 numbers.
    """
    order = sort(scores, 0, True)[1].cpu()
    left, top, right, bottom = dets.cpu().double()[order].numpy().T.copy()
    areas = (right - left) * (bottom - top)
    stays, kept = np.ones(len(order), bool), []
    for i in range(len(order)):
        if not stays[i]:
            continue
        kept.append(i)
        width = np.minimum(right[i], right[i + 1 :]) - np.maximum(left[i], left[i + 1 :])
        height = np.minimum(bottom[i], bottom[i + 1 :]) - np.maximum(top[i], top[i + 1 :])
        shared = np.maximum(width, 0.0) * np.maximum(height, 0.0)
        # Compared without a quotient: two boxes of no area have none.
        stays[i + 1 :] &= ~(shared > iou_threshold * (areas[i] + areas[i + 1 :] - shared))
    return order[torch.tensor(kept, dtype=torch.int64)].to(dets.device)


@define("torchvision::roi_align")
def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """[N, C, H, W] and boxes [R, 5] -> [R, C, pooled_height, pooled_width]: means of samples, added in their order."""
    height, width = input.shape[2:]
    size = pooled_height, pooled_width
    down, across, share = _region(rois, spatial_scale, (height, width), size, sampling_ratio, aligned)
    rows = input.permute(0, 2, 3, 1).reshape(-1, input.shape[1])
    found = torch.zeros(
        len(rois) * pooled_height * pooled_width, input.shape[1], dtype=torch.float64, device=rows.device
    )
    rows, taps = rows.double(), _pixels(rois, down, across, height, width)
    for part, *here in _chunks(found, taps):
        for pixel, weight in here:
            part.add_(rows.index_select(0, pixel).mul_(weight))
    found = found.view(len(rois), -1, input.shape[1]) * share[:, None, None]
    return rounded(found.view(len(rois), *size, -1).permute(0, 3, 1, 2).contiguous(), input.dtype)


@define("torchvision::_roi_align_backward")
def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    size = pooled_height, pooled_width
    down, across, share = _region(rois, spatial_scale, (height, width), size, sampling_ratio, aligned)
    found = torch.zeros(batch_size * height * width, channels, dtype=torch.float64, device=grad.device)
    if grad.numel():
        each = (grad.double() * share.view(-1, 1, 1, 1)).permute(0, 2, 3, 1).reshape(-1, channels)
        e = doubles.exponent_above(each, (0, 1))
        unit = doubles.power_of_two(torch.where(e > 1023, 0, e) - BITS)
        each = each / unit
        for part, *here in _chunks(each, _pixels(rois, down, across, height, width)):
            for pixel, weight in here:
                found.index_add_(0, pixel, (part * weight).round_())
        found = found * torch.where(e > 1023, torch.nan, unit)
    return rounded(found.view(batch_size, height, width, channels).permute(0, 3, 1, 2).contiguous(), grad.dtype)


def _region(
    rois: Tensor, scale: float, image: tuple[int, int], bins: tuple[int, int], ratio: int, aligned: bool
) -> tuple[Taps, Taps, Tensor]:
    """The taps of each bin, down and across, and 1 over the number of samples in it."""
    box = rois.double()[:, 1:] * scale - (0.5 if aligned else 0.0)
    found: list[Taps] = []
    numbers = []
    for axis, (size, count) in enumerate(zip(image, bins, strict=True)):
        begin, end = box[:, 1 - axis], box[:, 3 - axis]
        length = end - begin if aligned else (end - begin).clamp(min=1.0)
        step = length * (1.0 / count)
        samples = torch.full_like(step, ratio) if ratio > 0 else step.ceil()
        numbers.append(samples)
        place = begin[:, None] + torch.arange(count, device=rois.device) * step[:, None]
        taps: Taps = []
        for number in range(int(samples.max().item()) if len(samples) else 0):
            at = place + ((number + 0.5) * step / samples.clamp(min=1.0))[:, None]
            taps += _linear(at, (number < samples)[:, None], size)
        found.append(taps)
    return found[0], found[1], 1.0 / (numbers[0] * numbers[1]).clamp(min=1.0)


def _linear(place: Tensor, there: Tensor, size: int) -> Taps:
    """The two pixels beside a sample; of one that lies outside of the image, or is none, weights are 0."""
    there = there & (place >= -1.0) & (place <= size)
    place = torch.where(there, place, 0.0).clamp(0.0, size - 1.0)
    first = place.floor()
    share = place - first
    index = first.long()
    return [
        (index, torch.where(there, 1.0 - share, 0.0)),
        ((index + 1).clamp(max=size - 1), torch.where(there, share, 0.0)),
    ]


def _pixels(rois: Tensor, down: Taps, across: Taps, height: int, width: int) -> Taps:
    """Rows of [N * H * W, C], and weights [R * bins, 1], of each pair of taps."""
    image = rois[:, 0].long()[:, None] * height
    found = []
    for row, weight in down:
        for column, other in across:
            pixel = (image + row)[:, :, None] * width + column[:, None]
            found.append((pixel.reshape(-1), (weight[:, :, None] * other[:, None]).reshape(-1, 1)))
    return found


def _chunks(rows: Tensor, taps: Taps) -> Iterator[Any]:
    """Rows, and taps of these, so few that they stay in a cache."""
    for begin in range(0, len(rows), ROWS):
        end = begin + ROWS
        yield rows[begin:end], *((pixel[begin:end], weight[begin:end]) for pixel, weight in taps)
