"""Steps of a kernel over images, and what it meets there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes


@dataclass(frozen=True)
class Steps:
    """The steps of a kernel over images [B, ..., C], along each axis."""

    stride: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    def outputs(self, sizes: Sequence[int], taps: Sequence[int]) -> tuple[int, ...]:
        """The number of places of a kernel."""
        each = zip(sizes, taps, self.stride, self.edges, self.dilation, strict=True)
        return tuple((size + sum(edge) - hole * (tap - 1) - 1) // step + 1 for size, tap, step, edge, hole in each)

    def padded(self, x: Array) -> Array:
        return np.pad(x, ((0, 0), *self.edges, (0, 0))) if any(map(any, self.edges)) else np.ascontiguousarray(x)

    def windows(self, x: Array, taps: Sequence[int], outputs: Sequence[int]) -> Array:
        """The windows of padded images that meet a kernel: [B, outputs ..., taps ..., C], a view."""
        first, *inner, last = x.strides
        moves = (*(s * n for s, n in zip(inner, self.stride, strict=True)),)
        holes = (*(s * n for s, n in zip(inner, self.dilation, strict=True)),)
        return as_strided(x, (x.shape[0], *outputs, *taps, x.shape[-1]), (first, *moves, *holes, last), writeable=False)

    def met(self, x: Array, tap: Sequence[int], outputs: Sequence[int]) -> Array:
        """The elements of padded images that meet one element of a kernel: [B, outputs ..., C], a view."""
        each = zip(tap, self.dilation, self.stride, outputs, strict=True)
        return x[:, *(slice(at * hole, at * hole + step * (n - 1) + 1, step) for at, hole, step, n in each)]

    def inner(self, x: Array) -> Array:
        """Images without their edges."""
        sizes = zip(self.edges, x.shape[1:-1], strict=True)
        return x[:, *(slice(before, size - after) for (before, after), size in sizes)]


def steps(given: Attributes, sizes: Sequence[int], taps: Sequence[int]) -> tuple[Steps, str]:
    """The steps by attributes of TensorFlow, for images with these sides, and where the channels lie."""
    layout = given.get("data_format", "NHWC")
    first = layout.startswith("NC")
    inner = slice(2, None) if first else slice(1, -1)
    stride = tuple(given["strides"][inner])
    dilation = tuple(given.get("dilations", [1] * len(given["strides"]))[inner])
    if given["padding"] == "EXPLICIT":
        pairs = np.reshape(given["explicit_paddings"], (-1, 2))[inner]
        edges = tuple((int(before), int(after)) for before, after in pairs)
    elif given["padding"] == "SAME":
        whole = [
            max(0, (-(-size // step) - 1) * step + hole * (tap - 1) + 1 - size)
            for size, tap, step, hole in zip(sizes, taps, stride, dilation, strict=True)
        ]
        edges = tuple((each // 2, each - each // 2) for each in whole)
    else:
        edges = ((0, 0),) * len(sizes)
    return Steps(stride, edges, dilation), "first" if first else "last"


def last(x: Array, channels: str) -> Array:
    return np.moveaxis(x, 1, -1) if channels == "first" else x


def back(x: Array, channels: str) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if channels == "first" else x
