"""Batch, layer and group norm."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import normalization
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.tables import compose, define, replace
from repro.portable.modes.pytorch.dispatcher.types import as_float32

aten = torch.ops.aten
Mask = Sequence[bool]
Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]


@define("native_layer_norm")
def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    if not input.numel():
        return aten.native_layer_norm(input, normalized_shape, weight, bias, eps)
    x = _rows(input, normalized_shape)
    y, mean, _, inverse = run(normalization.scaled_forward, x, _row(weight), _row(bias), axes=(1,), eps=eps)
    outer = (*input.shape[: input.dim() - len(normalized_shape)], *(1,) * len(normalized_shape))
    return y.view(input.shape).to(input.dtype), mean.view(outer), inverse.view(outer)


@define("native_layer_norm_backward")
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Any,
    bias: Any,
    output_mask: Mask,
    *,
    slices: int,
) -> Gradients:
    if not input.numel():
        others = mean, rstd, weight, bias, output_mask
        return aten.native_layer_norm_backward(grad_out, input, normalized_shape, *others)
    x, g = _rows(input, normalized_shape), _rows(grad_out, normalized_shape)
    given = x, g, mean.view(-1, 1), rstd.view(-1, 1), _row(weight), _row(bias), (1,)
    grad_x, *rest = _backward(input, *given, output_mask, slices)
    grad_weight, grad_bias = (None if each is None else each.view(normalized_shape) for each in rest)
    return grad_x, grad_weight, grad_bias


@define("native_group_norm")
def group_norm(input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    if not input.numel():
        return aten.native_group_norm(input, weight, bias, N, C, HxW, group, eps)
    x = _groups(input, N, group)
    scale, shift = (_groups(each, 1, group) for each in (weight, bias))
    y, mean, _, inverse = run(normalization.scaled_forward, x, scale, shift, axes=(2, 3), eps=eps)
    return y.view(input.shape).to(input.dtype), mean.view(N, group), inverse.view(N, group)


@define("native_group_norm_backward")
def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Mask,
    *,
    slices: int,
) -> Gradients:
    if not input.numel():
        others = mean, rstd, weight, N, C, HxW, group, output_mask
        return aten.native_group_norm_backward(grad_out, input, *others)
    x, g, scale = _groups(input, N, group), _groups(grad_out, N, group), _groups(weight, 1, group)
    like = torch.empty(1, group, C // group, 1, device=input.device)
    shape = (N, group, 1, 1)
    return _backward(input, x, g, mean.view(shape), rstd.view(shape), scale, like, (2, 3), output_mask, slices)


@define("native_batch_norm")
def batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    x, scale, shift = _channels(input), _channel(weight), _channel(bias)
    if training and x.shape[0] > 1:
        elastic.refuse("batch_norm", "samples are normalized together", "use group or layer norm")
    if not training:
        y = run(normalization.fixed_forward, x, _channel(running_mean), _channel(running_var), scale, shift, eps=eps)
        return y.view(input.shape).to(input.dtype), x.new_empty(0), x.new_empty(0)
    y, mean, variance, inverse = run(normalization.scaled_forward, x, scale, shift, axes=(0, 2), eps=eps)
    terms = x.shape[0] * x.shape[2]
    for running, new, factor in ((running_mean, mean, 1.0), (running_var, variance, terms / max(1, terms - 1))):
        if running is not None:
            running.copy_(run(normalization.moving, as_float32(running), new.view(-1), float(momentum), factor))
    return y.view(input.shape).to(input.dtype), mean.view(-1), inverse.view(-1)


@define("_native_batch_norm_legit")
def batch_norm_legit(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@define("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(
    input: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return batch_norm(input, weight, bias, None, None, training, momentum, eps)


@define("_native_batch_norm_legit_no_training")
def batch_norm_in_evaluation(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@define("native_batch_norm_backward")
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Mask,
    *,
    slices: int,
) -> Gradients:
    x, g, scale = _channels(input), _channels(grad_out), _channel(weight)
    like = torch.empty(1, x.shape[1], 1, device=x.device)
    if train:
        return _backward(
            input, x, g, _channel(save_mean), _channel(save_invstd), scale, like, (0, 2), output_mask, slices
        )
    given = x, _channel(running_mean), _channel(running_var), scale, like, g
    return _shaped(
        input,
        run(normalization.fixed_backward, *given, eps=eps, needs=tuple(output_mask), slices=slices),
        output_mask,
    )


def _backward(
    input: Tensor,
    x: Tensor,
    g: Tensor,
    mean: Tensor,
    inverse: Tensor,
    scale: Any,
    like: Any,
    axes: tuple[int, ...],
    mask: Mask,
    slices: int,
) -> Gradients:
    given = x, as_float32(mean), as_float32(inverse), scale, scale if like is None else like, g
    if elastic.wanted() and any(mask[1:]):
        (grad_x,) = run(normalization.scaled_backward, *given, axes=axes, needs=(mask[0], False, False))[:1]
        return _shaped(input, (grad_x, *_exact(*given[:3], given[4], g, axes, mask)), mask)
    return _shaped(input, run(normalization.scaled_backward, *given, axes=axes, needs=tuple(mask), slices=slices), mask)


def _exact(
    x: Tensor, mean: Tensor, inverse: Tensor, like: Any, g: Tensor, axes: tuple[int, ...], mask: Mask
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of scale and shift as exact sums over samples, flat."""
    others = tuple(axis for axis, size in enumerate(like.shape) if size == 1)
    products = run(normalization.scaled_products, x, mean, inverse, g, axes=axes) if mask[1] else None
    return tuple(  # type: ignore[return-value]
        elastic.of_bias(each, others) if each is not None and needed else None
        for each, needed in zip((products, g), mask[1:], strict=True)
    )


def _shaped(input: Tensor, gradients: Gradients, mask: Mask) -> Gradients:
    grad_x, *rest = gradients
    grad_x = None if grad_x is None else grad_x.view(input.shape).to(input.dtype)
    return grad_x, *(
        each.flatten() if each is not None and needed else None for each, needed in zip(rest, mask[1:], strict=True)
    )  # type: ignore[return-value]


def _rows(x: Tensor, normalized_shape: Sequence[int]) -> Tensor:
    return as_float32(x).reshape(-1, torch.Size(normalized_shape).numel())


def _row(x: Tensor | None) -> Tensor | None:
    return None if x is None else as_float32(x).reshape(1, -1)


def _channels(x: Tensor) -> Tensor:
    return as_float32(x).reshape(x.shape[0], x.shape[1], -1)


def _channel(x: Tensor | None) -> Tensor | None:
    return None if x is None else as_float32(x).view(1, -1, 1)


def _groups(x: Tensor | None, outer: int, group: int) -> Tensor | None:
    """[N, C, ...] as [N, groups, C / groups, ...]."""
    if x is None:
        return None
    x = as_float32(x)
    return x.reshape(outer, group, -1, 1) if x.dim() == 1 else x.reshape(outer, group, x.shape[1] // group, -1)


@compose("_weight_norm_interface")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """T. Salimans and D. Kingma, arXiv 1602.07868: v g / |v|, and the norms."""
    norms = torch.linalg.vector_norm(v, 2, _but(v, dim), keepdim=dim != -1)
    return v * (g / norms), norms


@compose("_weight_norm_interface_backward")
def weight_norm_backward(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int) -> Any:
    norms = saved_norms.to(saved_g.dtype)
    total = (grad_w * saved_v).sum(_but(saved_v, dim), keepdim=dim != -1)
    return (saved_g / norms) * (grad_w - saved_v * (total / (norms * norms))), total / norms


def _but(x: Tensor, dim: int) -> list[int]:
    """All axes but one; all, where that is -1."""
    return [axis for axis in range(x.dim()) if axis != dim]


@replace("rms_norm")
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Tensor:
    """RMS norm by its parts, as on a CPU: on GPUs PyTorch has a kernel of its own."""
    x = as_float32(input)
    axes = tuple(range(-len(normalized_shape), 0))
    squares = (x * x).mean(axes, keepdim=True)
    y = x * torch.rsqrt(squares + (torch.finfo(input.dtype).eps if eps is None else eps))
    return (y if weight is None else y * weight).to(torch.result_type(input, input if weight is None else weight))
