"""Dense layers, with the library's gradients."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function, forward_ad

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions.linear import linear as dense
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.dispatch import DEVICES, counts, with_native_ops
from repro.portable.modes.pytorch.dispatcher.tables import replace
from repro.portable.modes.pytorch.dispatcher.types import HALVES, as_float32

PLAIN = {Tensor, nn.Parameter}
SINGLE = {torch.float32, *HALVES}
kernels = with_native_ops(run)
_unsafe_view = torch.ops.aten._unsafe_view.default


@replace("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, slices: int) -> Tensor:
    """A dense layer as repro.portable.pytorch.Linear, where first gradients alone are needed and operands have one slice."""
    plain = is_plain(input) and is_plain(weight) and (bias is None or is_plain(bias))
    if slices == 1 and plain and _is_dense(input, weight):
        if torch.is_grad_enabled():
            return _Linear.apply(input, weight, bias)
        return _forward(input, weight, bias)[0]
    if bias is not None and input.dim() == 2:
        return torch.addmm(bias, input, weight.t())
    y = torch.matmul(input, weight.t() if weight.dim() == 2 else weight)
    return y if bias is None else y + bias


def is_plain(x: Tensor) -> bool:
    """True for a tensor of float32 or a half, and nothing else."""
    return type(x) in PLAIN and x.dtype in SINGLE and (x.is_cpu or x.device.type in DEVICES)


def _is_dense(input: Tensor, weight: Tensor) -> bool:
    """True for a product of matrices with numbers in them, while no transform of PyTorch is under way."""
    return (
        input.dim() > 1
        and weight.dim() == 2
        and input.shape[-1] == weight.shape[1]
        and input.dtype == weight.dtype
        and input.numel() > 0
        and weight.numel() > 0
        and input.layout == weight.layout == torch.strided
        and not is_transformed()
    )


def is_transformed() -> bool:
    """True while a transform of PyTorch is under way: vmap, torch.func.grad, forward-mode gradients."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def _forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, tuple[Tensor, ...]]:
    counts["linear"] += 1
    y, saved = kernels(dense.forward, as_float32(x), as_float32(weight), None if bias is None else as_float32(bias))
    y = y if y.dtype == x.dtype else y.to(x.dtype)
    return y if x.dim() == 2 else _unsafe_view(y, y.shape), saved  # a view may not be changed in place


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y, saved = _forward(x, weight, bias)
        ctx.shapes = tuple(x.shape), tuple(weight.shape), None if bias is None else tuple(bias.shape)
        ctx.save_for_backward(x, weight, *saved)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient is asked for
            rows = gradient.flatten(0, -2)
            return (
                gradient @ weight,
                rows.t() @ x.flatten(0, -2),
                rows.sum(0) if ctx.needs_input_grad[2] else None,
            )
        needs, shapes, rows = ctx.needs_input_grad, ctx.shapes, as_float32(gradient)
        if elastic.wanted():
            return _elastic(x, weight, tuple(saved), rows, needs, shapes)
        gradients = kernels(dense.backward, tuple(saved), rows, needs, shapes)
        return tuple(
            each.to(x.dtype) if needed and each is not None else None
            for each, needed in zip(gradients, ctx.needs_input_grad, strict=True)
        )


@with_native_ops
def _elastic(x: Tensor, weight: Tensor, saved: Any, gradient: Tensor, needs: Any, shapes: Any) -> Any:
    """The gradients where those of weight and bias are exact sums over samples."""
    grad_x = grad_weight = grad_bias = None
    if needs[0]:
        grad_x = run(dense.backward, saved, gradient, (True, False, False), (*shapes[:2], None))[0].to(x.dtype)
    rows = gradient.reshape(-1, gradient.shape[-1])
    if needs[1]:
        grad_weight = elastic.of_linear(saved, rows, weight)
    if shapes[2] is not None and needs[2]:
        grad_bias = elastic.of_bias(rows, (0,))
    return grad_x, grad_weight, grad_bias
