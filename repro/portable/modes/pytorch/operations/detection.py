"""Operations of torchvision that find objects: overlap of boxes, regions of images.

As torchvision's kernels for GPUs have them: https://github.com/pytorch/vision/tree/main/torchvision/csrc/ops/cuda.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_float32
from repro.portable.modes.pytorch.operations.indexing import by_places, by_rows, rounded


@define("torchvision::nms")
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that no better one overlaps, best first; the first of equal scores is better."""
    order = scores.sort(stable=True, dim=0, descending=True)[1]
    boxes = as_float32(dets)[order].cpu()
    left, top, right, bottom = boxes.unbind(1)
    area = (right - left) * (bottom - top)
    near, far = boxes[:, :2], boxes[:, 2:]
    alive = torch.ones(len(boxes), dtype=torch.bool, device="cpu")
    for place in range(len(boxes)):
        if alive[place]:
            later = slice(place + 1, None)
            sides = (torch.minimum(far[place], far[later]) - torch.maximum(near[place], near[later])).clamp(min=0)
            common = sides[:, 0] * sides[:, 1]
            alive[later] &= ~(common / (area[place] + area[later] - common) > iou_threshold)
    return order[alive.to(order.device)]


# --- regions ----------------------------------------------------------------------------------------------------------


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
    _, channels, height, width = input.shape
    pixels = as_float32(input).permute(0, 2, 3, 1).reshape(-1, channels)
    pooled = pooled_height, pooled_width
    sums = torch.zeros((len(rois) * pooled_height * pooled_width, channels), dtype=torch.float64, device=input.device)
    for index, weight in _corners(rois, spatial_scale, (height, width), pooled, sampling_ratio, aligned):
        sums = sums + pixels.index_select(0, index).double() * weight
    return rounded(sums.view(len(rois), *pooled, channels).permute(0, 3, 1, 2).contiguous(), input.dtype)


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
    rows = grad.permute(0, 2, 3, 1).reshape(-1, channels).double()
    pooled = pooled_height, pooled_width
    gradient = torch.zeros((batch_size * height * width, channels), dtype=torch.float64, device=grad.device)
    for index, weight in _corners(rois, spatial_scale, (height, width), pooled, sampling_ratio, aligned):
        parts = rounded(rows * weight, as_float32(grad).dtype)
        gradient = gradient + by_rows(parts, 0, index, len(gradient))
    return rounded(gradient.view(batch_size, height, width, channels).permute(0, 3, 1, 2).contiguous(), grad.dtype)


@define("torchvision::roi_pool")
def roi_pool(*arguments: Any) -> tuple[Tensor, Tensor]:
    """The largest numbers: exact as torchvision has it."""
    return torch.ops.torchvision.roi_pool(*arguments)


@define("torchvision::_roi_pool_backward")
def roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, *arguments: float) -> Tensor:
    """To the pixels that were the largest; an empty region has none."""
    images, channels, height, width = map(int, arguments[-4:])
    plane = rois[:, 0].long()[:, None] * channels + torch.arange(channels, device=grad.device)
    place = plane[:, :, None, None] * (height * width) + argmax.clamp(min=0)
    g, shape = grad.masked_fill(argmax < 0, 0.0).reshape(-1), (images, channels, height, width)
    return rounded(by_places(g, 0, place.reshape(-1), (math.prod(shape),)), grad.dtype).view(shape)


def _corners(
    rois: Tensor, scale: float, sizes: tuple[int, int], pooled: tuple[int, int], sampling: int, aligned: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each point in a bin and each pixel beside it: pixels [K PH PW], as numbers, and their shares [K PH PW, 1]."""
    image, begin = rois[:, 0].long(), rois[:, 1:3].double() * scale - 0.5 * aligned
    extent = rois[:, 3:5].double() * scale - 0.5 * aligned - begin
    extent = extent if aligned else extent.clamp(min=1.0)
    axes, numbers = [], []
    for axis, (size, bins) in enumerate(zip(sizes, pooled, strict=True)):
        first, length = begin[:, 1 - axis, None], extent[:, 1 - axis, None] / bins
        points = torch.full_like(length, sampling) if sampling > 0 else length.ceil()
        numbers.append(points)
        axes.append(list(_along(first, length, points, size, bins)))
    shares = 1.0 / (numbers[0] * numbers[1]).clamp(min=1.0)
    for y, down in ((y, down) for point in axes[0] for y, down in point):
        for x, across in ((x, across) for point in axes[1] for x, across in point):
            index = (image[:, None, None] * sizes[0] + y[:, :, None]) * sizes[1] + x[:, None, :]
            weight = down[:, :, None] * across[:, None, :] * shares[:, :, None]
            yield index.flatten(), weight.view(-1, 1)


def _along(
    first: Tensor, length: Tensor, points: Tensor, size: int, bins: int
) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Along an axis, for each point of a bin: the two pixels [K, bins] beside it, and their shares."""
    number = torch.arange(bins, device=first.device)
    for point in range(int(points.max().item()) if points.numel() else 0):
        place = first + number * length + (point + 0.5) * (length / points)
        counts = (place >= -1.0) & (place <= size) & (point < points)
        place = torch.where(counts, place, 0.0).clamp(min=0.0, max=size - 1)
        low = place.floor()
        share = place - low
        high = (low + 1).clamp(max=size - 1)
        yield [(low.long(), (1.0 - share) * counts), (high.long(), share * counts)]
