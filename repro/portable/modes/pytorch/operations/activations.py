"""Activations and their gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.definitions import activations
from repro.portable.definitions.functions import exponential, logarithmic
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.operations.functions import evaluate, floats


def _of_elements(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, and of numbers after them, which are its constants."""

    def computed(*arrays: Any) -> Tensor:
        tensors = [each for each in arrays if isinstance(each, Tensor)]
        given, dtype = floats(*tensors)
        names = function.__code__.co_varnames[1 + len(tensors) : 1 + len(arrays)]
        options = dict(zip(names, arrays[len(tensors) :], strict=True))
        return evaluate(function, *given, **options).to(dtype)

    return computed


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "silu": activations.silu,
    "silu_backward": activations.silu_backward,
    "tanh_backward": activations.tanh_backward,
    "sigmoid_backward": activations.sigmoid_backward,
    "mish": activations.mish,
    "mish_backward": activations.mish_backward,
    "hardsigmoid": activations.hardsigmoid,
    "hardsigmoid_backward": activations.hardsigmoid_backward,
    "hardswish": activations.hardswish,
    "hardswish_backward": activations.hardswish_backward,
    "softplus": activations.softplus,
    "softplus_backward": activations.softplus_backward,
}
for _name, _function in FUNCTIONS.items():
    define(_name)(_of_elements(_function))
define("tanh", integers=True)(_of_elements(exponential.tanh))
define("sigmoid", integers=True)(_of_elements(exponential.sigmoid))


@define("gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    (x,), dtype = floats(self)
    return evaluate(activations.gelu, x, tanh=approximate == "tanh").to(dtype)


@define("gelu_backward")
def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    (g, x), dtype = floats(grad_output, self)
    return evaluate(activations.gelu_backward, g, x, tanh=approximate == "tanh").to(dtype)


@define("elu")
def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    (x,), dtype = floats(self)
    return evaluate(activations.elu, x, alpha=float(alpha), scale=float(scale), input_scale=float(input_scale)).to(
        dtype
    )


@define("elu_backward")
def elu_backward(
    grad_output: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Tensor
) -> Tensor:
    (g, x), dtype = floats(grad_output, self_or_result)
    options = {"alpha": float(alpha), "scale": float(scale), "input_scale": float(input_scale)}
    return evaluate(activations.elu_backward, g, x, is_result=is_result, **options).to(dtype)


@define("log_sigmoid_forward")
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    (x,), dtype = floats(self)
    return evaluate(logarithmic.log_sigmoid, x).to(dtype), x.new_empty(0)


@define("log_sigmoid_backward")
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    (g, x), dtype = floats(grad_output, self)
    return evaluate(activations.log_sigmoid_backward, g, x).to(dtype)


@define("glu")
def glu(self: Tensor, dim: int = -1) -> Tensor:
    (x,), dtype = floats(self)
    return evaluate(activations.glu, *x.chunk(2, dim)).to(dtype)


@define("glu_backward")
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    (g, x), dtype = floats(grad_output, self)
    return torch.cat(evaluate(activations.glu_backward, g, *x.chunk(2, dim)), dim).to(dtype)
