"""Random numbers: of the program's own generators, the same on each device.

Philox makes of the key of a draw as many words as are needed. Number n of a draw belongs to element n in the order of
indices, whatever the strides are.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor

from repro.portable.operations import functions, random
from repro.portable.operations.functions import DOUBLE, SINGLE
from repro.portable.pytorch.compiler.plan import run
from repro.portable.pytorch.mode.dispatch import compose, define
from repro.portable.pytorch.mode.generators import key

DIGITS = {torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}
"""Bits of a uniform number, as in PyTorch; 24 otherwise."""
LARGEST = {"cpu": 2**16, "cuda": 2**22}
"""Blocks that are computed at once."""
STEP = 3
"""Kernels are of 2^0, 2^3, 2^6, ... blocks."""


def drawn(
    name: str, function: Callable[..., Any], like: Tensor, generator: Generator | None, *numbers: float, **options: Any
) -> Tensor:
    """The result of a definition of operations.random, one number for each element, in their order: [N]."""
    n, device = like.numel(), like.device
    taken = key(name, generator, device)
    given = [torch.scalar_tensor(number, dtype=torch.float64, device=device) for number in numbers]
    per_block = 2 if function is random.geometric or DOUBLE in options.values() else 4
    total = -(-n // per_block)
    found = []
    for first in range(0, total, LARGEST[device.type]):
        blocks = _blocks(first, min(total - first, LARGEST[device.type]), device)
        found.append(run(function, blocks, taken, *given, **options).view(-1))
    return (found[0] if len(found) == 1 else torch.cat(found))[:n]


def _blocks(first: int, size: int, device: torch.device) -> Tensor:
    """The numbers of blocks from the first one on: on a CPU a few more, so that few kernels are compiled."""
    if device.type == "cpu":
        padded = 1 << -(-(size - 1).bit_length() // STEP) * STEP
        counted = _counted(min(padded, LARGEST["cpu"]))
        return counted + first if first else counted
    return torch.arange(first, first + size, device=device)


@lru_cache(maxsize=None)
def _counted(size: int) -> Tensor:
    return torch.arange(size)


def filled(self: Tensor, found: Tensor) -> Tensor:
    """A tensor with the numbers of a draw, rounded to its type; halves by way of float32."""
    return self.copy_(found.view(self.shape))


def precision(x: Tensor) -> int:
    return DOUBLE if x.dtype == torch.float64 else SINGLE


def check(holds: bool, message: str) -> None:
    """What PyTorch's own kernels check, in their words."""
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


# --- dropout ----------------------------------------------------------------------------------------------------------


@compose("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """As torch.nn.functional.dropout computes it on a CPU, so that a GPU gives the same."""
    if train is False or not input.numel():
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    noise = _noise(torch.empty_like(input).bernoulli_(1 - p), 1 - p)
    return input * noise, noise != 0


@compose("native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    noise = mask.to(grad_output.dtype)
    return grad_output * (_noise(noise, 1.0 / scale) if scale else noise)


def _noise(kept: Tensor, share: float) -> Tensor:
    return kept.div_(share) if share else kept
