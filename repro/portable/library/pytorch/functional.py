"""Functions with torch.nn.functional's names and arguments.

Numbers are float32, and so are results and gradients, whose bits are the same on any device and with any number of
threads: docs/reference/specification.md says what each function computes. Where an option has no portable form, a UsageError says so;
options that change no bits, as `inplace`, are left out. Images are [N, C, H, W], contiguous or, which is faster, in
torch.channels_last.
"""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function

from repro.portable import arguments
from repro.portable.arguments import check, check_floats, check_number
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.memory import TYPES
from repro.portable.definitions import attention, losses, normalization, pointwise, pooling
from repro.portable.definitions import linear as dense
from repro.portable.definitions.convolution import convolution
from repro.portable.definitions.grids import Operation
from repro.portable.definitions.softmax import softmax as softmax_of_rows
from repro.portable.definitions.xp import Backend as AnyBackend
from repro.portable.library.autograd.pytorch import apply, first_order, run
from repro.portable.library.framework import SEEDS, STEPS, padded, whole

Size = int | tuple[int, ...]

# --- products ---------------------------------------------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input [..., I], weight [O, I], bias [O] -> [..., O]."""
    check_floats("linear", input=input, weight=weight, bias=bias)
    arguments.check_linear(input, weight, bias, inputs=1)
    return apply(dense.linear, input, weight, bias)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """input [N, I, H, W], weight [O, I / groups, h, w], bias [O] -> [N, O, H', W'].

    padding: numbers, "valid" or "same".
    """
    check_floats("conv2d", input=input, weight=weight, bias=bias)
    arguments.check_convolution(input, weight, bias, groups, channels=1, inputs=1, outputs=0)
    strides, holes = arguments.pair("conv2d", "stride", stride), arguments.pair("conv2d", "dilation", dilation)
    named = {"valid": True, "same": strides == (1, 1)}.get(padding) if isinstance(padding, str) else True
    check("conv2d", bool(named), f'padding={padding!r} must be "valid", "same" with a stride of 1, or numbers')
    around = arguments.edges("conv2d", padding, _sides(input), _sides(weight), strides, holes)
    x, even = padded(Backend, input.permute(0, 2, 3, 1), around, 0.0)
    options = {"stride": strides, "padding": even, "dilation": holes, "groups": groups}
    return _channels_first(apply(convolution, x, weight.permute(0, 2, 3, 1), bias, **options), input, weight)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """input int [...], weight [N, C] -> [..., C]. The row padding_idx gets no gradient."""
    check_floats("embedding", weight=weight)
    arguments.check_embedding(weight)
    rows = weight.shape[0]
    _check_index("embedding", "input", input, rows)
    result = apply(dense.embedding, input.long(), weight)
    if padding_idx is None:
        return result
    check("embedding", -rows <= padding_idx < rows, f"padding_idx={padding_idx} must be from {-rows} to {rows - 1}")
    return torch.where((input == padding_idx % rows)[..., None], result.detach(), result)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """query [..., T, D], key [..., S, D], value [..., S, E] -> [..., T, E].

    attn_mask: bool, of a shape that broadcasts to [..., T, S], True where a query sees a key; a query that sees nothing
    gives 0. is_causal: no query sees a later key; the numbers of keys and queries are equal.
    """
    name = "scaled_dot_product_attention"
    check_floats(name, query=query, key=key, value=value)
    arguments.check_attention(name, query, key, value, is_causal, scale)
    if attn_mask is not None:
        arguments.check_mask(name, "attn_mask", attn_mask, (*query.shape[:-1], key.shape[-2]))
    check(name, not dropout_p, f"dropout_p={dropout_p} has no portable form; drop out of what comes before or after")
    return apply(attention.attention, query, key, value, attn_mask, causal=is_causal, scale=scale)


# --- pooling ----------------------------------------------------------------------------------------------------------


def max_pool2d(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """[N, C, H, W] -> [N, C, H', W']; the gradient goes to the first of equals."""
    return _pooled("max_pool2d", pooling.max_pool, -math.inf, input, kernel_size, stride, padding)


def avg_pool2d(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """[N, C, H, W] -> [N, C, H', W']; the padding counts, as zeros."""
    return _pooled("avg_pool2d", pooling.average_pool, 0.0, input, kernel_size, stride, padding)


def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """[N, C, H, W] -> [N, C, 1, 1]: the mean of each channel. output_size must be 1."""
    check_floats("adaptive_avg_pool2d", input=input)
    arguments.check_images("adaptive_avg_pool2d", "input", input)
    one = output_size in (1, (1, 1))
    check("adaptive_avg_pool2d", one, f"output_size={output_size} has no portable form; use 1, or avg_pool2d")
    return apply(pooling.mean, input, axes=(2, 3))


def _pooled(
    name: str, operation: Operation, empty: float, input: Tensor, kernel: Size, stride: Size | None, padding: Size
) -> Tensor:
    check_floats(name, input=input)
    arguments.check_images(name, "input", input)
    check(name, not isinstance(padding, str), f"padding={padding!r} must be an integer or a pair")
    sizes, strides, around = arguments.window(name, kernel, stride, padding, _sides(input))
    x, even = padded(Backend, input.permute(0, 2, 3, 1), around, empty)
    return _channels_first(apply(operation, x, kernel=sizes, stride=strides, padding=even), input)


# --- number by number -------------------------------------------------------------------------------------------------


def relu(input: Tensor) -> Tensor:
    """max(x, 0); the gradient is 0 where x is."""
    check_floats("relu", input=input)
    return apply(pointwise.relu, input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """approximate: "none", or "tanh" for the approximation by it."""
    check("gelu", approximate in ("none", "tanh"), f'approximate={approximate} is unknown; use "none" or "tanh"')
    return _activation("gelu" if approximate == "none" else "gelu_tanh", input)


def silu(input: Tensor) -> Tensor:
    return _activation("silu", input)


def tanh(input: Tensor) -> Tensor:
    return _activation("tanh", input)


def sigmoid(input: Tensor) -> Tensor:
    return _activation("sigmoid", input)


def _activation(name: str, input: Tensor) -> Tensor:
    check_floats(name, input=input)
    return apply(pointwise.activation, input, name=name)


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    check_floats("softmax", input=input)
    last = input.dim()
    check("softmax", -last <= dim < last, f"dim={dim} must be from {-last} to {last - 1}, of input {list(input.shape)}")
    return apply(softmax_of_rows, input.movedim(dim, -1)).movedim(-1, dim)


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b, of one shape: a residual connection. What is added to all samples has a sum as gradient: use linear."""
    check_floats("add", a=a, b=b)
    arguments.check_alike("add", a, b)
    return apply(pointwise.add, a, b)


def fan_out(x: Tensor, copies: int) -> tuple[Tensor, ...]:
    """Copies of x. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """
    check_floats("fan_out", x=x)
    arguments.check_count("fan_out", "copies", copies)
    return _FanOut.apply(x, copies)


fork = fan_out  # its first name


class _FanOut(Function):
    @staticmethod
    def forward(_, x: Tensor, copies: int) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for _ in range(copies))

    @staticmethod
    def backward(_, *gradients: Tensor) -> tuple[Tensor, None]:
        first_order()
        return run(pointwise.add_up, gradients), None


def dropout(input: Tensor, p: float, seed: int | Tensor, step: int | Tensor, channels: bool = False) -> Tensor:
    """input [N, ...] with each number dropped with probability p, the others times 1 / (1 - p).

    Which are dropped follows from seed (an int below 2^62, another one for each dropout of a network), step (an int
    below 2^32, another one for each call) and the place in the input, in the order of its axes. Both may be int64
    tensors of no dimension. channels: whole channels of images [N, C, H, W].
    """
    check_floats("dropout", input=input)
    arguments.check_share("dropout", "p", p)
    arguments.check_dimensions("dropout", 1, input=input)
    numbers = whole(_PyTorch, "dropout", "seed", seed, SEEDS), whole(_PyTorch, "dropout", "step", step, STEPS)
    place = [number.to(input.device) for number in numbers]
    if not channels:
        return apply(pointwise.dropout, input, *place, rate=p, rows=False)
    arguments.check_images("dropout", "input", input)
    return apply(pointwise.dropout, input.movedim(1, -1), *place, rate=p, rows=True).movedim(-1, 1)


def rotary(input: Tensor, base: float = 10000.0) -> Tensor:
    """Rotary positions: input [..., T, D], the pairs (x_i, x_(i + D/2)) turned by the angle of position and i."""
    check_floats("rotary", input=input)
    arguments.check_rotary("input", input, base)
    return apply(pointwise.rotate, input, base=float(base))


# --- normalization ----------------------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Over the last axes, which normalized_shape, weight and bias have."""
    check_floats("layer_norm", input=input, weight=weight, bias=bias)
    rows = _rows("layer_norm", input, normalized_shape, eps, weight=weight, bias=bias)
    y = apply(normalization.normalize, rows, axes=(-1,), eps=eps, center=True, batch=False)[0]
    return _affine(y, weight, bias).view(input.shape)


def rms_norm(input: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Over the last axes, which normalized_shape and weight have. eps: that of float32 unless given."""
    check_floats("rms_norm", input=input, weight=weight)
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    rows = _rows("rms_norm", input, normalized_shape, eps, weight=weight)
    y = apply(normalization.normalize, rows, axes=(-1,), eps=eps, center=False, batch=False)[0]
    return _affine(y, weight, None).view(input.shape)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """input [N, C, ...], weight and bias [C]: each sample over groups of neighboring channels."""
    check_floats("group_norm", input=input, weight=weight, bias=bias)
    arguments.check_groups("group_norm", "input", input, 1, num_groups)
    arguments.check_shapes("group_norm", input.shape[1:2], weight=weight, bias=bias)
    check_number("group_norm", "eps", eps)
    groups = input.reshape(input.shape[0], num_groups, -1)  # exact sums have no order, so neither has memory
    y = apply(normalization.normalize, groups, axes=(-1,), eps=eps, center=True, batch=False)[0]
    return _affine(y.view(input.shape).movedim(1, -1), weight, bias).movedim(-1, 1)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """input [N, C, ...], the others [C]: each channel over all samples, or by running_mean and running_var.

    In training these two, if given, move in place by `momentum` to the mean and to the variance, which is that of n - 1
    there.
    """
    vectors = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    check_floats("batch_norm", input=input, **vectors)
    arguments.check_dimensions("batch_norm", 2, input=input)
    arguments.check_shapes("batch_norm", input.shape[1:2], **vectors)
    check_number("batch_norm", "momentum", momentum, 0.0, 1.0)
    check_number("batch_norm", "eps", eps)
    x, axes = input.movedim(1, -1), tuple(range(input.dim() - 1))
    if not training:
        both = running_mean is not None and running_var is not None
        check("batch_norm", both, "it needs running_mean and running_var; give both, or training=True")
        y = apply(normalization.normalize_by, x, running_mean, running_var, eps=eps)
        return _affine(y, weight, bias).movedim(-1, 1)
    samples = input.numel() // input.shape[1] * Backend.ranks.size
    arguments.check_samples("batch_norm", samples)
    y, mean, variance = apply(normalization.normalize, x, axes=axes, eps=eps, center=True, batch=True)
    with torch.no_grad():
        for running, new, factor in ((running_mean, mean, 1.0), (running_var, variance, samples / (samples - 1))):
            if running is not None:
                running.copy_(run(normalization.moving, running, new.view(-1), momentum, factor))
    return _affine(y, weight, bias).movedim(-1, 1)


def _rows(name: str, input: Tensor, normalized_shape: Size, eps: float, **vectors: Tensor | None) -> Tensor:
    """The axes to normalize as one."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    ends = bool(last) and tuple(input.shape[-len(last) :]) == last
    check(name, ends, f"input {list(input.shape)} must end in normalized_shape={list(last)}")
    arguments.check_shapes(name, last, **vectors)
    check_number(name, "eps", eps)
    return input.reshape(*input.shape[: -len(last)], math.prod(last))


def _affine(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """y [..., C] weight + bias, as far as they are there."""
    if weight is None:
        if bias is None:
            return y
        weight = torch.ones_like(bias)
    return apply(pointwise.affine, y, weight.reshape(-1), None if bias is None else bias.reshape(-1))


# --- losses -----------------------------------------------------------------------------------------------------------


def cross_entropy(input: Tensor, target: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Logits [N, V] and labels int [N], or [N, V, ...] and [N, ...] -> the mean, of no dimension."""
    check_floats("cross_entropy", input=input)
    arguments.check_labels(input, target, 1, label_smoothing)
    classes = input.shape[1]
    _check_index("cross_entropy", "target", target, classes)
    logits = input.movedim(1, -1).reshape(-1, classes)
    return apply(losses.cross_entropy, logits, target.reshape(-1), smoothing=label_smoothing)


def mse_loss(input: Tensor, target: Tensor) -> Tensor:
    """The mean of (input - target)^2, of one shape -> of no dimension."""
    check_floats("mse_loss", input=input, target=target)
    arguments.check_alike("mse_loss", input, target)
    return apply(losses.mse, input, target)


# --- indices, shapes --------------------------------------------------------------------------------------------------


class _PyTorch:
    """PyTorch, as repro.portable.library.framework.Framework."""

    xp: ClassVar[AnyBackend] = Backend
    apply = staticmethod(apply)
    array, constant = staticmethod(torch.as_tensor), staticmethod(Tensor.detach)

    @staticmethod
    def int64(value: Any) -> Tensor:
        return torch.as_tensor(value, dtype=torch.int64)

    @staticmethod
    def known(array: Tensor) -> bool:
        return type(array) in TYPES and array.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_index(name: str, argument: str, index: Tensor, size: int) -> None:
    """UsageError where an index is not below the size. On a GPU, which nobody waits for, an assertion fails instead."""
    arguments.check_integers(name, argument, index)
    if _PyTorch.known(index):
        arguments.check_range(name, argument, int(index.min()), int(index.max()), size)
    else:
        inside = ((index >= 0) & (index < size)).all()
        torch._assert_async(inside, f"portable numerics: {name}: {argument} must be from 0 to {size - 1}")


def _sides(images: Tensor) -> arguments.Pair:
    """Height and width."""
    return images.shape[2], images.shape[3]


def _channels_first(y: Tensor, *inputs: Tensor) -> Tensor:
    """[N, H, W, C] -> [N, C, H, W]: in memory, too, unless an input has channels last there, as PyTorch has it."""
    last = torch.channels_last
    follows = any(x.is_contiguous(memory_format=last) and not x.is_contiguous() for x in inputs)
    return y.permute(0, 3, 1, 2).contiguous(memory_format=last if follows else torch.contiguous_format)
