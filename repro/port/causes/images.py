"""Images: padding, pooling and resizing."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from repro.port.causes.case import ARRAYS, Case, Rule, rule
from repro.port.causes.formulas import Formula, agreed, last_channels, own, sizes, sources, told_apart

SAMPLES = 2
"""How many samples of a batch are computed."""


@rule(
    ARRAYS,
    "pad by hand, and convolve without padding, on both sides: SAME pads more at the end where the stride leaves an odd rest",
)
def padding_of_a_convolution(case: Case) -> str | None:
    """Each side's convolution follows from its own padding, at the beginning and at the end of an axis."""
    layer = case.place.within if case.place else None
    kernels = [k for k in own(case, layer.a).values() if k.ndim in (3, 4)] if layer else []
    if not kernels or layer is None:
        return None
    first = case.sides[0].framework.startswith("PyTorch")
    kernel = np.moveaxis(kernels[0], (0, 1), (-1, -2)) if first else kernels[0]
    bias = next(
        (array for array in own(case, layer.a).values() if array.shape == kernel.shape[-1:]), np.zeros(kernel.shape[-1])
    )
    for x in agreed(case):
        images = last_channels(case, x[:SAMPLES])
        if images.ndim == kernel.ndim and images.shape[-1] == kernel.shape[-2]:
            both = told_apart(case, _convolutions(images, kernel, bias, case))
            if both:
                return f"the convolution pads {case.in_words(*both)}"
    return None


def _convolutions(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, case: Case) -> Iterator[Formula]:
    """Convolutions with other paddings and strides whose result is as large as one side's."""
    space = kernel.ndim - 2
    size = kernel.shape[0]
    for stride in range(1, 5):
        for before, after in sorted(product(range(size), repeat=2), key=lambda ends: ends[0] != ends[1]):
            lengths = [
                (n + before + after - k) // stride + 1 for n, k in zip(x.shape[1:-1], kernel.shape, strict=False)
            ]
            if min(lengths) > 0 and math.prod(lengths) * kernel.shape[-1] in sizes(case):
                padded = np.pad(x, [(0, 0), *[(before, after)] * space, (0, 0)])
                windows = sliding_window_view(padded, kernel.shape[:space], tuple(range(1, space + 1)))
                windows = windows[(slice(None), *[slice(None, None, stride)] * space)]
                axes = [*range(windows.ndim - space, windows.ndim), space + 1], [*range(space), space]
                made = np.tensordot(windows, kernel, axes) + bias
                yield f"{before} before and {after} after each axis, with stride {stride}", made


@rule(
    ARRAYS, "pool with one padding, and leave it out of the average on both sides, or on neither: `count_include_pad`"
)
def pooling(case: Case) -> str | None:
    """Each side's result is a pooling of its own kind: of the maximum or the average, with or without the padding in it."""
    for words, x in sources(case):
        images = last_channels(case, x[:SAMPLES])
        both = told_apart(case, _pools(images, case)) if images.ndim == 4 else None
        if both:
            return f"pooling{words} takes {case.in_words(*both)}"
    return None


def _pools(x: np.ndarray, case: Case) -> Iterator[Formula]:
    for size, stride in product(range(2, 6), range(1, 5)):
        for before, after in product(range(size // 2 + 1), repeat=2):
            lengths = [(n + before + after - size) // stride + 1 for n in x.shape[1:3]]
            if min(lengths) <= 0 or math.prod(lengths) * x.shape[-1] not in sizes(case) or before > after:
                continue
            window = f"of {size}x{size} with stride {stride}, padded by {before} and {after}"
            edges = [(0, 0), (before, after), (before, after), (0, 0)]
            summed, counts = (_windows(np.pad(one, edges), size, stride).sum((-1, -2)) for one in (x, np.ones_like(x)))
            largest = _windows(np.pad(x, edges, constant_values=-np.inf), size, stride).max((-1, -2))
            yield f"the maximum {window}", largest
            if before + after:
                yield f"the average without the padding {window}", summed / counts
            yield f"the average{' with the padding' if before + after else ''} {window}", summed / size**2


def _windows(x: np.ndarray, size: int, stride: int) -> np.ndarray:
    return sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]


@rule(ARRAYS, "resize with one convention for corners, `align_corners=False` or half-pixel centers, on both sides")
def corners_of_resizing(case: Case) -> str | None:
    """Each side's image is the other size's, interpolated by its own convention for corners."""
    for words, x in sources(case):
        images = last_channels(case, x[:SAMPLES])
        both = told_apart(case, _resized(images, case)) if images.ndim == 4 else None
        if both:
            return f"the image is resized{words} {case.in_words(*both)}"
    return None


def _resized(x: np.ndarray, case: Case) -> Iterator[Formula]:
    for total in sizes(case):
        scale = math.sqrt(total * len(x) / x.size)
        height, width = (round(n * scale) for n in x.shape[1:3])
        if height * width * x.shape[-1] != total or (height, width) == x.shape[1:3]:
            continue
        for words, places in (
            ("with aligned corners", lambda n, m: np.arange(m) * (n - 1) / max(m - 1, 1)),
            ("with half-pixel centers", lambda n, m: (np.arange(m) + 0.5) * n / m - 0.5),
            ("from the corner of the first pixel", lambda n, m: np.arange(m) * n / m),
        ):
            rows, columns = (
                _interpolation(n, places(n, m)) for n, m in zip(x.shape[1:3], (height, width), strict=True)
            )
            yield f"{words}, between pixels", np.einsum("hi,wj,bijc->bhwc", rows, columns, x)
        for words, places in (
            ("to the nearest pixel, rounded down", lambda n, m: np.floor(np.arange(m) * n / m)),
            ("to the nearest pixel of half-pixel centers", lambda n, m: np.floor((np.arange(m) + 0.5) * n / m)),
        ):
            rows, columns = (places(n, m).astype(int) for n, m in zip(x.shape[1:3], (height, width), strict=True))
            yield words, x[:, rows][:, :, columns]


def _interpolation(size: int, places: np.ndarray) -> np.ndarray:
    """The weights of linear interpolation between pixels: float64[places, size]."""
    places = np.clip(places, 0, size - 1)
    low = np.minimum(np.floor(places).astype(int), size - 1)
    high = np.minimum(low + 1, size - 1)
    weights = np.zeros((len(places), size))
    np.add.at(weights, (np.arange(len(places)), low), 1 - (places - low))
    np.add.at(weights, (np.arange(len(places)), high), places - low)
    return weights


RULES: tuple[Rule, ...] = (padding_of_a_convolution, pooling, corners_of_resizing)
