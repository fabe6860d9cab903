"""Samples of distributions: integers, gamma, categories."""

from collections.abc import Callable
from itertools import count as counting
from typing import Any

import torch
from torch import Generator, Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import distributions, random
from repro.portable.definitions.bits import exponent, pow2_f64
from repro.portable.definitions.functions.logarithmic import log1p
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops
from repro.portable.modes.pytorch.dispatcher.generators import key
from repro.portable.modes.pytorch.dispatcher.tables import compose, define
from repro.portable.modes.pytorch.operations.random import check, drawn, filled, padded, precision

CATEGORIES = 2**24
"""The most that PyTorch takes."""
SUM_BITS = 52
SMALLEST = -960
"""An exponent below which a row's numbers are rounded to fewer bits."""


# --- numbers in place -------------------------------------------------------------------------------------------------


@define("geometric_", integers=True)
def geometric(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    check(0.0 < p < 1.0, f"geometric_ expects p to be in (0, 1), but got p={p}")
    if not self.numel():
        return self
    scale = 1.0 / float(run(log1p, torch.tensor([-p], dtype=torch.float64, device="cpu")))
    return filled(self, drawn("geometric_", random.geometric, self, generator, scale))


@define("cauchy_")
def cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    check(sigma > 0.0, f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    if not self.numel():
        return self
    return filled(self, drawn("cauchy_", random.cauchy, self, generator, median, sigma, precision=precision(self)))


@define("log_normal_")
def log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    check(std > 0.0, f"log_normal_ expects std > 0.0, but found std={std}")
    if not self.numel():
        return self
    options = {"precision": precision(self), "exponential": True}
    return filled(self, drawn("log_normal_", random.normal, self, generator, mean, std, **options))


# --- by rejection -----------------------------------------------------------------------------------------------------


def accepted(taken: Any, function: Callable[..., Any], elements: Tensor, *parameters: Tensor) -> Tensor:
    """The first accepted number of each element: float64 [N]."""
    n = elements.numel()
    repeated = torch.arange(padded(n, elements.device), device=elements.device).clamp(max=n - 1)
    elements, *given = (each[repeated] for each in (elements, *parameters))
    numbers, done = torch.zeros_like(given[0]), torch.zeros_like(elements, dtype=torch.bool)
    for part in counting():
        turn = torch.full((), part, device=elements.device)
        drawn, good = run(function, elements, taken, turn, *given)
        numbers = torch.where(done, numbers, drawn)
        done = done | good
        if bool(done.all()):
            return numbers[:n]
    raise AssertionError


def sampled(
    name: str,
    like: Tensor,
    generator: Generator | None,
    choice: Tensor | None,
    few: Any,
    many: Any,
    *parameters: Tensor,
) -> Tensor:
    """Numbers by one definition for elements where `choice` holds, and by another one for the others."""
    if not like.numel():
        return torch.empty_like(like)
    taken = key(name, generator, like.device)
    given = [each.to(torch.float64).expand(like.shape).reshape(-1) for each in parameters]
    elements = torch.arange(like.numel(), device=like.device)
    numbers = torch.empty(like.numel(), dtype=torch.float64, device=like.device)
    for function, rows in ((few, choice), (many, None if choice is None else ~choice)):
        index = elements if rows is None else elements[rows.expand(like.shape).reshape(-1)]
        if index.numel() and function is not None:
            numbers[index] = accepted(taken, function, index, *(each[index] for each in given))
    return torch.empty_like(like, memory_format=torch.contiguous_format).copy_(numbers.view(like.shape))


@define("_standard_gamma")
def standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    smallest = torch.finfo(self.dtype).tiny
    return sampled("_standard_gamma", self, generator, None, None, distributions.gamma, self).clamp(min=smallest)


@compose("_sample_dirichlet")
def sample_dirichlet(self: Tensor, generator: Generator | None = None) -> Tensor:
    numbers = torch._standard_gamma(self, generator)
    return numbers / numbers.sum(-1, keepdim=True)


@define("poisson")
def poisson(self: Tensor, generator: Generator | None = None) -> Tensor:
    check(bool((self >= 0).all()), "invalid Poisson rate, expected rate to be non-negative")
    few = ~(self >= distributions.FEW)
    return sampled("poisson", self, generator, few, distributions.few_poisson, distributions.poisson, self)


@define("binomial")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw the count of the rarer of success and failure."""
    count, prob = torch.broadcast_tensors(count, prob)
    trials, p = count.double().floor(), prob.double()
    rare = torch.where(p > 0.5, 1.0 - p, p)
    few = ~(trials * rare >= distributions.FEW)
    functions = distributions.few_binomial, distributions.binomial
    numbers = sampled("binomial", trials, generator, few, *functions, trials, rare)
    return torch.where(p > 0.5, trials - numbers, numbers).to(count.dtype)


# --- categories -------------------------------------------------------------------------------------------------------


@compose("multinomial")
def multinomial(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Without replacement the largest of self / q, where q are of the exponential distribution, as PyTorch does it."""
    check(0 < self.dim() <= 2, "prob_dist must be 1 or 2 dim")
    check(self.is_floating_point(), f"multinomial only supports floating-point dtypes for input, got: {self.dtype}")
    check(num_samples > 0, "cannot sample n_sample <= 0 samples")
    check(
        replacement or num_samples <= self.shape[-1],
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    check(self.shape[-1] <= CATEGORIES, "number of categories cannot exceed 2^24")
    if not self.numel():
        return self.new_empty((*self.shape[:-1], num_samples), dtype=torch.int64)
    possible = bool(((self >= 0) & (self < torch.inf)).all())
    check(possible, "probability tensor contains either `inf`, `nan` or element < 0")
    check(bool((self > 0).any(-1).all()), "invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and num_samples > 1:
        return _with_replacement(self, num_samples, generator)
    chances = self / torch.empty_like(self).exponential_(generator=generator)
    return _largest(chances, num_samples)


@with_native_ops
def _largest(chances: Tensor, n: int) -> Tensor:
    """Their indices, the first of equals first."""
    if n == 1:
        return chances.argmax(-1, keepdim=True)
    return chances.sort(dim=-1, descending=True, stable=True).indices[..., :n].contiguous()


@with_native_ops
def _with_replacement(self: Tensor, num_samples: int, generator: Generator | None) -> Tensor:
    """Shares of the sum, searched in the cumulative one: of integers, on a grid below the row's largest number."""
    weights = self.double()
    largest = exponent(Backend, weights.amax(-1, keepdim=True)).clamp(min=SMALLEST)
    bits = SUM_BITS - (self.shape[-1] - 1).bit_length()
    sums = (weights * pow2_f64(Backend, bits - 1 - largest)).round().long().cumsum(-1).double()
    like = weights.new_empty((*self.shape[:-1], num_samples))
    shares = drawn("multinomial", random.uniform, like, generator, bits=53).view(like.shape)
    return torch.searchsorted(sums, (shares * sums[..., -1:]).contiguous(), right=True)
