"""torchvision's operations that find objects, under portable numerics and in float64, for test_mode_detection.py.

Prints JSON: how far they are, and how many boxes differ.
"""

import json
from typing import Any

import torch
from torch import Tensor
from torchvision import ops

import repro.portable.pytorch as portable

POOLS = {
    "roi_align": lambda x, rois: ops.roi_align(x, rois, (4, 5), 0.5, sampling_ratio=2, aligned=True),
    "roi_align, adaptive": lambda x, rois: ops.roi_align(x, rois, (4, 5), 0.5),
    "roi_pool": lambda x, rois: ops.roi_pool(x, rois, (4, 5), 0.5),
}


def pooled(x: Tensor, rois: Tensor) -> dict[str, list[Tensor]]:
    """What each gives, and its gradient."""
    found = {}
    for name, pool in POOLS.items():
        given = x.detach().requires_grad_()
        y = pool(given, rois)
        y.backward(torch.arange(y.numel(), dtype=y.dtype).view_as(y).remainder(7))
        assert given.grad is not None
        found[name] = [y.detach(), given.grad]
    return found


def far(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def main() -> dict[str, Any]:
    torch.manual_seed(0)
    corner, size = torch.rand(200, 2) * 50, torch.rand(200, 2) * 30
    boxes, scores = torch.cat([corner, corner + size], 1), torch.rand(200).mul(20).floor()
    x, rois = torch.randn(2, 3, 20, 24), torch.cat([torch.arange(20)[:, None] % 2, boxes[:20] - 10], 1)
    exact, kept = pooled(x.double(), rois.double()), ops.nms(boxes.double(), scores.double(), 0.4)
    with portable.enable():
        found, boxes_kept = pooled(x, rois), ops.nms(boxes, scores, 0.4)
        empty = ops.nms(boxes[:0], scores[:0], 0.4).shape, ops.roi_align(x, rois[:0], 2).shape
    return {
        "far": {name: max(map(far, found[name], exact[name])) for name in POOLS},
        "boxes": [len(kept), boxes_kept.tolist() == kept.tolist()],
        "empty": [list(shape) for shape in empty],
    }


print(json.dumps(main()))
