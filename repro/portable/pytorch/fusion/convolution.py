"""Exact convolutions of integers, float64, on a CPU: of any layout, each one contraction, without patches.

They are those of repro.portable.operations.convolution. Axes have names: those of images, B C H W, and of the kernel,
h w; G counts groups, I and O the channels of each.
"""

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from repro.portable.operations.grids import check_length
from repro.portable.pytorch.fusion.contraction import Axis, Limit, contract
from repro.run.ranks import Alone

Pair = tuple[int, int]
Axes = Mapping[str, int]
ONE = (1, 1)


def convolve(
    x: Tensor, weight: Tensor, stride: Pair, padding: Pair, dilation: Pair, groups: int, layout: str
) -> Tensor:
    """Images of I G channels and [O G, h, w, I] -> images of O G channels."""
    x = _in_rows(x)
    outputs, height, width, inputs = weight.shape
    check_length(height * width * inputs)
    if layout.endswith("C"):  # outputs, of which there are many, in a row
        weight = weight.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    there = _sizes(x, layout)
    sizes = {"B": there["B"], "G": groups, "O": outputs // groups, "I": inputs, "h": height, "w": width}
    for axis, (name, tap) in enumerate((("H", "h"), ("W", "w"))):
        reach = dilation[axis] * (sizes[tap] - 1)
        sizes[name] = (there[name] + 2 * padding[axis] - reach - 1) // stride[axis] + 1
    return _contracted(
        x, weight, (*layout.replace("C", "GO"), "I", "h", "w"), sizes,
        _met(x, inputs, stride, dilation, layout), _of_weight(weight, sizes["O"]), layout, stride, padding, dilation,
    )  # fmt: skip


def convolve_with(
    ranks: Alone, x: Tensor, gradient: Tensor, shape: Sequence[int], stride: Pair, padding: Pair, dilation: Pair,
    groups: int, layout: str,
) -> Tensor:  # fmt: skip
    """The gradient with respect to a weight of this shape."""
    x, gradient = _in_rows(x), _in_rows(gradient)
    outputs, height, width, inputs = shape
    sizes = _sizes(gradient, layout) | {"G": groups, "O": outputs // groups, "I": inputs, "h": height, "w": width}
    check_length(sizes["B"] * sizes["H"] * sizes["W"] * ranks.size)
    own = _strides(gradient, layout)
    y = _contracted(
        x, gradient, ("G", "O", "h", "w", "I", *layout.replace("C", "")), sizes,
        _met(x, inputs, stride, dilation, layout), own | {"O": own["C"], "G": own["C"] * sizes["O"]},
        layout, stride, padding, dilation,
    )  # fmt: skip
    return y.view(*shape)


def convolve_back(
    gradient: Tensor, weight: Tensor, image: Sequence[int], stride: Pair, padding: Pair, dilation: Pair, groups: int,
    layout: str,
) -> Tensor:  # fmt: skip
    """The gradient with respect to images of this shape; stride or dilation must be 1.

    With a stride of s the pixels fall into s x s classes: those of each meet the same elements of the kernel.
    """
    gradient = _in_rows(gradient)
    outputs, inputs = weight.shape[0] // groups, weight.shape[3]
    check_length(outputs * weight.shape[1] * weight.shape[2])
    there = dict(zip(layout, image, strict=True))
    rows, columns = (
        [_Class(pixel, there[name], weight.shape[1 + axis], stride[axis], padding[axis], dilation[axis])
         for pixel in range(min(stride[axis], there[name]))]
        for axis, name in enumerate("HW")
    )  # fmt: skip
    found = None if stride == ONE else torch.zeros(tuple(image), dtype=torch.float64)
    for row, column in itertools.product(rows, columns):
        taps = weight[:, row.first :: stride[0], column.first :: stride[1]].flip(1, 2)
        if 0 in taps.shape:
            continue
        sizes = {"B": there["B"], "G": groups, "I": inputs, "O": outputs, "H": row.count, "W": column.count}
        sizes |= {"h": taps.shape[1], "w": taps.shape[2]}
        met = _met(gradient, outputs, ONE, dilation, layout)
        met["O"] = met.pop("I")
        y = _contracted(
            gradient, taps, (*layout.replace("C", "GI"), "O", "h", "w"), sizes, met, _of_weight(taps, outputs), layout,
            ONE, (-row.start, -column.start), dilation,
        )  # fmt: skip
        if found is None:
            return y
        place = {"H": slice(row.pixel, None, stride[0]), "W": slice(column.pixel, None, stride[1])}
        found[tuple(place.get(name, slice(None)) for name in layout)] = y
    return found


class _Class:
    """Pixels pixel, pixel + stride, ..., along one axis, and where they meet the gradient: from `start` on."""

    def __init__(self, pixel: int, size: int, taps: int, stride: int, padding: int, dilation: int) -> None:
        self.pixel, self.count = pixel, -(-(size - pixel) // stride)
        self.first = (pixel + padding) % stride
        reach = max(0, -(-(taps - self.first) // stride) - 1) * dilation
        self.start = (pixel + padding - self.first) // stride - reach


def _contracted(
    x: Tensor, other: Tensor, names: Sequence[str], sizes: Axes, strides: Axes, others: Axes, layout: str,
    stride: Pair, padding: Pair, dilation: Pair,
) -> Tensor:  # fmt: skip
    """The sum of products over the last three axes, x between so many rows and columns that are not there."""
    own, there = _strides(x, layout), _sizes(x, layout)
    steps = dict(zip("HWhw", (*stride, *dilation), strict=True))
    reduced = ("H", "W") if names[-1] in layout else ("h", "w")
    limits = tuple(
        Limit(names.index(name), names.index(name.swapcase()), -edge, steps[name.swapcase()], steps[name], there[side])
        for name, edge, side in zip(reduced, padding, "HW", strict=True)
    )
    axes = tuple([Axis(sizes[name], strides.get(name, 0), others.get(name, 0)) for name in names])
    start = -padding[0] * own["H"] - padding[1] * own["W"]
    y = contract(x, other, axes, len(names) - 3, limits, start)
    channels = names.index("G")
    return y.flatten(channels, channels + 1)


def _in_rows(x: Tensor) -> Tensor:
    """As its layout says, the last axis in a row: the others of PyTorch's channels-first images do not lie so."""
    return x if x.stride(-1) == 1 else x.contiguous()


# --- strides ----------------------------------------------------------------------------------------------------------


def _met(x: Tensor, inputs: int, stride: Pair, dilation: Pair, layout: str) -> dict[str, int]:
    """Of images: what each pixel of a result meets."""
    own = _strides(x, layout)
    return {
        "B": own["B"], "G": own["C"] * inputs, "I": own["C"], "H": own["H"] * stride[0], "W": own["W"] * stride[1],
        "h": own["H"] * dilation[0], "w": own["W"] * dilation[1],
    }  # fmt: skip


def _of_weight(weight: Tensor, outputs: int) -> Axes:
    own = weight.stride()
    return {"G": own[0] * outputs, "O": own[0], "h": own[1], "w": own[2], "I": own[3]}


def _sizes(x: Tensor, layout: str) -> dict[str, int]:
    return dict(zip(layout, x.shape, strict=True))


def _strides(x: Tensor, layout: str) -> dict[str, int]:
    return dict(zip(layout, x.stride(), strict=True))
