"""Cases of mode_indexing.py: operations that choose, order and add."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class Case:
    """A function of inputs, whose gradients count, too."""

    function: Callable[..., Any]
    inputs: Callable[[], list[Tensor]]
    compared: bool = True
    """True if PyTorch's own kernel gives the same for float64 numbers."""
    forward_only: bool = False
    close: float | None = None
    """The tolerance beside float64, relative to the largest number, if it is not that of the type."""


CASES: dict[str, Case] = {}


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers that follow from integers: the same on every processor."""
    generator = torch.Generator().manual_seed(seed)
    result = torch.randint(-(2**22), 2**22, shape, generator=generator).float()
    return result * 2.0**-26 * (1 << torch.randint(8, shape, generator=generator)).float()


def integers(high: int, *shape: int, seed: int = 0) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def case(name: str, function: Callable[..., Any], *inputs: Callable[[], Tensor], **options: Any) -> None:
    assert name not in CASES, name
    CASES[name] = Case(function, lambda: [each() for each in inputs], **options)


def image() -> Tensor:
    return numbers(2, 4, 13, 17)


def volume() -> Tensor:
    return numbers(1, 2, 5, 7, 6)


def signal() -> Tensor:
    return numbers(2, 3, 19)


def half() -> Tensor:
    return image().half()


def brain() -> Tensor:
    return image().bfloat16()


def double() -> Tensor:
    return image().double() / 3


# --- windows ----------------------------------------------------------------------------------------------------------

case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), signal)
case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), image)
case("avg_pool2d without padding", lambda x: F.avg_pool2d(x, (3, 2), (2, 3), (1, 0), False, False), image)
case("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=7), image)
case("avg_pool3d", lambda x: F.avg_pool3d(x, 3, 2, 1), volume)
case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 5), signal)
case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (5, 20)), image)
case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 7, 4)), volume)
for _kind in (half, brain, double):
    case(f"avg_pool2d {_kind.__name__}", lambda x: F.avg_pool2d(x, 3, 2, 1), _kind)
    case(f"bilinear {_kind.__name__}", lambda x: F.interpolate(x, scale_factor=2.5, mode="bilinear"), _kind)

# --- interpolation ----------------------------------------------------------------------------------------------------

IMAGES: dict[str, Callable[[], Tensor]] = {
    "nearest": image,
    "nearest-exact": image,
    "linear": signal,
    "bilinear": image,
    "bicubic": image,
    "trilinear": volume,
}


def resized(mode: str, **options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(x, mode=mode, **options)


for _mode, _image in IMAGES.items():
    _size = (7, 30, 5)[-(_image().dim() - 2) :]
    case(f"{_mode} larger", resized(_mode, scale_factor=2.5), _image)
    case(f"{_mode} smaller", resized(_mode, scale_factor=0.6), _image)
    case(f"{_mode} to a size", resized(_mode, size=_size), _image)
    if "nearest" not in _mode:
        case(f"{_mode} of corners", resized(_mode, scale_factor=2.2, align_corners=True), _image)
    if _mode in ("bilinear", "bicubic"):
        case(f"{_mode} without aliases", resized(_mode, scale_factor=0.4, antialias=True), _image)


def pixels(*shape: int) -> Callable[[], Tensor]:
    return lambda: integers(256, *shape).to(torch.uint8)


for _mode in ("bilinear", "bicubic"):
    for _channels in (3, 6):
        _bytes = pixels(2, _channels, 13, 17)
        _name = f"{_mode} of bytes, {_channels} channels"
        case(f"{_name}, larger", resized(_mode, size=(30, 41)), _bytes)
        case(f"{_name}, smaller", resized(_mode, scale_factor=0.6), _bytes)
        case(f"{_name}, of corners", resized(_mode, size=(20, 9), align_corners=True), _bytes)
        case(f"{_name}, without aliases", resized(_mode, size=(5, 8), antialias=True), _bytes)
# PyTorch's kernels disagree here, by instructions and channels.
case("bytes to one column", resized("bilinear", size=(60, 1), antialias=True), pixels(1, 3, 24, 5), compared=False)

# --- order ------------------------------------------------------------------------------------------------------------


def ties() -> Tensor:
    return integers(5, 8, 11).float()


def ties_and_nan() -> Tensor:
    result = ties()
    result[2, 3] = result[5, 3] = result[2, 7] = torch.nan
    return result


for _ties in (ties, ties_and_nan):
    _named = _ties.__name__
    case(f"sort {_named}", lambda x: torch.sort(x, dim=0, stable=True), _ties)
    case(f"sort down {_named}", lambda x: torch.sort(x, descending=True, stable=True), _ties)
    case(f"topk {_named}", lambda x: torch.topk(x, 4)[0], _ties, forward_only=True)
    case(f"topk smallest {_named}", lambda x: torch.topk(x, 4, 0, largest=False)[0], _ties, forward_only=True)
    case(f"kthvalue {_named}", lambda x: torch.kthvalue(x, 4)[0], _ties, forward_only=True)
    case(f"which {_named}", lambda x: (*x.sort(0), *x.topk(3), *x.kthvalue(2), *x.median(0)), _ties, compared=False)
    case(f"median {_named}", lambda x: torch.median(x, 1)[0], _ties, forward_only=True)
    case(f"nanmedian {_named}", lambda x: (torch.nanmedian(x, 0)[0], torch.nanmedian(x)), _ties, forward_only=True)
    case(f"max, min {_named}", lambda x: (*torch.max(x, 0), *torch.min(x, 0), x.argmax(), x.argmin(1)), _ties)
    case(f"cummax, cummin {_named}", lambda x: (*torch.cummax(x, 0), *torch.cummin(x, 1)), _ties)
case("mode", lambda x: torch.mode(x, 0), ties)
case("quantile", lambda x: torch.quantile(x, 0.3, 1), ties)
case("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), ties, forward_only=True)
case("unique rows", lambda x: torch.unique(x, dim=0, return_counts=True), ties, forward_only=True)
case("unique_consecutive", lambda x: torch.unique_consecutive(x, return_counts=True), ties, forward_only=True)

# --- zeros ------------------------------------------------------------------------------------------------------------


def negative_zeros() -> Tensor:
    return torch.zeros(37).neg()


CHOICES: dict[str, Callable[[Tensor], Any]] = {
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "minimum": lambda x: torch.minimum(torch.zeros_like(x), x),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "amax": lambda x: torch.stack([x, torch.zeros_like(x)]).amax(0),
    "amin": lambda x: torch.stack([x, torch.zeros_like(x)]).amin(0),
    "aminmax": lambda x: torch.stack(torch.aminmax(torch.stack([x, torch.zeros_like(x)]))),
    "max": lambda x: torch.stack([x, torch.zeros_like(x)]).max(),
    "relu": lambda x: torch.stack([torch.relu(x), torch.relu_(x.clone())]),
    "relu6": lambda x: torch.stack([F.relu6(x), F.relu6(x.clone(), inplace=True)]),
    "clamp": lambda x: torch.stack([x.clamp(min=0), x.clamp(0, 1), x.clone().clamp_(0, 1), x.clamp_min(0.0)]),
    "clamp by tensors": lambda x: torch.clamp(x, min=torch.zeros_like(x)),
    "softshrink": F.softshrink,
    "foreach": lambda x: torch._foreach_maximum([x], [torch.zeros_like(x)])[0],
}


def without_sign(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def checked(x: Tensor) -> Tensor:
        result = function(x)
        assert not result.signbit().any()
        return result

    return checked


for _name, _function in CHOICES.items():
    case(f"zeros of {_name}", without_sign(_function), negative_zeros, compared=False, forward_only=True)
    case(f"{_name} of numbers", _function, image)
