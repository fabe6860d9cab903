"""Operations on PyTorch's tensors, with gradients.

Everything is float32. Results and gradients have the same bits in PyTorch, TensorFlow and JAX, on any device:
docs/specification.md says what each function computes.
"""

from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from repro.portable.operations.grids import Operation
from repro.portable.pytorch.compiler.plan import run


class _Bound(Function):
    """Any operation, as PyTorch differentiates it."""

    @staticmethod
    def forward(ctx, operation: Operation, options: dict[str, Any], *arrays: Tensor | None):
        found, saved = run(operation.forward, *arrays, **options)
        ctx.operation, ctx.options = operation, options
        ctx.shapes = tuple(None if array is None else tuple(array.shape) for array in arrays)
        ctx.save_for_backward(*saved)
        if isinstance(found, tuple):
            ctx.mark_non_differentiable(*(each for each in found[1:] if each is not None))
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor, *_: Tensor):
        needs = ctx.needs_input_grad[2:]
        found = run(ctx.operation.backward, ctx.saved_tensors, gradient, needs, ctx.shapes, **ctx.options)
        return None, None, *(each if need else None for each, need in zip(found, needs, strict=True))


def apply(operation: Operation, *arrays: Tensor | None, **options: Any):
    """The result of an operation of repro.portable.operations, with its gradient."""
    return _Bound.apply(operation, options, *arrays)
