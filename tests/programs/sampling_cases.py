"""Cases of mode_indexing.py: images sampled at the places of a grid, boxes and regions."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.indexing_cases import case, image, integers, numbers, volume
from repro.portable.modes.pytorch.operations import detection

# --- grids ------------------------------------------------------------------------------------------------------------


def grid() -> Tensor:
    return numbers(2, 6, 5, 2, seed=7) * 0.4


def deep_grid() -> Tensor:
    return numbers(1, 4, 5, 3, 3, seed=7) * 0.4


for _padding in ("zeros", "border", "reflection"):
    for _aligned in (True, False):
        _options = {"padding_mode": _padding, "align_corners": _aligned}
        for _mode in ("bilinear", "nearest", "bicubic"):

            def sample(x: Tensor, grid: Tensor, how: Any = {"mode": _mode, **_options}) -> Tensor:  # noqa: B006
                return F.grid_sample(x, grid, **how)

            case(f"grid_sample {_mode} {_padding} {_aligned}", sample, image, grid)
            if _mode != "bicubic":
                case(f"grid_sample 3d {_mode} {_padding} {_aligned}", sample, volume, deep_grid)
for _aligned in (True, False):
    case(
        f"affine_grid {_aligned}",
        lambda t, t3, aligned=_aligned: (
            F.affine_grid(t, (2, 1, 5, 6), aligned),
            F.affine_grid(t3, (1, 1, 4, 5, 6), aligned),
        ),
        lambda: numbers(2, 2, 3),
        lambda: numbers(1, 3, 4),
        forward_only=True,
    )

# --- what has no kernel of PyTorch's to be compared with --------------------------------------------------------------


def boxes() -> Tensor:
    result = numbers(200, 4, seed=3)
    return torch.cat([result[:, :2], result[:, :2] + result[:, 2:].abs()], 1)


def overlap(a: list[float], b: list[float]) -> float:
    shared = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (a, b)]
    return shared / (areas[0] + areas[1] - shared)


def suppressed(dets: Tensor, scores: Tensor) -> Tensor:
    """The boxes that stay, which are those of a loop."""
    result = detection.nms(dets, scores, 0.3)
    kept: list[int] = []
    for i in sorted(range(len(dets)), key=lambda i: -scores[i].item()):
        if all(overlap(dets[i].tolist(), dets[j].tolist()) <= 0.3 for j in kept):
            kept.append(i)
    assert result.tolist() == kept
    return result


def regions() -> Tensor:
    return torch.cat([integers(2, 20, 1).float(), boxes()[:20] * 3 + 4], 1)


def aligned(x: Tensor, rois: Tensor, ratio: int) -> tuple[Tensor, Tensor]:
    """Regions, which are means of what grid_sample gives, and the gradient."""
    result = detection.roi_align(x, rois, 0.5, 3, 4, ratio, True)
    for roi, region in zip(rois.double(), result, strict=True):
        left, top, right, bottom = (roi[1:] * 0.5 - 0.5).tolist()
        samples = [ratio or max(1, math.ceil(length / bins)) for length, bins in ((bottom - top, 3), (right - left, 4))]
        rows, columns = (
            begin + (torch.arange(bins * number).double() + 0.5) * ((end - begin) / (bins * number))
            for begin, end, bins, number in ((top, bottom, 3, samples[0]), (left, right, 4, samples[1]))
        )
        grid = torch.stack([columns.expand(len(rows), -1) / 8 - 1, rows[:, None].expand(-1, len(columns)) / 6 - 1], -1)
        image = x[int(roi[0])][None].double()
        inside = (grid.abs() <= torch.tensor([1 + 1 / 8, 1 + 1 / 6])).all(-1)
        taken = F.grid_sample(image, grid[None], padding_mode="border", align_corners=True)[0] * inside
        means = F.avg_pool2d(taken, samples)
        assert (means - region.double()).abs().max() < 1e-6 * x.abs().max()
    ones = torch.ones_like(result)
    gradient = detection.roi_align_backward(ones, rois, 0.5, 3, 4, *x.shape, ratio, True)
    assert (
        abs(
            gradient.double().sum()
            - detection.roi_align(torch.ones_like(x), rois, 0.5, 3, 4, ratio, True).double().sum()
        )
        < 1e-3
    )
    return result, gradient


_alone = {"compared": False, "forward_only": True}
case("nms", suppressed, boxes, lambda: integers(50, 200).float(), **_alone)
for _ratio in (0, 2):
    case(f"roi_align {_ratio}", lambda x, r, ratio=_ratio: aligned(x, r, ratio), image, regions, **_alone)
