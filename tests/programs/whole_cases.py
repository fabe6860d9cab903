"""Utilities of the cases of mode_whole.py: a function, its result under the mode, and whether the mode computed it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher import dispatch

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def numbers(*shape: int) -> Tensor:
    x = torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64)
    return ((x * 0.7548776662466927) % 1 * 2 - 1).float().view(shape)


X = numbers(31, 31)


def work(x: Tensor) -> Tensor:
    return torch.tanh(x @ x) + x.sum()


class Expected:
    """Under the mode: `work(X)`, its gradient, and X @ X."""

    result: Tensor
    gradient: Tensor | None
    product: Tensor


def expect() -> None:
    """Computes them."""
    Expected.result, Expected.product = work(X), X @ X
    leaf = X.clone().requires_grad_()
    work(leaf).sum().backward()
    Expected.gradient = leaf.grad


def ours(function: Callable[..., Any], *arguments: Any) -> bool:
    """True if the mode computed it: counted, with the bits of `work` under the mode, and whole afterwards."""
    before = dispatch.counts["mm"]
    result = function(*arguments)
    return dispatch.counts["mm"] > before and torch.equal(result, Expected.result) and not dispatch.thread.inside
