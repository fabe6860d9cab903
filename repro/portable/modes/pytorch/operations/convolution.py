"""Convolutions of one to three dimensions, and transposed ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import convolution as definitions
from repro.portable.definitions import elastic as exact_definitions
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_float32, cast_back
from repro.portable.modes.pytorch.operations import images, sums, volumes


@define("convolution")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *,
    slices: int,
) -> Tensor:
    dtype, dims = input.dtype, input.dim() - 2
    stride, padding, dilation, output_padding = (
        _each(given, dims) for given in (stride, padding, dilation, output_padding)
    )
    if not input.numel() or not weight.numel():
        others = stride, padding, dilation, transposed, output_padding, groups
        return torch.ops.aten.convolution(input, weight, bias, *others)
    x, output_padding = _extended(input, stride, output_padding) if transposed else (input, output_padding)
    if dims == 3 or dtype == torch.float64:
        steps = volumes.steps(stride, padding, dilation, groups)
        return volumes.convolution(x, weight, bias, steps, transposed, output_padding, slices)
    x, w = _planar(as_float32(x)), _planar(as_float32(weight))
    how = _how(stride, padding, dilation, groups, x)
    if not transposed and slices == 1 and images.possible(x, w, groups):
        del how["groups"]
        y = images.forward(x, w, None if bias is None else as_float32(bias), **how)
    elif transposed:
        y = run(definitions.transposed_forward, x, w, **how, image=_enlarged(x, w, how, output_padding), slices=slices)
    else:
        y = run(definitions.planar_forward, x, w, None if bias is None else as_float32(bias), **how, slices=slices)
    if transposed and bias is not None:
        y = y + as_float32(bias).view(-1, 1, 1)
    return cast_back(y if dims == 2 else y.squeeze(2), dtype)


@define("convolution_backward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    *,
    slices: int,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    dtype, dims = input.dtype, input.dim() - 2
    stride, padding, dilation, output_padding = (
        _each(given, dims) for given in (stride, padding, dilation, output_padding)
    )
    if not input.numel() or not weight.numel():
        others = bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
        return torch.ops.aten.convolution_backward(grad_output, input, weight, *others)
    whole = _extended(input, stride, output_padding)[0] if transposed else input
    if dims == 3 or dtype == torch.float64:
        steps = volumes.steps(stride, padding, dilation, groups)
        grad_x, *rest = volumes.convolution_backward(grad_output, whole, weight, steps, transposed, output_mask, slices)
        return _cut(grad_x, input.shape), *rest  # type: ignore[return-value]
    g, x, w = (_planar(as_float32(each)) for each in (grad_output, whole, weight))
    how = _how(stride, padding, dilation, groups, x)
    exact = elastic.wanted() and not transposed and slices == 1
    needs = output_mask[0], output_mask[1] and not exact
    if not any(needs):
        grad_x = grad_w = None
    elif not transposed and slices == 1 and images.possible(x, w, groups):
        grad_x, grad_w = images.backward(x, w, g, how["stride"], how["padding"], how["dilation"], needs)
    else:
        backward = definitions.transposed_backward if transposed else definitions.planar_backward
        grad_x, grad_w = run(backward, x, w, g, **how, needs=needs, slices=slices)
    if dims == 1:
        grad_x, grad_w = (each if each is None else each.squeeze(2) for each in (grad_x, grad_w))
    if exact:
        grad_w = _exact(x, w, g, how, weight) if output_mask[1] else None
        grad_bias = elastic.of_bias(g, (0, 2, 3)) if output_mask[2] else None
    else:
        grad_bias = sums.along(sums.total, g, (0, 2, 3), False, None) if output_mask[2] else None
    x_grad, w_grad, b_grad = (None if each is None else cast_back(each, dtype) for each in (grad_x, grad_w, grad_bias))
    return _cut(x_grad, input.shape), w_grad, b_grad


def _exact(x: Tensor, w: Tensor, gradient: Tensor, how: dict[str, Any], weight: Tensor) -> Tensor:
    """The gradient of a weight as an exact sum over samples."""
    share = elastic.setting.share
    if images.possible(x, w, how["groups"]):
        a, b, k = images.parts(x, w, gradient, how["stride"], how["padding"], how["dilation"], share)
    else:
        a, b, k = run(exact_definitions.of_convolution, x, w, gradient, tuple(how.values()), share)
    a, b = (each.permute(0, 3, 1, 2).contiguous() for each in (a, b))
    k = k.view(-1, *(1,) * (weight.dim() - 1))
    return elastic.given((a, b, k), exact_definitions.PRODUCT, weight.shape, weight)


def _each(given: Sequence[int], axes: int) -> Sequence[int]:
    """One number for each axis, where one is given for all."""
    return [given[0]] * axes if len(given) == 1 else given


def _extended(x: Tensor, stride: Sequence[int], more: Sequence[int]) -> tuple[Tensor, list[int]]:
    """Zeros after the numbers of a transposed convolution, where its result is that much longer, and what more is left.

    With them it is the gradient of a convolution that gives as many numbers as x has.
    """
    pairs = list(zip(stride, more, strict=True))
    edges = [edge for step, extra in reversed(pairs) for edge in (0, extra // step)]
    return torch.constant_pad_nd(x, edges) if any(edges) else x, [extra % step for step, extra in pairs]


def _cut(gradient: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    if gradient is None or gradient.shape == torch.Size(shape):
        return gradient
    return gradient[tuple(slice(size) for size in shape)].contiguous()


def _planar(x: Tensor) -> Tensor:
    """Images of one dimension as rows of images of two."""
    return x.unsqueeze(2) if x.dim() == 3 else x


def _how(
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int, x: Tensor
) -> dict[str, Any]:
    def pair(given: Sequence[int], other: int) -> tuple[int, int]:
        return (other, given[0]) if len(given) == 1 else tuple(given)  # type: ignore[return-value]

    return {
        "stride": pair(stride, 1),
        "padding": pair(padding, 0),
        "dilation": pair(dilation, 1),
        "groups": groups,
    }


def _enlarged(x: Tensor, w: Tensor, how: dict[str, Any], more: Sequence[int]) -> tuple[int, int, int, int]:
    """The shape of what a transposed convolution gives."""
    more = (0, *more) if len(more) == 1 else more
    sizes = [
        (size - 1) * step - 2 * pad + hole * (length - 1) + extra + 1
        for size, step, pad, hole, length, extra in zip(
            x.shape[2:], how["stride"], how["padding"], how["dilation"], w.shape[2:], more, strict=True
        )
    ]
    return (x.shape[0], w.shape[1] * how["groups"], *sizes)
