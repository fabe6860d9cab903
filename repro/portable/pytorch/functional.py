"""Portable operations with the names and arguments of torch.nn.functional.

Numbers are float32, and so are results and gradients, whose bits are the same on any device and with any number of
threads: docs/portable.md says what each function computes. Where an option has no portable form, a UsageError says so;
options that change no bits, as `inplace`, are left out. Images are [N, C, H, W], contiguous or, which is faster, in
torch.channels_last.
"""

import math

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from repro.errors import UsageError
from repro.portable.operations import attention, losses, normalization, pointwise, pooling
from repro.portable.operations import linear as dense
from repro.portable.operations.convolution import convolution
from repro.portable.operations.grids import Operation
from repro.portable.pytorch.autograd import apply, run
from repro.portable.pytorch.backend import Backend

Size = int | tuple[int, ...]

# --- products ---------------------------------------------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input [..., I], weight [O, I], bias [O] -> [..., O]."""
    _float32("linear", input=input, weight=weight, bias=bias)
    if input.shape[-1] != weight.shape[1]:
        raise refused("linear", f"input has {input.shape[-1]} features and weight {weight.shape[1]}", "they must agree")
    return apply(dense.linear, input, weight, bias)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Size = 1, padding: Size | str = 0,
    dilation: Size = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """input [N, I, H, W], weight [O, I / groups, h, w], bias [O] -> [N, O, H', W'].

    padding: numbers, "valid" or "same".
    """
    _float32("conv2d", input=input, weight=weight, bias=bias)
    _images("conv2d", input=input, weight=weight)
    if weight.shape[1] * groups != input.shape[1] or weight.shape[0] % groups:
        raise refused(
            "conv2d", f"input {list(input.shape)} and weight {list(weight.shape)} do not fit, with groups={groups}",
            "weight must be [O, C / groups, h, w], and groups divide O",
        )  # fmt: skip
    strides, holes = _pair(stride), _pair(dilation)
    reach = tuple(hole * (size - 1) for hole, size in zip(holes, weight.shape[2:], strict=True))
    edges = _same(strides, reach) if padding == "same" else _pair(0 if isinstance(padding, str) else padding)
    if any(size + 2 * edge <= far for size, edge, far in zip(input.shape[2:], edges, reach, strict=True)):
        raise refused("conv2d", f"the kernel {list(weight.shape)} is larger than the padded images {list(input.shape)}",
                      "make it smaller, or the padding larger")  # fmt: skip
    options = {"stride": strides, "padding": edges, "dilation": holes, "groups": groups}
    found = apply(convolution, input.permute(0, 2, 3, 1), weight.permute(0, 2, 3, 1), bias, **options)
    return _channels_first(found, input, weight)


def _same(stride: tuple[int, int], reach: tuple[int, ...]) -> tuple[int, int]:
    if stride != (1, 1) or any(size % 2 for size in reach):
        raise refused("conv2d", 'padding="same" is for a stride of 1 and odd kernels', "give numbers")
    return _pair(tuple(size // 2 for size in reach))


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """input int [...], weight [N, C] -> [..., C]. The row padding_idx gets no gradient."""
    _float32("embedding", weight=weight)
    _index("embedding", "input", input, weight.shape[0])
    found = apply(dense.embedding, input.long(), weight)
    if padding_idx is None:
        return found
    padded = input == padding_idx % weight.shape[0]
    return torch.where(padded[..., None], found.detach(), found)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None,
) -> Tensor:  # fmt: skip
    """query [..., T, D], key [..., S, D], value [..., S, E] -> [..., T, E].

    attn_mask: bool, of a shape that broadcasts to [..., T, S], True where a query sees a key; a query that sees nothing
    gives 0. is_causal: no query sees a later key, of as many keys as queries.
    """
    name = "scaled_dot_product_attention"
    _float32(name, query=query, key=key, value=value)
    rows, columns = query.shape[-2], key.shape[-2]
    if (
        not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
        or query.shape[-1] != key.shape[-1] or columns != value.shape[-2]
    ):  # fmt: skip
        raise refused(
            name, f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} do not fit",
            "they must be [..., T, D], [..., S, D] and [..., S, E]; repeat heads that are shared",
        )  # fmt: skip
    if attn_mask is not None:
        boolean(name, "attn_mask", attn_mask)
    if dropout_p:
        raise refused(name, f"dropout_p={dropout_p} has no portable form", "drop out of what comes before or after")
    if is_causal and rows != columns:  # PyTorch lines up the first of each, others the last
        raise refused(name, f"is_causal with {rows} queries and {columns} keys is ambiguous", "give an attn_mask")
    return apply(attention.attention, query, key, value, attn_mask, causal=is_causal, scale=scale)


# --- pooling ----------------------------------------------------------------------------------------------------------


def max_pool2d(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """[N, C, H, W] -> [N, C, H', W']; the gradient goes to the first of equals."""
    return _pooled("max_pool2d", pooling.max_pool, input, kernel_size, stride, padding)


def avg_pool2d(input: Tensor, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """[N, C, H, W] -> [N, C, H', W']; the padding counts, as zeros."""
    return _pooled("avg_pool2d", pooling.average_pool, input, kernel_size, stride, padding)


def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """[N, C, H, W] -> [N, C, 1, 1]: the mean of each channel. output_size must be 1."""
    _float32("adaptive_avg_pool2d", input=input)
    _images("adaptive_avg_pool2d", input=input)
    if output_size not in (1, (1, 1)):
        raise refused("adaptive_avg_pool2d", f"output_size={output_size} has no portable form", "use 1, or avg_pool2d")
    return apply(pooling.mean, input, axes=(2, 3))


def _pooled(name: str, operation: Operation, input: Tensor, kernel: Size, stride: Size | None, padding: Size) -> Tensor:
    _float32(name, input=input)
    _images(name, input=input)
    sizes, edges = _pair(kernel), _pair(padding)
    if any(2 * edge > size for edge, size in zip(edges, sizes, strict=True)):
        raise refused(name, f"padding={padding} is more than half of kernel_size={kernel}", "make it smaller")
    if any(side + 2 * edge < size for side, edge, size in zip(input.shape[2:], edges, sizes, strict=True)):
        raise refused(name, f"windows of {kernel} are larger than the padded images {list(input.shape)}",
                      "make them smaller")  # fmt: skip
    strides = sizes if stride is None else _pair(stride)
    found = apply(operation, input.permute(0, 2, 3, 1), kernel=sizes, stride=strides, padding=edges)
    return _channels_first(found, input)


# --- number by number -------------------------------------------------------------------------------------------------


def relu(input: Tensor) -> Tensor:
    """max(x, 0); the gradient is 0 where x is."""
    _float32("relu", input=input)
    return apply(pointwise.relu, input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """approximate: "none", or "tanh" for the approximation by it."""
    if approximate not in ("none", "tanh"):
        raise refused("gelu", f"approximate={approximate} is unknown", 'use "none" or "tanh"')
    return _activation("gelu" if approximate == "none" else "gelu_tanh", input)


def silu(input: Tensor) -> Tensor:
    return _activation("silu", input)


def tanh(input: Tensor) -> Tensor:
    return _activation("tanh", input)


def sigmoid(input: Tensor) -> Tensor:
    return _activation("sigmoid", input)


def _activation(name: str, input: Tensor) -> Tensor:
    _float32(name, input=input)
    return apply(pointwise.activation, input, name=name)


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    _float32("softmax", input=input)
    return apply(attention.softmax, input.movedim(dim, -1)).movedim(-1, dim)


def add(a: Tensor, b: Tensor) -> Tensor:
    """a + b, of one shape: a residual connection."""
    _float32("add", a=a, b=b)
    if a.shape != b.shape:
        raise refused("add", f"a {list(a.shape)} and b {list(b.shape)} differ in shape", "use linear or embedding for "
                      "what is added to all samples, so that its gradient is an exact sum")  # fmt: skip
    return apply(pointwise.add, a, b)


def fork(x: Tensor, copies: int) -> tuple[Tensor, ...]:
    """x so many times. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """
    _float32("fork", x=x)
    return _Fork.apply(x, copies)


class _Fork(Function):
    @staticmethod
    def forward(_, x: Tensor, copies: int) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for _ in range(copies))

    @staticmethod
    @once_differentiable
    def backward(_, *gradients: Tensor) -> tuple[Tensor, None]:
        return run(pointwise.add_up, gradients), None


def dropout(input: Tensor, p: float, seed: int | Tensor, step: int | Tensor, channels: bool = False) -> Tensor:
    """input [N, ...] with each number dropped with probability p, the others times 1 / (1 - p).

    Which are dropped follows from seed (an int below 2^62, another one for each dropout of a network), step (an int
    below 2^32, another one for each call) and the place in the input, in the order of its axes. Both may be int64
    tensors of no dimension. channels: whole channels of images [N, C, H, W].
    """
    _float32("dropout", input=input)
    if not 0 <= p < 1:
        raise refused("dropout", f"p={p} is no probability below 1", "use 0 <= p < 1")
    place = [torch.as_tensor(number, dtype=torch.int64, device=input.device) for number in (seed, step)]
    if not channels:
        return apply(pointwise.dropout, input, *place, rate=p, rows=False)
    _images("dropout", input=input)
    return apply(pointwise.dropout, input.movedim(1, -1), *place, rate=p, rows=True).movedim(-1, 1)


def rotary(input: Tensor, base: float = 10000.0) -> Tensor:
    """Rotary positions: input [..., T, D], the pairs (x_i, x_(i + D/2)) turned by the angle of position and i."""
    _float32("rotary", input=input)
    if input.shape[-1] % 2:
        raise refused("rotary", f"input has {input.shape[-1]} features", "their number must be even")
    return apply(pointwise.rotate, input, base=float(base))


# --- normalization ----------------------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Over the last axes, which normalized_shape, weight and bias have."""
    _float32("layer_norm", input=input, weight=weight, bias=bias)
    rows = _rows("layer_norm", input, normalized_shape)
    y = apply(normalization.normalize, rows, axes=(-1,), eps=eps, center=True, batch=False)[0]
    return _affine(y, weight, bias).view(input.shape)


def rms_norm(input: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Over the last axes, which normalized_shape and weight have. eps: that of float32 unless given."""
    _float32("rms_norm", input=input, weight=weight)
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    rows = _rows("rms_norm", input, normalized_shape)
    y = apply(normalization.normalize, rows, axes=(-1,), eps=eps, center=False, batch=False)[0]
    return _affine(y, weight, None).view(input.shape)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """input [N, C, ...], weight and bias [C]: each sample over groups of neighboring channels."""
    _float32("group_norm", input=input, weight=weight, bias=bias)
    if input.shape[1] % num_groups:
        raise refused("group_norm", f"{num_groups} groups do not divide {input.shape[1]} channels", "use one that does")
    groups = input.reshape(input.shape[0], num_groups, -1)  # exact sums have no order, so neither has memory
    y = apply(normalization.normalize, groups, axes=(-1,), eps=eps, center=True, batch=False)[0]
    return _affine(y.view(input.shape).movedim(1, -1), weight, bias).movedim(-1, 1)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """input [N, C, ...], the others [C]: each channel over all samples, or by running_mean and running_var.

    In training these two, if given, move in place by `momentum` to the mean and to the variance, which is that of n - 1
    there.
    """
    _float32("batch_norm", input=input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    x, axes = input.movedim(1, -1), tuple(range(input.dim() - 1))
    if not training:
        if running_mean is None or running_var is None:
            raise refused("batch_norm", "without running_mean and running_var", "give both, or training=True")
        y = apply(normalization.normalize_by, x, running_mean, running_var, eps=eps)
        return _affine(y, weight, bias).movedim(-1, 1)
    samples = input.numel() // input.shape[1] * Backend.ranks.size
    if samples == 1:
        raise refused("batch_norm", f"input {list(input.shape)} has one sample of a channel", "train on more than one")
    y, mean, variance = apply(normalization.normalize, x, axes=axes, eps=eps, center=True, batch=True)
    with torch.no_grad():
        for running, new, factor in ((running_mean, mean, 1.0), (running_var, variance, samples / (samples - 1))):
            if running is not None:
                running.copy_(run(normalization.moving, running, new.view(-1), momentum, factor))
    return _affine(y, weight, bias).movedim(-1, 1)


def _rows(name: str, input: Tensor, normalized_shape: Size) -> Tensor:
    """The axes to normalize as one."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not last or tuple(input.shape[-len(last) :]) != last:
        raise refused(name, f"input {list(input.shape)} does not end in normalized_shape={list(last)}", "it must")
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
    _float32("cross_entropy", input=input)
    if input.dim() < 2 or target.shape != input.shape[:1] + input.shape[2:]:
        raise refused("cross_entropy", f"input {list(input.shape)} and target {list(target.shape)} do not fit",
                      "they must be [N, V, ...] and [N, ...]")  # fmt: skip
    _index("cross_entropy", "target", target, input.shape[1])
    logits = input.movedim(1, -1).reshape(-1, input.shape[1])
    return apply(losses.cross_entropy, logits, target.reshape(-1), smoothing=label_smoothing)


def mse_loss(input: Tensor, target: Tensor) -> Tensor:
    """The mean of (input - target)^2, of one shape -> of no dimension."""
    _float32("mse_loss", input=input, target=target)
    if input.shape != target.shape:
        raise refused("mse_loss", f"input {list(input.shape)} and target {list(target.shape)} differ", "they must not")
    return apply(losses.mse, input, target)


# --- what is refused, shapes ------------------------------------------------------------------------------------------


def refused(name: str, reason: str, remedy: str) -> UsageError:
    return UsageError(f"portable numerics: {name}: {reason}; {remedy}")


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _float32(name: str, **tensors: Tensor | None) -> None:
    """UsageError where a tensor holds other numbers than float32, or none."""
    for argument, tensor in tensors.items():
        if tensor is not None and tensor.dtype != torch.float32:
            raise refused(name, f"{argument} is {_kind(tensor)}", "convert it to float32")
        if tensor is not None and not tensor.numel():
            raise refused(name, f"{argument} {list(tensor.shape)} holds no numbers", "give one sample at least")


def boolean(name: str, argument: str, mask: Tensor) -> Tensor:
    """The mask. UsageError where it is not one of bool."""
    if mask.dtype != torch.bool:
        raise refused(name, f"{argument} is {_kind(mask)}", "give one of bool")
    return mask


def _images(name: str, **tensors: Tensor) -> None:
    for argument, tensor in tensors.items():
        if tensor.dim() != 4:
            raise refused(name, f"{argument} {list(tensor.shape)} has {tensor.dim()} dimensions", "it must have 4")


def _index(name: str, argument: str, index: Tensor, size: int) -> None:
    """UsageError where an index is not below the size. On a GPU, which nobody waits for, an assertion fails instead."""
    if index.dtype not in (torch.int64, torch.int32):
        raise refused(name, f"{argument} is {_kind(index)}", "give int64")
    if not index.numel():
        raise refused(name, f"{argument} {list(index.shape)} holds no numbers", "give one sample at least")
    inside = ((index >= 0) & (index < size)).all()
    if index.device.type != "cpu" or torch.compiler.is_compiling():
        torch._assert_async(inside, f"portable numerics: {name}: {argument} must be from 0 to {size - 1}")
    elif not inside:
        least, most = int(index.min()), int(index.max())
        raise refused(name, f"{argument} has numbers from {least} to {most}", f"they must be from 0 to {size - 1}")


def _pair(size: Size) -> tuple[int, int]:
    first, *rest = (size,) if isinstance(size, int) else size
    return first, rest[0] if rest else first


def _channels_first(y: Tensor, *inputs: Tensor) -> Tensor:
    """[N, H, W, C] -> [N, C, H, W]: in memory, too, unless an input has channels last there, as PyTorch has it."""
    last = torch.channels_last
    kept = any(x.is_contiguous(memory_format=last) and not x.is_contiguous() for x in inputs)
    return y.permute(0, 3, 1, 2).contiguous(memory_format=last if kept else torch.contiguous_format)
