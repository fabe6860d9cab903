"""torchvision's operations that find objects, under portable numerics and in float64, and its way to resize images.

Prints JSON: how far they are, how many boxes differ, and whether images are resized in the same way on all processors.
"""

import json
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision import ops
from torchvision.transforms import v2

import repro.portable.pytorch as portable

POOLS = {
    "roi_align": lambda x, rois: ops.roi_align(x, rois, (4, 5), 0.5, sampling_ratio=2, aligned=True),
    "roi_align, adaptive": lambda x, rois: ops.roi_align(x, rois, (4, 5), 0.5),
    "roi_pool": lambda x, rois: ops.roi_pool(x, rois, (4, 5), 0.5),
}


def pooled(x: Tensor, rois: Tensor) -> dict[str, list[Tensor]]:
    """The result of each pool, and its gradient."""
    results = {}
    for name, pool in POOLS.items():
        given = x.detach().requires_grad_()
        y = pool(given, rois)
        y.backward(torch.arange(y.numel(), dtype=y.dtype).view_as(y).remainder(7))
        assert given.grad is not None
        results[name] = [y.detach(), given.grad]
    return results


def far(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def resized() -> list[Any]:
    """Tests that images of bytes take one way, whatever the processor is said to have; adds what the mode says."""
    image = (torch.arange(3 * 40 * 50) * 73 % 251).to(torch.uint8).view(3, 40, 50)
    crop = image[:, 3:30, 5:41]
    sizes = {"mode": "bilinear", "antialias": True}
    expected = [interpolate(each[None], size=(20, 25), **sizes)[0] for each in (image, crop)]
    results = [v2.functional.resize(each, [20, 25]) for each in (image, crop)]
    same = [a.equal(b) for a, b in zip(results, expected, strict=True)]
    return [*same, torch.backends.cpu.get_cpu_capability()]


def main() -> dict[str, Any]:
    torch.manual_seed(0)
    corner, size = torch.rand(200, 2) * 50, torch.rand(200, 2) * 30
    boxes, scores = torch.cat([corner, corner + size], 1), torch.rand(200).mul(20).floor()
    x, rois = torch.randn(2, 3, 20, 24), torch.cat([torch.arange(20)[:, None] % 2, boxes[:20] - 10], 1)
    exact, kept = pooled(x.double(), rois.double()), ops.nms(boxes.double(), scores.double(), 0.4)
    own = torch.backends.cpu.get_cpu_capability()
    with portable.enable():
        images = resized()
        result, boxes_kept = pooled(x, rois), ops.nms(boxes, scores, 0.4)
        empty = ops.nms(boxes[:0], scores[:0], 0.4).shape, ops.roi_align(x, rois[:0], 2).shape
    return {
        "far": {name: max(map(far, result[name], exact[name])) for name in POOLS},
        "boxes": [len(kept), boxes_kept.tolist() == kept.tolist()],
        "resized": images,
        "capability": torch.backends.cpu.get_cpu_capability() == own,
        "empty": [list(shape) for shape in empty],
    }


print(json.dumps(main()))
