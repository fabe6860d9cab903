"""Patches of images: what a convolution's kernel meets, as rows of a matrix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from llvmlite import ir

from repro.portable.kernels.machine import I16, I64, Kernel, Loop, started


@dataclass(frozen=True)
class Windows:
    """The windows of a kernel along each axis of images: out[o] meets (o stride + t step - low) / dilation."""

    sizes: tuple[int, ...]
    out: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    low: tuple[int, ...]
    dilations: tuple[int, ...]


@cache
def patches(samples: int, channels: int, windows: Windows, width: int) -> Kernel:
    """Kernel over q, int16 [samples, *sizes, channels], and rows, int16 [samples out, width]: taps, channels, zeros.

    Where there is no number of the images, there is 0.
    """
    build, function = started([I16, I16])
    q, result, begin, end = function.args
    out, terms = math.prod(windows.out), math.prod(windows.taps) * channels
    with Loop(build, begin, end) as turn:
        sample, rest = build.udiv(turn, I64(out)), build.urem(turn, I64(out))
        at: list[ir.Value] = []
        for size in reversed(windows.out):
            at.insert(0, build.urem(rest, I64(size)))
            rest = build.udiv(rest, I64(size))
        images = build.gep(q, [build.mul(sample, I64(math.prod(windows.sizes) * channels))])
        target = build.gep(result, [build.mul(turn, I64(width))])
        _taps(build, windows, at, images, target, channels, 0, I64(0), I64(0), None)
        with Loop(build, I64(terms), I64(width)) as place:
            build.store(I16(0), build.gep(target, [place]))
    build.ret_void()
    return Kernel(function, samples * out, samples * out * width)


def _taps(
    build: ir.IRBuilder,
    windows: Windows,
    at: Sequence[ir.Value],
    images: ir.Value,
    target: ir.Value,
    channels: int,
    axis: int,
    tap: ir.Value,
    place: ir.Value,
    there: ir.Value | None,
) -> None:
    """The loops over taps from an axis on; `there` says whether the place so far is in the images."""
    if axis == len(windows.taps):
        source = build.gep(images, [build.mul(place, I64(channels))])
        address = build.gep(target, [build.mul(tap, I64(channels))])
        with build.if_else(there if there is not None else ir.Constant(ir.IntType(1), 1)) as (inside, outside):
            with inside, Loop(build, I64(0), I64(channels)) as channel:
                build.store(build.load(build.gep(source, [channel])), build.gep(address, [channel]))
            with outside, Loop(build, I64(0), I64(channels)) as channel:
                build.store(I16(0), build.gep(address, [channel]))
        return
    size, dilation = windows.sizes[axis], windows.dilations[axis]
    with Loop(build, I64(0), I64(windows.taps[axis])) as number:
        met = build.add(build.mul(at[axis], I64(windows.strides[axis])), build.mul(number, I64(windows.steps[axis])))
        met = build.sub(met, I64(windows.low[axis]))
        inside = build.icmp_signed(">=", met, I64(0))
        if dilation > 1:
            inside = build.and_(inside, build.icmp_signed("==", build.srem(met, I64(dilation)), I64(0)))
            met = build.sdiv(met, I64(dilation))
        inside = build.and_(inside, build.icmp_signed("<", met, I64(size)))
        inside = inside if there is None else build.and_(inside, there)
        deeper = build.add(build.mul(tap, I64(windows.taps[axis])), number)
        address = build.add(build.mul(place, I64(size)), met)
        _taps(build, windows, at, images, target, channels, axis + 1, deeper, address, inside)
