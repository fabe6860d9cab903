"""Random numbers: of the program's own generators, the same on each device.

Philox makes of the key of a draw as many words as are needed. Number n of a draw belongs to element n in the order of
indices, whatever the strides are.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import random
from repro.portable.definitions.functions import DOUBLE, SINGLE
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.generators import key, on_cpu
from repro.portable.modes.pytorch.dispatcher.tables import compose, define

DIGITS = {torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}
"""Bits of a uniform number, as in PyTorch; 24 otherwise."""
LARGEST = {"cpu": 2**16, "cuda": 2**22}
"""Blocks that are computed at once."""
STEP = 2
"""Kernels are of 1, 4, 16, ... blocks."""


def drawn(
    name: str, function: Callable[..., Any], like: Tensor, generator: Generator | None, *numbers: float, **options: Any
) -> Tensor:
    """The result of a definition of operations.random, one number for each element, in their order: [N]."""
    n, device = like.numel(), like.device
    taken = key(name, generator, device)
    given = [torch.scalar_tensor(number, dtype=torch.float64, device=device) for number in numbers]
    per_block = 2 if function is random.geometric or DOUBLE in options.values() else 4
    total = -(-n // per_block)
    parts = []
    for first in range(0, total, LARGEST[device.type]):
        blocks = _blocks(first, min(total - first, LARGEST[device.type]), device)
        parts.append(run(function, blocks, taken, *given, **options).view(-1))
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[:n]


def _blocks(first: int, size: int, device: torch.device) -> Tensor:
    """The numbers of blocks from the first one on: on a CPU a few more, so that few kernels are compiled."""
    if device.type == "cpu":
        counted = _counted(padded(size, device))
        return counted + first if first else counted
    return torch.arange(first, first + size, device=device)


def padded(n: int, device: torch.device) -> int:
    """The number of numbers that are computed for n: on a CPU a few more."""
    if device.type != "cpu" or n >= LARGEST["cpu"]:
        return n
    return min(1 << -(-(n - 1).bit_length() // STEP) * STEP, LARGEST["cpu"])


@cache
def _counted(size: int) -> Tensor:
    return torch.arange(size, device="cpu")


def filled(self: Tensor, numbers: Tensor) -> Tensor:
    """A tensor with the numbers of a draw, rounded to its type; halves by way of float32."""
    return self.copy_(numbers.view(self.shape))


def precision(x: Tensor) -> int:
    return DOUBLE if x.dtype == torch.float64 else SINGLE


def check(holds: bool, message: str) -> None:
    """Checks what PyTorch's own kernels check, in their words."""
    if not holds:
        raise RuntimeError(message)


# --- numbers in place -------------------------------------------------------------------------------------------------


@define("uniform_")
def uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    check(from_ <= to, f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    if not self.numel():
        return self
    ends = () if (from_, to) == (0.0, 1.0) else (from_, to - from_)
    bits = DIGITS.get(self.dtype, 24)
    return filled(self, drawn("uniform_", random.uniform, self, generator, *ends, bits=bits))


@define("normal_")
def normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    check(std >= 0.0, f"normal expects std >= 0.0, but found std {std}")
    if not self.numel():
        return self
    moments = () if (mean, std) == (0.0, 1.0) else (mean, std)
    return filled(self, drawn("normal_", random.normal, self, generator, *moments, precision=precision(self)))


@define("bernoulli_.float", integers=True)
def bernoulli(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    check(0.0 <= p <= 1.0, f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    if not self.numel():
        return self
    return filled(self, drawn("bernoulli_", random.bernoulli, self, generator, math.ceil(p * 2.0**32)))


@define("exponential_")
def exponential(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    check(lambd > 0.0, f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    if not self.numel():
        return self
    return filled(
        self, drawn("exponential_", random.exponential, self, generator, 1.0 / lambd, precision=precision(self))
    )


@define("bernoulli_.Tensor", integers=True)
def bernoulli_of(self: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor:
    if not self.numel():
        return self
    shares = p.to(self.device, torch.float64)
    check(bool(((shares >= 0) & (shares <= 1)).all()), "bernoulli_ expects all elements of p to be in [0, 1]")
    words = drawn("bernoulli_", random.integers, self, generator)
    return self.copy_(words.view(self.shape) < shares * 2.0**32)


@compose("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal_of(mean: Any, std: Any, *, generator: Generator | None = None) -> Tensor:
    """Standard numbers, times std, plus mean: each rounded."""
    given = [each for each in (mean, std) if isinstance(each, Tensor)]
    smallest = std if isinstance(std, float) or not std.numel() else std.min()
    check(
        not isinstance(std, Tensor) or not std.numel() or bool(smallest >= 0),
        "normal expects all elements of std >= 0.0",
    )
    check(isinstance(std, Tensor) or std >= 0, f"normal expects std >= 0.0, but found std {std}")
    numbers = given[0].new_empty(torch.broadcast_shapes(*(each.shape for each in given)))
    return numbers.normal_(generator=generator).mul_(std).add_(mean)


@compose("rrelu_with_noise")
def rrelu_with_noise(
    self: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Each negative number times a uniform one, which `noise` gets for the gradient; the mean of the ends if not training."""
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    slopes = torch.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, slopes, 1.0))
    return self * noise


# --- integers: PyTorch's own of a CPU -----------------------------------------------------------------------------------


@define("random_", "random_.from", "random_.to", integers=True)
def integers(self: Tensor, *ends: Any, generator: Generator | None = None) -> Tensor:
    if self.is_cpu:
        return self.random_(*ends, generator=generator)
    with on_cpu("random_", generator, self.device) as taken:
        return self.copy_(torch.empty(self.shape, dtype=self.dtype, device="cpu").random_(*ends, generator=taken))


@define("randperm.generator_out", integers=True)
def permutation(n: int, *, generator: Generator | None = None, out: Tensor) -> Tensor:
    if out.is_cpu:
        return torch.randperm(n, generator=generator, out=out)
    with on_cpu("randperm", generator, out.device) as taken:
        return out.resize_(n).copy_(torch.randperm(n, generator=taken, dtype=out.dtype))


# --- dropout ----------------------------------------------------------------------------------------------------------


@compose("native_dropout")
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout as torch.nn.functional.dropout computes it on a CPU, so that a GPU gives the same."""
    elastic.dropout(x, p, train is not False)
    if train is False or not x.numel():
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    noise = _noise(torch.empty_like(x).bernoulli_(1 - p), 1 - p)
    return x * noise, noise != 0


@compose("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    noise = mask.to(grad_output.dtype)
    return grad_output * (_noise(noise, 1.0 / scale) if scale else torch.zeros_like(noise))


def _noise(kept: Tensor, share: float) -> Tensor:
    return kept.div_(share) if share else kept
