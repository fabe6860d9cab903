"""Operations on PyTorch's tensors, with gradients.

Everything is float32. Results and gradients have the same bits in PyTorch, TensorFlow and JAX, on any device:
docs/reference/specification.md says what each function computes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from repro.portable.arguments import refuse
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions.grids import Operation


def first_order() -> None:
    """UsageError in a backward pass whose gradients are to be differentiated, too.

    PyTorch's once_differentiable says nothing where a gradient depends on inputs alone, as a gradient penalty does.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        remedy = "what is differentiated twice, as a gradient penalty, is for PyTorch's own functions"
        raise refuse("backward", f"create_graph=True has no portable form; leave it out: {remedy}")


class _Bound(Function):
    """Any operation, as PyTorch differentiates it."""

    @staticmethod
    def forward(ctx, operation: Operation, options: dict[str, Any], *arrays: Tensor | None):
        result, saved = run(operation.forward, *arrays, **options)
        ctx.operation, ctx.options = operation, options
        ctx.shapes = tuple(None if array is None else tuple(array.shape) for array in arrays)
        ctx.save_for_backward(*saved)
        if isinstance(result, tuple):
            ctx.mark_non_differentiable(*(each for each in result[1:] if each is not None))
        return result

    @staticmethod
    def backward(ctx, gradient: Tensor, *_: Tensor):
        first_order()
        needs = ctx.needs_input_grad[2:]
        gradients = run(ctx.operation.backward, ctx.saved_tensors, gradient, needs, ctx.shapes, **ctx.options)
        return None, None, *(each if need else None for each, need in zip(gradients, needs, strict=True))


def apply(operation: Operation, *arrays: Tensor | None, **options: Any):
    """The result of an operation of repro.portable.definitions, with its gradient."""
    return _Bound.apply(operation, options, *arrays)
