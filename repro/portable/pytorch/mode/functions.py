"""Functions of each element."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.operations import pointwise
from repro.portable.pytorch.compiler.plan import run
from repro.portable.pytorch.mode.dispatch import compose, define
from repro.portable.pytorch.mode.types import HALVES, as_given, narrowed, single


def _sqrt(xp: Any, x: Any) -> Any:
    return xp.f32(xp.sqrt(xp.f64(x)))


def _rsqrt(xp: Any, x: Any) -> Any:
    return xp.f32(1.0 / xp.sqrt(xp.f64(x)))


def unary(name: str, function: Callable[..., Any]) -> None:
    @define(name, integers=True)
    def computed(self: Tensor) -> Tensor:
        x = self if self.is_floating_point() else self.to(torch.get_default_dtype())
        return narrowed(run(function, single(x)), x.dtype)


unary("sqrt", _sqrt)
unary("rsqrt", _rsqrt)


def _activation(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    @as_given
    def forward(self: Tensor) -> Tensor:
        return run(pointwise.activation.forward, self, name=name)[0]

    @as_given
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        return run(pointwise.activation.backward, (self,), grad_output, None, None, name=name)[0]

    return forward, backward


GELU = {kind: _activation(name) for kind, name in (("none", "gelu"), ("tanh", "gelu_tanh"))}


@define("gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    return GELU[approximate][0](self)


@define("gelu_backward")
def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    return GELU[approximate][1](grad_output, self)


silu, silu_backward = _activation("silu")
define("silu")(silu)
define("silu_backward")(silu_backward)
for _name in ("tanh", "sigmoid"):
    define(_name)(_activation(_name)[0])


@compose("tanh_backward")
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output)


@compose("sigmoid_backward")
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * ((1 - output) * output)


@compose("pow.Tensor_Scalar")
def pow_number(self: Tensor, exponent: Any) -> Tensor:
    if exponent == 2:
        return self * self
    if exponent == 3:
        return self * self * self
    if exponent == 1:
        return self.clone()
    if exponent == 0.5:
        return self.sqrt()
    if exponent == -0.5:
        return self.rsqrt()
    if exponent == -1:
        return self.reciprocal()
    raise NotImplementedError
