"""Operations of golden/operations.txt that PyTorch alone has: windows of images, boxes."""

from functools import partial

import torch
import torchvision
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.golden_cases.cases import Case, array, filler

CASES: dict[str, Case] = {}
case = filler(CASES)
aten = torch.ops.aten

PLANE, ROW, TIES = array(12, 20), array(20), array(8, 11, kind="ties")
SIGNAL, IMAGES, VOLUMES = array(2, 4, 10), array(2, 4, 8, 7), array(2, 2, 5, 6, 4)
OF_AXES = {1: SIGNAL, 2: IMAGES, 3: VOLUMES}

# --- windows: [B, C, ...] ---------------------------------------------------------------------------------------------

for _d, _x in OF_AXES.items():
    _channels = _x.shape[1]
    _conv, _transposed = getattr(F, f"conv{_d}d"), getattr(F, f"conv_transpose{_d}d")
    _weight, _bias = array(6, _channels // 2, *(3, 2, 2)[:_d]), array(6)
    case(f"conv{_d}d-bias", partial(_conv, stride=2, padding=1, dilation=2, groups=2), _x, _weight, _bias)
    _weight = array(_channels, 3, *(3, 2, 2)[:_d])
    case(
        f"conv_transpose{_d}d-bias",
        partial(_transposed, stride=2, padding=1, output_padding=1, groups=2),
        _x,
        _weight,
        _bias,
    )
    case(f"avg_pool{_d}d-padded", lambda x, d=_d: getattr(F, f"avg_pool{d}d")(x, 3, 2, 1, ceil_mode=True), _x)
    case(f"max_pool{_d}d-dilated", lambda x, d=_d: getattr(F, f"max_pool{d}d")(x, 2, 1, 1, 2), _x)
    case(f"adaptive_avg_pool{_d}d", lambda x, d=_d: getattr(F, f"adaptive_avg_pool{d}d")(x, 3), _x)
    case(f"adaptive_max_pool{_d}d", lambda x, d=_d: getattr(F, f"adaptive_max_pool{d}d")(x, 3), _x)
    case(f"lp_pool{_d}d", lambda x, d=_d: getattr(F, f"lp_pool{d}d")(x, 2, 2), _x)
    for _mode in ("reflect", "replicate", "circular"):
        case(f"pad{_d}d-{_mode}", lambda x, d=_d, mode=_mode: F.pad(x, (2, 1) * d, mode), _x)
    for _mode in (("linear", "bilinear", "trilinear")[_d - 1], "nearest", "nearest-exact"):
        case(f"{_mode}{_d}d-larger", lambda x, mode=_mode: F.interpolate(x, scale_factor=1.7, mode=mode), _x)
        case(f"{_mode}{_d}d-smaller", lambda x, mode=_mode: F.interpolate(x, scale_factor=0.6, mode=mode), _x)
for _mode in ("bilinear", "bicubic"):
    case(f"{_mode}-corners", partial(F.interpolate, size=(5, 9), mode=_mode, align_corners=True), IMAGES)
    case(f"{_mode}-antialias", partial(F.interpolate, size=(5, 9), mode=_mode, antialias=True), IMAGES)
case("bicubic", partial(F.interpolate, size=(5, 9), mode="bicubic"), IMAGES)
_SAMPLES2, _SAMPLES3 = array(2, 2, 2, kind="share"), array(2, 2, 3, kind="share")
case(
    "fractional_max_pool2d",
    lambda x, r: F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=r.detach()),
    IMAGES,
    array(2, 4, 2, kind="share"),
)
case(
    "fractional_max_pool3d",
    lambda x, r: F.fractional_max_pool3d(x, 2, (3, 4, 2), _random_samples=r.detach()),
    VOLUMES,
    array(2, 2, 3, kind="share"),
)
case("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(8, 7)), IMAGES)
case("unfold-images", partial(F.unfold, kernel_size=3, padding=1), IMAGES)
case("fold-images", partial(F.fold, output_size=(4, 5), kernel_size=2), array(2, 8, 12))
case("unfold", lambda x: x.unfold(1, 4, 3), PLANE)
for _mode in ("bilinear", "nearest", "bicubic"):
    case(
        f"grid_sample-{_mode}",
        partial(F.grid_sample, mode=_mode, align_corners=False),
        IMAGES,
        array(2, 3, 5, 2, kind="unit"),
    )
for _padding in ("border", "reflection"):
    case(
        f"grid_sample-{_padding}",
        partial(F.grid_sample, padding_mode=_padding, align_corners=True),
        IMAGES,
        array(2, 3, 5, 2),
    )
case("grid_sample3d", partial(F.grid_sample, align_corners=False), VOLUMES, array(2, 2, 3, 2, 3, kind="unit"))
case("affine_grid", partial(F.affine_grid, size=(2, 3, 4, 5), align_corners=False), array(2, 2, 3))
case("affine_grid3d", partial(F.affine_grid, size=(2, 3, 4, 5, 2), align_corners=True), array(2, 3, 4))


def boxes(x: Tensor) -> Tensor:
    """[N, 4] -> boxes with a side of at least 1."""
    corners = x[:, :2].abs() * 4
    return torch.cat([corners, corners + x[:, 2:].abs() * 4 + 1], 1)


def regions(x: Tensor) -> Tensor:
    return torch.cat([torch.arange(len(x), dtype=x.dtype)[:, None] % 2, boxes(x)], 1).detach()


case("nms", lambda x, s: torchvision.ops.nms(boxes(x), s, 0.3), array(20, 4, kind="unit"), ROW, gradient=False)
case(
    "roi_align", lambda x, r: torchvision.ops.roi_align(x, regions(r), (3, 2), 0.7, 2), IMAGES, array(5, 4, kind="unit")
)
case("roi_pool", lambda x, r: torchvision.ops.roi_pool(x, regions(r), (3, 2), 0.7), IMAGES, array(5, 4, kind="unit"))
