"""Softmax, its logarithm, and logarithms of sums of exponentials."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import softmax
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.dispatcher.types import as_float32


@define("_softmax")
def softmax_forward(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    shares = _last(lambda x: run(softmax.shares, x), dim, self)
    return shares if half_to_float else shares.to(self.dtype)


@define("_softmax_backward_data")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype, *, slices: int) -> Tensor:
    def backward(y: Tensor, g: Tensor) -> Tensor:
        return run(softmax.shares_backward, y, g, slices=slices)

    return _last(backward, dim, output, grad_output).to(input_dtype)


@define("_log_softmax")
def log_softmax_forward(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    result = _last(lambda x: run(softmax.log_softmax, x), dim, self)
    return result if half_to_float else result.to(self.dtype)


@define("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype) -> Tensor:
    return _last(lambda y, g: run(softmax.log_softmax_backward, y, g), dim, output, grad_output).to(input_dtype)


@compose("_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    empty = (self == -torch.inf).all(dim, keepdim=True)
    return torch.where(empty, 0.0, torch.softmax(self, dim, dtype=dtype))


_log_of_sum = decomposition_table[torch.ops.aten.logsumexp.default]


@compose("logsumexp")
def logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Infinity where a number is: the sum of a group with one would be NaN."""
    result = _log_of_sum(self, dim, keepdim)
    return torch.where(self.amax(dim, keepdim) == math.inf, math.inf, result) if self.numel() else result


def _last(function: Callable[..., Tensor], dim: int, *arrays: Tensor) -> Tensor:
    """A function of arrays along their last axis, along another one."""
    if arrays[0].dim() == 0:
        return _last(function, 0, *(each.unsqueeze(0) for each in arrays)).squeeze(0)
    if not arrays[0].numel():
        return as_float32(arrays[0]).clone()
    return function(*(as_float32(each).movedim(dim, -1) for each in arrays)).movedim(-1, dim)
