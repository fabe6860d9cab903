"""Fused steps of optimizers, with the bits of the same optimizers' separate operations.

And operations on lists of tensors: those of their tensors, one by one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import OpOverload

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions.xp import Array, Backend
from repro.portable.modes.pytorch.dispatcher.dispatch import BELOW, thread, with_native_ops
from repro.portable.modes.pytorch.dispatcher.exact import is_exact
from repro.portable.modes.pytorch.dispatcher.tables import Function, compose, special

Tensors = Sequence[Tensor]
run = with_native_ops(run)

# --- lists of tensors -------------------------------------------------------------------------------------------------

LISTS = {name.removeprefix("aten::").partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
LISTS = {name.removesuffix("_") for name in LISTS if name.startswith("_foreach_") and not is_exact(name)}


@special(*LISTS)
def each(operation: OpOverload, name: str) -> Function:
    """PyTorch's loop for a CPU, which calls the operation of each tensor: on a GPU, too."""
    redispatch, loop = operation.redispatch, operation._op_dk

    def looped(keys: Any, *arguments: Any, **options: Any) -> Any:
        if thread.inside:
            return redispatch(keys & BELOW, *arguments, **options)
        return loop(DispatchKey.CompositeExplicitAutograd, *arguments, **options)

    return looped


# --- arithmetic of steps ----------------------------------------------------------------------------------------------


class Separate:
    """PyTorch's operations of elements."""

    add, mul, div, sqrt, maximum, lerp = torch.add, torch.mul, torch.div, torch.sqrt, torch.maximum, torch.lerp

    @staticmethod
    def plus(a: Tensor, b: Tensor, factor: float) -> Tensor:
        """a + factor b; of halves this rounds once, and so do the next two."""
        return torch.add(a, b, alpha=factor)

    @staticmethod
    def addcmul(a: Tensor, b: Tensor, c: Tensor, factor: float = 1) -> Tensor:
        return torch.addcmul(a, b, c, value=factor)

    @staticmethod
    def addcdiv(a: Tensor, b: Tensor, c: Tensor, factor: float) -> Tensor:
        return torch.addcdiv(a, b, c, value=factor)


class CompiledArithmetic:
    """The arithmetic of a step on a backend's float32 arrays: each operation rounds by itself."""

    def __init__(self, xp: Backend) -> None:
        self.xp = xp

    def add(self, a: Array, b: Array) -> Array:
        return self.xp.f32(self.xp.f64(a) + self.xp.f64(b))

    def mul(self, a: Array, b: Array) -> Array:
        return self.xp.f32(self.xp.f64(a) * self.xp.f64(b))

    def div(self, a: Array, b: Array) -> Array:
        return self.xp.f32(self.xp.f64(a) / self.xp.f64(b))

    def sqrt(self, a: Array) -> Array:
        return self.xp.f32(self.xp.sqrt(self.xp.f64(a)))

    def plus(self, a: Array, b: Array, factor: Array) -> Array:
        return self.add(a, self.mul(b, factor))

    def lerp(self, a: Array, b: Array, share: Array) -> Array:
        return self.plus(a, self.xp.f32(self.xp.f64(b) - self.xp.f64(a)), share)

    def addcmul(self, a: Array, b: Array, c: Array, factor: Array | None = None) -> Array:
        product = self.mul(b, c)
        return self.add(a, product) if factor is None else self.plus(a, product, factor)

    def addcdiv(self, a: Array, b: Array, c: Array, factor: Array) -> Array:
        return self.add(a, self.div(self.mul(b, factor), c))

    def maximum(self, a: Array, b: Array) -> Array:
        return self.xp.where((a > b) | (a != a), a, b)


def _adam(
    f: Any, p: Any, g: Any, m: Any, v: Any, most: Any, numbers: Sequence[Any], decay: bool, decoupled: bool
) -> Any:
    """D. Kingma and J. Ba, arXiv 1412.6980; with `decoupled` AdamW, I. Loshchilov and F. Hutter, arXiv 1711.05101."""
    share, rate1, beta2, rate2, correction, eps, step = numbers
    if decay:
        p, g = (f.mul(p, share), g) if decoupled else (p, f.plus(g, p, share))
    m = f.lerp(m, g, rate1)
    v = f.addcmul(f.mul(v, beta2), g, g, rate2)
    most = None if most is None else f.maximum(most, v)
    below = f.add(f.div(f.sqrt(v if most is None else most), correction), eps)
    return f.addcdiv(p, m, below, step), m, v, most


def _sgd(
    f: Any,
    p: Any,
    g: Any,
    buffer: Any,
    numbers: Sequence[Any],
    decay: bool,
    momentum: bool,
    nesterov: bool,
    first: bool,
) -> Any:
    share, beta, rest, rate = numbers
    if decay:
        g = f.plus(g, p, share)
    if momentum:
        buffer = g if first else f.plus(f.mul(buffer, beta), g, rest)
        g = f.plus(g, buffer, beta) if nesterov else buffer
    return f.plus(p, g, rate), buffer


def _adagrad(f: Any, p: Any, g: Any, total: Any, numbers: Sequence[Any], decay: bool) -> Any:
    """J. Duchi, E. Hazan and Y. Singer, JMLR 12, 2011."""
    share, eps, rate = numbers
    if decay:
        g = f.plus(g, p, share)
    total = f.addcmul(total, g, g)
    return f.addcdiv(p, g, f.add(f.sqrt(total), eps), rate), total


def _compiled(xp: Backend, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return step(CompiledArithmetic(xp), *arguments, **options)


def _step(step: Callable[..., Any], tensors: Sequence[Tensor | None], numbers: Sequence[float], **options: Any) -> None:
    """A step of one weight, in place; tensors: the weight, its gradient, its slots."""
    weight = tensors[0]
    assert weight is not None
    if weight.dtype == torch.float32 and weight.numel():
        given = torch.tensor(numbers, dtype=torch.float32, device=weight.device).unbind()
        results = run(_compiled, step, *tensors, given, **options)
    else:
        results = step(Separate, *tensors, numbers, **options)
    for old, new in zip((weight, *tensors[2:]), results, strict=True):
        if old is not None:
            old.copy_(new)


def _gradients(grads: Tensors, maximize: bool, scale: Tensor | None, found_inf: Tensor | None) -> Tensors | None:
    """Gradients of the loss, not scaled; None where some are not finite, so that the step is left out."""
    if found_inf is not None and found_inf.item() == 1:
        return None
    if scale is not None:
        for gradient in grads:
            gradient.div_(scale)
    return [-gradient for gradient in grads] if maximize else grads


# --- PyTorch's operations ---------------------------------------------------------------------------------------------


def _fused_adam(decoupled: bool) -> Function:
    def fused(
        self: Tensors,
        grads: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        state_steps: Tensors,
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
    ) -> None:
        gradients = _gradients(grads, maximize, grad_scale, found_inf)
        if gradients is None:
            return
        lr, share = float(lr), 1 - float(lr) * weight_decay if decoupled else weight_decay
        for at, slots in enumerate(zip(self, gradients, exp_avgs, exp_avg_sqs, strict=True)):
            time = float(state_steps[at])
            size, correction = lr / (1 - beta1**time), (1 - beta2**time) ** 0.5
            numbers = (share, 1 - beta1, beta2, 1 - beta2, correction, eps, -size)
            most = max_exp_avg_sqs[at] if amsgrad else None
            _step(_adam, (*slots, most), numbers, decay=weight_decay != 0, decoupled=decoupled)

    return fused


compose("_fused_adam_", "_fused_adam_.tensor_lr")(_fused_adam(decoupled=False))
compose("_fused_adamw_", "_fused_adamw_.tensor_lr")(_fused_adam(decoupled=True))


@compose("_fused_sgd_", "_fused_sgd_.tensor_lr")
def fused_sgd(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    gradients = _gradients(grads, maximize, grad_scale, found_inf)
    if gradients is None:
        return
    numbers = (weight_decay, momentum, 1 - dampening, -float(lr))
    how = {"decay": weight_decay != 0, "momentum": momentum != 0, "nesterov": nesterov, "first": is_first_step}
    buffers = momentum_buffer_list if momentum else [None] * len(self)
    for slots in zip(self, gradients, buffers, strict=True):
        _step(_sgd, slots, numbers, **how)


@compose("_fused_adagrad_", "_fused_adagrad_.tensor_lr")
def fused_adagrad(
    self: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    gradients = _gradients(grads, maximize, grad_scale, found_inf)
    if gradients is None:
        return
    for slots, time in zip(zip(self, gradients, state_sums, strict=True), state_steps, strict=True):
        rate = float(lr) / (1 + (float(time) - 1) * lr_decay)
        _step(_adagrad, slots, (weight_decay, eps, -rate), decay=weight_decay != 0)
