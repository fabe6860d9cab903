"""Random numbers: of the program's own generators, the same on each device.

A draw takes one integer from the generator, as PyTorch's CPU gives it, and Philox makes of that key as many words as are
needed. So seeds, states of generators and what saves them work as before.
"""

from typing import Any

import torch
from torch import Generator, Tensor

from repro.portable.operations.random import WORD, philox
from repro.portable.pytorch.compiler.plan import run
from repro.portable.pytorch.mode.dispatch import define


def key(generator: Generator | None) -> Tensor:
    """The key of the next draw, int64 of no dimension."""
    return torch.empty((), dtype=torch.int64).random_(generator=generator)


def words(generator: Generator | None, number: int, device: torch.device) -> Tensor:
    """Random words below 2^32, float64 [number]."""
    blocks = torch.arange(-(-number // 4), device=device)
    return run(_words, blocks, key(generator).to(device)).view(-1)[:number]


def _words(xp: Any, blocks: Any, drawn: Any) -> Any:
    zero = blocks * 0
    found = philox(xp, (blocks, zero, zero, zero), (drawn & WORD, xp.shift_right(drawn, 32) + zero))
    return xp.stack([xp.f64(word) for word in found], 1)


@define("uniform_")
def uniform(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    share = (words(generator, self.numel(), self.device) * 2.0**-8).floor() * 2.0**-24
    return self.copy_((share * (to - from_) + from_).view(self.shape))


@define("bernoulli_.float")
def bernoulli(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    return self.copy_((words(generator, self.numel(), self.device) < p * 2.0**32).view(self.shape))
