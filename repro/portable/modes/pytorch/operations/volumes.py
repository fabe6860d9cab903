"""Convolutions of volumes, and those of float64 numbers in any number of dimensions."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import doubles, volumes
from repro.portable.definitions.volumes import ALL, CHANNEL, SAMPLE, VolumeSteps
from repro.portable.modes.pytorch.dispatcher.types import as_float32, cast_back
from repro.portable.modes.pytorch.operations import sums
from repro.portable.numbers import precisions

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


def steps(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> VolumeSteps:
    return VolumeSteps(_triple(stride, 1), _triple(padding, 0), _triple(dilation, 1), groups)


def _triple(given: Sequence[int], other: int) -> tuple[int, int, int]:
    return (*(other,) * (3 - len(given)), *given)  # type: ignore[return-value]


def _volume(x: Tensor) -> Tensor:
    """Rows or images as volumes that are thin in the other dimensions."""
    return as_float32(x).reshape(*x.shape[:2], *(1,) * (5 - x.dim()), *x.shape[2:])


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, how: VolumeSteps, transposed: bool, more: Sequence[int]
) -> Tensor:
    v, w = _volume(x), _volume(weight)
    image = _enlarged(v, w, how, _triple(more, 0)) if transposed else ()
    if v.dtype == torch.float64:
        y = _wide(v, SAMPLE, w, ALL, _terms(w, transposed), _back(image, how) if transposed else _forth(how))
    elif transposed:
        y = run(volumes.transposed_forward, v, w, how=how, image=image, slices=precisions.slices)
    else:
        y = run(volumes.forward, v, w, None if bias is None else as_float32(bias), how=how, slices=precisions.slices)
    if bias is not None and (transposed or v.dtype == torch.float64):
        y = y + as_float32(bias).view(-1, 1, 1, 1)
    return cast_back(_given(y, x), x.dtype)


def convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, how: VolumeSteps, transposed: bool, mask: Sequence[bool]
) -> Gradients:
    g, v, w = _volume(gradient), _volume(x), _volume(weight)
    if v.dtype == torch.float64:
        grad_x, grad_w = _wide_backward(g, v, w, how, transposed, mask)
    else:
        backward = volumes.transposed_backward if transposed else volumes.backward
        grad_x, grad_w = run(backward, v, w, g, how=how, needs=tuple(mask[:2]), slices=precisions.slices)
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


# --- float64 ----------------------------------------------------------------------------------------------------------

Multiply = Callable[[Tensor, Tensor], Tensor]


def _forth(how: VolumeSteps) -> Multiply:
    return lambda q, w: volumes.convolve(Backend, q, w, how)


def _back(image: Sequence[int], how: VolumeSteps) -> Multiply:
    return lambda g, w: volumes.convolve_back(Backend, g, w, tuple(image), how)


def _with(weight: Tensor, how: VolumeSteps) -> Multiply:
    return lambda q, g: volumes.convolve_with(Backend, q, g, tuple(weight.shape), how)


def _terms(w: Tensor, outputs: bool) -> int:
    """Products in a sum over the inputs, or the outputs, that a weight joins."""
    return w.numel() // w.shape[1 if outputs else 0]


def _wide(
    a: Tensor, axes: tuple[int, ...], b: Tensor, others: tuple[int, ...], terms: int, multiply: Multiply
) -> Tensor:
    """A product of float64 operands that have grids along these axes."""
    bits = doubles.product_bits(terms)
    (first, p), (second, s) = doubles.slices(Backend, a, axes, bits), doubles.slices(Backend, b, others, bits)
    return _product(first, second, bits, multiply) * (p * s)


def _product(first: list[Tensor], second: list[Tensor], bits: int, multiply: Multiply) -> Tensor:
    """The product of slices, which float32 holds."""
    return doubles.multiplied([part.float() for part in first], [part.float() for part in second], bits, multiply)


def _wide_backward(
    g: Tensor, x: Tensor, w: Tensor, how: VolumeSteps, transposed: bool, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Samples have grids of their own in what goes in, channels in the other operand, as in the weight's gradient."""
    grad_x = grad_w = None
    if mask[0]:
        multiply = _forth(how) if transposed else _back(x.shape, how)
        grad_x = _wide(g, SAMPLE, w, ALL, _terms(w, not transposed), multiply)
    if mask[1]:
        first, second = (g, x) if transposed else (x, g)
        terms = second.numel() // second.shape[1]
        grad_w = _wide_with(first, second, terms, _with(w, how))
    return grad_x, grad_w


def _wide_with(first: Tensor, second: Tensor, terms: int, multiply: Multiply) -> Tensor:
    """The gradient of a weight: the samples' scales go into the second operand."""
    bits = doubles.product_bits(terms)
    slices, p = doubles.slices(Backend, first, SAMPLE, bits)
    others, s = doubles.slices(Backend, second * p, CHANNEL, bits)
    return _product(slices, others, bits, multiply) * s.view(-1, 1, 1, 1, 1)
