"""Convolutions of volumes, and those of float64 numbers in any number of dimensions."""

from collections.abc import Sequence

from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import volumes
from repro.portable.definitions.volumes import CHANNEL, VolumeSteps
from repro.portable.modes.pytorch.dispatcher.types import as_float32, cast_back
from repro.portable.modes.pytorch.operations import sums

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


def steps(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> VolumeSteps:
    return VolumeSteps(_triple(stride, 1), _triple(padding, 0), _triple(dilation, 1), groups)


def _triple(given: Sequence[int], other: int) -> tuple[int, int, int]:
    return (*(other,) * (3 - len(given)), *given)  # type: ignore[return-value]


def _volume(x: Tensor) -> Tensor:
    """Rows or images as volumes that are thin in the other dimensions."""
    return as_float32(x).reshape(*x.shape[:2], *(1,) * (5 - x.dim()), *x.shape[2:])


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, how: VolumeSteps, transposed: bool, more: Sequence[int], slices: int
) -> Tensor:
    v, w = _volume(x), _volume(weight)
    image = _enlarged(v, w, how, _triple(more, 0)) if transposed else ()
    if transposed:
        y = run(volumes.transposed_forward, v, w, how=how, image=image, slices=slices)
    else:
        y = run(volumes.forward, v, w, None if bias is None else as_float32(bias), how=how, slices=slices)
    if bias is not None and transposed:
        y = y + as_float32(bias).view(-1, 1, 1, 1)
    return cast_back(_given(y, x), x.dtype)


def convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, how: VolumeSteps, transposed: bool, mask: Sequence[bool], slices: int
) -> Gradients:
    g, v, w = _volume(gradient), _volume(x), _volume(weight)
    backward = volumes.transposed_backward if transposed else volumes.backward
    grad_x, grad_w = run(backward, v, w, g, how=how, needs=tuple(mask[:2]), slices=slices)
    grad_bias = sums.along(sums.total, g, CHANNEL, False, None) if mask[2] else None
    shaped = (None if each is None else _given(each, x) for each in (grad_x, grad_w))
    return tuple(None if each is None else cast_back(each, x.dtype) for each in (*shaped, grad_bias))  # type: ignore[return-value]


def _given(y: Tensor, like: Tensor) -> Tensor:
    """Volumes as the rows or images that were given."""
    return y.reshape(*y.shape[:2], *y.shape[7 - like.dim() :]).contiguous()


def _enlarged(x: Tensor, w: Tensor, how: VolumeSteps, more: Sequence[int]) -> tuple[int, ...]:
    """The shape of what a transposed convolution gives."""
    axes = zip(x.shape[2:], how.stride, how.padding, how.dilation, w.shape[2:], more, strict=True)
    sizes = [(n - 1) * step - 2 * edge + hole * (length - 1) + extra + 1 for n, step, edge, hole, length, extra in axes]
    return (x.shape[0], w.shape[1] * how.groups, *sizes)
