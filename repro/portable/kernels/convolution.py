"""Convolutions as sums of products.

Exact convolutions of integers as sums of products, of any layout, without patches.

They are those of repro.portable.definitions.convolution. Axes have names: those of images, B C H W, and of the kernel,
h w; G counts groups, I and O the channels of each.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from repro.portable.definitions.grids import check_length
from repro.portable.kernels.contraction import Axis, Limit, Sums

Pair = tuple[int, int]
Shape = tuple[int, ...]
Axes = Mapping[str, int]
ONE = (1, 1)


@dataclass(frozen=True)
class Operand:
    """The place of an array's numbers: its shape, and its strides in numbers."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def broadcast(self) -> "Operand":
        """The operand of which a number along an axis of size 1 is that of all places."""
        strides = zip(self.shape, self.strides, strict=True)
        return Operand(self.shape, tuple(stride if size > 1 else 0 for size, stride in strides))


@dataclass(frozen=True)
class Convolution:
    """The parameters of a convolution, without its operands."""

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    layout: str


@dataclass(frozen=True)
class Part:
    """A convolution, or a part of it: sums of products of images and another array."""

    sums: Sums
    shape: tuple[int, ...]
    weight: tuple[slice, ...] = ()
    """The elements of the kernel that it meets."""
    place: tuple[slice, ...] = ()
    """The place of its results."""


@cache
def forward(x: Operand, weight: Operand, conv: Convolution, finish: tuple[Operand, ...] = ()) -> Part:
    """Images of I G channels and [O G, h, w, I] -> images of O G channels; `finish`: see contraction.Sums."""
    outputs, height, width, inputs = weight.shape
    check_length(height * width * inputs)
    there = _sizes(x, conv.layout)
    sizes = {"B": there["B"], "G": conv.groups, "O": outputs // conv.groups, "I": inputs, "h": height, "w": width}
    for axis, (name, tap) in enumerate((("H", "h"), ("W", "w"))):
        reach = conv.dilation[axis] * (sizes[tap] - 1)
        sizes[name] = (there[name] + 2 * conv.padding[axis] - reach - 1) // conv.stride[axis] + 1
    names = (*conv.layout.replace("C", "GO"), *("Ihw" if inputs == 1 and conv.padding == (0, 0) else "hwI"))
    return _part(
        x,
        names,
        sizes,
        _met(x, inputs, conv),
        _of_weight(weight, sizes["O"]),
        conv.layout,
        conv.stride,
        conv.padding,
        conv.dilation,
        [_of_images(each, conv.layout, "O", sizes["O"]) for each in finish],
    )


@cache
def grad_weight(x: Operand, gradient: Operand, shape: Shape, conv: Convolution, ranks: int) -> Part:
    """The gradient with respect to a weight of this shape; `ranks` ranks add theirs to it."""
    outputs, height, width, inputs = shape
    sizes = _sizes(gradient, conv.layout) | {
        "G": conv.groups,
        "O": outputs // conv.groups,
        "I": inputs,
        "h": height,
        "w": width,
    }
    check_length(sizes["B"] * sizes["H"] * sizes["W"] * ranks)
    own = _strides(gradient, conv.layout)
    names = ("G", "O", "h", "w", "I", *conv.layout.replace("C", ""))
    part = _part(
        x,
        names,
        sizes,
        _met(x, inputs, conv),
        own | {"O": own["C"], "G": own["C"] * sizes["O"]},
        conv.layout,
        conv.stride,
        conv.padding,
        conv.dilation,
    )
    return Part(part.sums, shape)


@cache
def grad_images(
    gradient: Operand,
    shape: Shape,
    image: Shape,
    conv: Convolution,
    outputs_last: bool = False,
    finish: tuple[Operand, ...] = (),
) -> list[Part]:
    """The gradient with respect to images of this shape, with a weight of that; what no part gives is 0.

    In each direction stride or dilation must be 1.
    With a stride of s the pixels fall into s x s classes: those of each meet the same elements of the kernel. These
    are given to a part in reverse order, [O G, h, w, I] in a row of memory, or with the outputs last in it.
    """
    outputs, inputs, layout = shape[0] // conv.groups, shape[3], conv.layout
    check_length(outputs * shape[1] * shape[2])
    there = dict(zip(layout, image, strict=True))
    rows, columns = (
        [
            _Class(pixel, there[name], shape[1 + axis], conv.stride[axis], conv.padding[axis], conv.dilation[axis])
            for pixel in range(min(conv.stride[axis], there[name]))
        ]
        for axis, name in enumerate("HW")
    )
    met = _met(gradient, outputs, Convolution(ONE, ONE, conv.dilation, conv.groups, layout))
    met["O"] = met.pop("I")
    parts = []
    for row, column in itertools.product(rows, columns):
        if not (row.taps and column.taps):
            continue
        sizes = {"B": there["B"], "G": conv.groups, "I": inputs, "O": outputs, "H": row.count, "W": column.count}
        sizes |= {"h": row.taps, "w": column.taps}
        taps = in_rows((shape[0], row.taps, column.taps, inputs), (1, 2, 3, 0) if outputs_last else (0, 1, 2, 3))
        part = _part(
            gradient,
            (*layout.replace("C", "GI"), "h", "w", "O"),
            sizes,
            met,
            _of_weight(taps, outputs),
            layout,
            ONE,
            (-row.start, -column.start),
            conv.dilation,
            [_of_images(each, layout, "I", inputs) for each in finish],
        )
        of_weight = slice(None), slice(row.first, None, conv.stride[0]), slice(column.first, None, conv.stride[1])
        place = {"H": slice(row.pixel, None, conv.stride[0]), "W": slice(column.pixel, None, conv.stride[1])}
        of_image = tuple(place.get(name, slice(None)) for name in layout)
        parts.append(Part(part.sums, part.shape, of_weight, of_image))
    return parts


class _Class:
    """Pixels pixel, pixel + stride, ..., along one axis, and where they meet the gradient: from `start` on."""

    def __init__(self, pixel: int, size: int, taps: int, stride: int, padding: int, dilation: int) -> None:
        self.pixel, self.count = pixel, -(-(size - pixel) // stride)
        self.first = (pixel + padding) % stride
        self.taps = max(0, -(-(taps - self.first) // stride))
        reach = max(0, self.taps - 1) * dilation
        self.start = (pixel + padding - self.first) // stride - reach


def _part(
    x: Operand,
    names: Sequence[str],
    sizes: Axes,
    strides: Axes,
    others: Axes,
    layout: str,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    finish: Sequence[Axes] = (),
) -> Part:
    """The sum of products over the last three axes, x between rows and columns that are not there."""
    own, there = _strides(x, layout), _sizes(x, layout)
    steps = dict(zip("HWhw", (*stride, *dilation), strict=True))
    reduced = ("H", "W") if set("HW") <= set(names[-3:]) else ("h", "w")
    limits = tuple(
        Limit(names.index(name), names.index(name.swapcase()), -edge, steps[name.swapcase()], steps[name], there[side])
        for name, edge, side in zip(reduced, padding, "HW", strict=True)
    )
    axes = tuple([Axis(sizes[name], strides.get(name, 0), others.get(name, 0)) for name in names])
    start = -padding[0] * own["H"] - padding[1] * own["W"]
    kept = [sizes[name] for name in names[:-3]]
    channels = names.index("G")
    kept[channels : channels + 2] = [kept[channels] * kept[channels + 1]]
    more = tuple(tuple(each.get(name, 0) for name in names) for each in finish)
    return Part(Sums(axes, len(names) - 3, limits, start, more), tuple(kept))


# --- strides ----------------------------------------------------------------------------------------------------------


def in_rows(shape: Sequence[int], order: Sequence[int] | None = None) -> Operand:
    """An array whose axes lie in memory in this order, or in their own."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order or range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return Operand(tuple(shape), tuple(strides))


def _met(x: Operand, inputs: int, conv: Convolution) -> dict[str, int]:
    """The extents of the patch of images that each pixel of a result meets."""
    own = _strides(x, conv.layout)
    return {
        "B": own["B"],
        "G": own["C"] * inputs,
        "I": own["C"],
        "H": own["H"] * conv.stride[0],
        "W": own["W"] * conv.stride[1],
        "h": own["H"] * conv.dilation[0],
        "w": own["W"] * conv.dilation[1],
    }


def _of_weight(weight: Operand, outputs: int) -> Axes:
    own = weight.strides
    return {"G": own[0] * outputs, "O": own[0], "h": own[1], "w": own[2], "I": own[3]}


def _of_images(x: Operand, layout: str, channel: str, channels: int) -> Axes:
    """The strides of images along the axes of a result, whose channels have this name within a group."""
    own = _strides(x, layout)
    return own | {channel: own["C"], "G": own["C"] * channels}


def _sizes(x: Operand, layout: str) -> dict[str, int]:
    return dict(zip(layout, x.shape, strict=True))


def _strides(x: Operand, layout: str) -> dict[str, int]:
    return dict(zip(layout, x.strides, strict=True))
