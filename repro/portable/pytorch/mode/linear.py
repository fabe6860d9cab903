"""Dense layers, with the library's gradients."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function, forward_ad

from repro.portable.operations.linear import linear as dense
from repro.portable.pytorch.compiler.plan import run
from repro.portable.pytorch.mode import precisions
from repro.portable.pytorch.mode.dispatch import DEVICES, counts, replace, plainly
from repro.portable.pytorch.mode.types import HALVES, single

PLAIN = {Tensor, nn.Parameter}
SINGLE = {torch.float32, *HALVES}


@replace("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As repro.portable.pytorch.Linear, where nothing but a gradient is asked for, and operands have one slice."""
    if _plain(input, weight, bias):
        return _Linear.apply(input, weight, bias)
    if bias is not None and input.dim() == 2:
        return torch.addmm(bias, input, weight.t())
    y = torch.matmul(input, weight.t() if weight.dim() == 2 else weight)
    return y if bias is None else y + bias


def _plain(input: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    tensors = (input, weight) if bias is None else (input, weight, bias)
    return (
        precisions.slices == 1
        and weight.dim() == 2
        and input.dim() > 1
        and all(type(each) in PLAIN and each.dtype in SINGLE and each.device.type in DEVICES for each in tensors)
        and input.numel() > 0
        and weight.numel() > 0
        and input.layout == weight.layout == torch.strided
        and torch._C._functorch.peek_interpreter_stack() is None
        and forward_ad._current_level < 0
    )


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        counts["linear"] += 1
        given = single(x), single(weight), None if bias is None else single(bias)
        y, saved = plainly(run)(dense.forward, *given)
        ctx.shapes = tuple(None if each is None else tuple(each.shape) for each in given)
        ctx.save_for_backward(x, weight, *saved)
        return torch.ops.aten._unsafe_view(y.to(x.dtype), y.shape)  # no view, which may not be changed in place

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
        found = plainly(run)(dense.backward, tuple(saved), single(gradient), ctx.needs_input_grad, ctx.shapes)
        return tuple(
            each.to(x.dtype) if needed and each is not None else None
            for each, needed in zip(found, ctx.needs_input_grad, strict=True)
        )
