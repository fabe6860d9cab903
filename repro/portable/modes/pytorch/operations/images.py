"""Convolutions of images as products of matrices of int16.

What meets a kernel is copied into the rows of a matrix, some samples at a time, so that they stay in a processor's caches.
The sums are exact, so the results are those of repro.portable.definitions.convolution.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import elastic
from repro.portable.definitions.grids import quantize, scaled
from repro.portable.kernels import pytorch as compiler
from repro.portable.numbers.constants import BITS

if compiler.available:
    from repro.portable.kernels import products
    from repro.portable.kernels.pytorch.sums import multiply, packed, rounded

Pair = tuple[int, int]

BLOCK = 2**20
"""Numbers of a matrix of rows: 2 MB."""
LEAST_WORK = 2**20
"""Multiplications: of fewer, the copies take longer than they save."""


@dataclass(frozen=True)
class ImageWindows:
    """The windows of a kernel on images: out[i] meets start + stride i + dilation k, for taps k along each axis."""

    taps: Pair
    out: Pair
    start: Pair
    stride: Pair
    dilation: Pair

    def rows(self, q: Tensor, width: int) -> Iterator[tuple[slice, Tensor]]:
        """The matrix of patches of int16 [B, I, H, W], some samples at a time: [samples H' W', h w I and zeros]."""
        batch, inputs, *sizes = q.shape
        terms = self.taps[0] * self.taps[1] * inputs
        columns = -(-terms // width) * width
        before = [max(0, -first) for first in self.start]
        begin = [max(0, first) for first in self.start]
        last = [
            first + step * (count - 1) + hole * (taps - 1)
            for first, step, count, hole, taps in zip(
                self.start, self.stride, self.out, self.dilation, self.taps, strict=True
            )
        ]
        after = [max(0, end - size + 1) for end, size in zip(last, sizes, strict=True)]
        high, wide = (size + first + more for size, first, more in zip(sizes, before, after, strict=True))
        images = torch.zeros((batch, high, wide, inputs), dtype=torch.int16, device="cpu")
        inner = images[:, before[0] : before[0] + sizes[0], before[1] : before[1] + sizes[1]]
        inner.copy_(q.permute(0, 2, 3, 1))
        down, across = wide * inputs, inputs
        shape = (*self.out, *self.taps, inputs)
        strides = (
            self.stride[0] * down,
            self.stride[1] * across,
            self.dilation[0] * down,
            self.dilation[1] * across,
            1,
        )
        first = begin[0] * down + begin[1] * across
        each = self.out[0] * self.out[1]
        some = samples(batch, each * columns)
        matrix = (torch.empty if columns == terms else torch.zeros)(
            (some * each, columns), dtype=torch.int16, device="cpu"
        )
        inside = matrix[:, :terms].unflatten(1, (*self.taps, inputs)).unflatten(0, (some, *self.out))
        for sample in range(0, batch, some):
            given = images.as_strided((some, *shape), (high * down, *strides), first + sample * high * down)
            inside.copy_(given)
            yield slice(sample, sample + some), matrix


def samples(batch: int, each: int) -> int:
    """The number of samples of this size that are taken at once: a divisor of the batch."""
    most = max(1, BLOCK // max(1, each))
    return max(count for count in range(1, batch + 1) if batch % count == 0 and count <= most)


def possible(x: Tensor, weight: Tensor, groups: int) -> bool:
    """True if the matrices can be made, and are worth it."""
    if Backend.engine != "int16" or groups > 1 or not compiler.possible(x.device):
        return False
    return weight.numel() * x.numel() // max(1, x.shape[1]) >= LEAST_WORK


def forward(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Pair, padding: Pair, dilation: Pair) -> Tensor:
    """[B, I, H, W] and [O, I, h, w] -> [B, O, H', W'], float32."""
    taps = _sides(weight)
    out = _out(x, taps, stride, padding, dilation)
    windows = ImageWindows(taps, out, (-padding[0], -padding[1]), stride, dilation)
    (q, p), (w, s) = run(_quantized, x, (1, 2, 3)), run(_quantized, weight, (0, 1, 2, 3))
    y = torch.empty((x.shape[0], weight.shape[0], *out), dtype=torch.float32, device="cpu")
    _correlate(windows, q, w.permute(0, 2, 3, 1), run(_unit, p, s), bias, y)
    return y


def backward(
    x: Tensor, weight: Tensor, gradient: Tensor, stride: Pair, padding: Pair, dilation: Pair, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients with respect to x and to the weight, float32."""
    grad_x = grad_weight = None
    w, s = run(_quantized, weight, (0, 1, 2, 3))
    if needs[0]:
        g, r = run(_quantized, gradient, (1, 2, 3))
        grad_x = (torch.zeros if stride != (1, 1) else torch.empty)(x.shape, dtype=torch.float32, device="cpu")
        unit = run(_unit, r, s)
        for rows, columns, part, windows in _phases(x, gradient, _sides(weight), stride, padding, dilation):
            taps = w[:, :, part[0], part[1]].flip(2, 3).permute(1, 2, 3, 0)
            _correlate(windows, g, taps, unit, None, grad_x[:, :, rows, columns])
    if needs[1]:
        q, p = run(_quantized, x, (1, 2, 3))
        h, r = run(_quantized_with, gradient, p, (0, 2, 3))
        windows = ImageWindows(_sides(weight), _sides(gradient), (-padding[0], -padding[1]), stride, dilation)
        total = _gradient(windows, q, h)
        taps = run(_scaled, total[:, : weight[0].numel()], r.reshape(-1, 1))
        grad_weight = taps.unflatten(1, (*_sides(weight), weight.shape[1])).permute(0, 3, 1, 2).contiguous()
    return grad_x, grad_weight


def parts(
    x: Tensor, weight: Tensor, gradient: Tensor, stride: Pair, padding: Pair, dilation: Pair, share: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of a weight as repro.portable.definitions.elastic.of_convolution has it."""
    q, p = run(_quantized, x, (1, 2, 3))
    a, b, k = run(_operand, gradient, p, share)
    windows = ImageWindows(_sides(weight), _sides(gradient), (-padding[0], -padding[1]), stride, dilation)
    shape = (*_sides(weight), weight.shape[1])
    first, second = (_gradient(windows, q, each)[:, : weight[0].numel()].unflatten(1, shape) for each in (a, b))
    return first, second, k


def _correlate(windows: ImageWindows, q: Tensor, taps: Tensor, unit: Tensor, bias: Tensor | None, y: Tensor) -> None:
    """Fills y [B, O, H', W'] with sums of products of images [B, I, H, W] and taps [O, h, w, I], times units [B], plus a bias."""
    width, outputs = products.width(), taps.shape[0]
    columns = -(-outputs // width) * width
    terms = taps[0].numel()
    matrix = torch.zeros((columns, -(-terms // width) * width), dtype=torch.int16, device="cpu")
    matrix[:outputs, :terms] = taps.reshape(outputs, terms)
    right = packed(matrix)
    plus = None
    if bias is not None:
        plus = torch.zeros(columns, dtype=torch.float32, device="cpu")
        plus[:outputs] = bias
    each = windows.out[0] * windows.out[1]
    for some, rows in windows.rows(q, width):
        units = unit[some].reshape(-1).repeat_interleave(each)
        result = rounded(rows, right, columns, units, plus)
        result = result.view(-1, *windows.out, columns)[..., :outputs]
        y[some].copy_(result.permute(0, 3, 1, 2))


def _gradient(windows: ImageWindows, q: Tensor, h: Tensor) -> Tensor:
    """Sums of products of a gradient [B, O, H', W'] and what meets it, float64 [O, h w I and more]."""
    width, outputs = products.width(), h.shape[1]
    more = -(-outputs // products.ROWS) * products.ROWS
    total: Any = None
    for some, rows in windows.rows(q, width):
        left = torch.zeros if more > outputs else torch.empty
        matrix = left((rows.shape[0] + rows.shape[0] % 2, more), dtype=torch.int16, device="cpu")
        matrix[: rows.shape[0], :outputs].unflatten(0, (-1, *windows.out)).copy_(h[some].permute(0, 2, 3, 1))
        if rows.shape[0] % 2:
            matrix[-1] = 0
            rows = torch.nn.functional.pad(rows, (0, 0, 0, 1))
        part = multiply(matrix.t(), rows)
        total = part if total is None else total + part
    return total[:outputs]


def _phases(
    x: Tensor, gradient: Tensor, taps: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Iterator[tuple[slice, slice, tuple[slice, slice], ImageWindows]]:
    """The pixels of images that meet the same taps of a kernel: rows and columns, the taps, and where they meet."""
    result: list[list[tuple[slice, slice, int, int, int]]] = []
    for axis in (0, 1):
        step, pad, hole, number, size = stride[axis], padding[axis], dilation[axis], taps[axis], x.shape[2 + axis]
        phases = []
        for phase in range(min(step, size)):
            used = [tap for tap in range(number) if (phase + pad - tap * hole) % step == 0]
            if used:
                apart = used[1] - used[0] if len(used) > 1 else 1
                start = (phase + pad - used[-1] * hole) // step
                count = -(-(size - phase) // step)
                phases.append((slice(phase, None, step), slice(used[0], used[-1] + 1, apart), len(used), start, count))
        result.append([*phases])
        result[-1] = [(*each[:3], each[3], each[4], max(1, (each[1].step or 1) * hole // step)) for each in phases]  # type: ignore[misc]
    for rows, down, high, top, height, apart in result[0]:  # type: ignore[misc]
        for columns, across, wide, left, width, beside in result[1]:  # type: ignore[misc]
            yield (
                rows,
                columns,
                (down, across),
                ImageWindows((high, wide), (height, width), (top, left), (1, 1), (apart, beside)),
            )


def _sides(x: Tensor) -> Pair:
    return x.shape[2], x.shape[3]


def _out(x: Tensor, taps: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Pair:
    sizes = zip(_sides(x), padding, dilation, taps, stride, strict=True)
    return tuple((size + 2 * pad - hole * (length - 1) - 1) // step + 1 for size, pad, hole, length, step in sizes)  # type: ignore[return-value]


def _quantized(xp: Any, x: Any, axes: Any) -> Any:
    q, p = quantize(xp, x, axes)
    return xp.int16(q), p


def _quantized_with(xp: Any, x: Any, factor: Any, axes: Any) -> Any:
    return _quantized(xp, x * factor, axes)


def _operand(xp: Any, gradient: Any, p: Any, share: float) -> Any:
    a, b, k = elastic.operand(xp, gradient * (p * share), (0, 2, 3))
    return xp.int16(a), xp.int16(b), k


def _unit(xp: Any, p: Any, s: Any) -> Any:
    return xp.f64(p) * 2.0 ** (-2 * BITS) * xp.f64(s)


def _scaled(xp: Any, total: Any, r: Any) -> Any:
    return xp.r32(scaled(xp, total, 2 * BITS, r))
