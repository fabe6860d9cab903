"""Random numbers under portable numerics of any PyTorch program.

Prints what it found, as JSON. With `cuda`: what differs between a CPU and a GPU.
"""

import hashlib
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import repro.portable.pytorch as portable
from reference import random as reference
from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import random
from repro.portable.kernels import pytorch as compiler
from repro.portable.modes.pytorch.dispatcher.generators import on_cpu

TYPES = torch.float32, torch.float64, torch.float16, torch.bfloat16
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
WEIGHTS = [[0.1, 0.2, 0.0, 0.7], [1e-30, 0.0, 2e-30, 1e-30]]
N = 20_000


def empty(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


def full(value: float, device: str, *shape: int) -> Tensor:
    return torch.full(shape, value, device=device)


Case = Callable[[str], Tensor]


def of_type(dtype: torch.dtype) -> dict[str, Case]:
    return {
        f"uniform_ {dtype}": lambda d: empty(d, 301, dtype=dtype).uniform_(),
        f"uniform_ of ends {dtype}": lambda d: empty(d, 7, dtype=dtype).uniform_(-2, 3),
        f"normal_ {dtype}": lambda d: empty(d, 301, dtype=dtype).normal_(),
        f"exponential_ {dtype}": lambda d: empty(d, 40, dtype=dtype).exponential_(0.3),
    }


CASES: dict[str, Case] = {
    **{name: case for dtype in TYPES for name, case in of_type(dtype).items()},
    "several chunks": lambda d: empty(d, 2**18 + 5).uniform_(),
    "no dimension": lambda d: empty(d).normal_(),
    "rand": lambda d: torch.rand(3, 5, device=d),
    "randn": lambda d: torch.randn(3, 5, device=d),
    "rand_like": lambda d: torch.rand_like(empty(d, 6)),
    "randn_like": lambda d: torch.randn_like(empty(d, 6)),
    "randint": lambda d: torch.randint(3, 12, (50,), device=d),
    "randint_like": lambda d: torch.randint_like(empty(d, 6), 9),
    "random_": lambda d: empty(d, 6, dtype=torch.int64).random_(),
    "randperm": lambda d: torch.randperm(50, device=d),
    "bernoulli": lambda d: torch.bernoulli(full(0.4, d, 50)),
    "bernoulli_": lambda d: empty(d, 50, dtype=torch.bool).bernoulli_(0.4),
    "normal of tensors": lambda d: torch.normal(full(2.0, d, 3, 1), full(0.5, d, 4)),
    "normal of a tensor and a number": lambda d: torch.normal(full(2.0, d, 3), 0.5),
    "normal of a number and a tensor": lambda d: torch.normal(2.0, full(0.5, d, 3)),
    "normal of numbers": lambda d: torch.normal(2.0, 0.5, (3,), device=d),
    "geometric_": lambda d: empty(d, 50, dtype=torch.int64).geometric_(0.2),
    "cauchy_": lambda d: empty(d, 50).cauchy_(1.0, 2.0),
    "log_normal_": lambda d: empty(d, 50).log_normal_(),
    "gamma": lambda d: torch._standard_gamma(torch.tensor([0.0, 0.1, 1.0, 9.0, math.inf, math.nan], device=d)),
    "dirichlet": lambda d: torch._sample_dirichlet(full(0.7, d, 5, 4)),
    "poisson": lambda d: torch.poisson(torch.tensor([0.0, 0.3, 9.9, 10.0, 1e5], device=d)),
    "binomial": lambda d: torch.binomial(
        torch.tensor([0.0, 3.0, 50.0, 1e6], device=d), torch.tensor([0.5, 1.0, 0.3, 0.9], device=d)
    ),
    "multinomial": lambda d: torch.multinomial(torch.tensor(WEIGHTS, device=d), 2),
    "multinomial of one": lambda d: torch.multinomial(torch.tensor(WEIGHTS, device=d), 1),
    "multinomial with replacement": lambda d: torch.multinomial(torch.tensor(WEIGHTS, device=d), 50, True),
    "dropout": lambda d: functional.dropout(torch.ones(4, 5, device=d, requires_grad=True), 0.3).detach(),
    "dropout of halves": lambda d: functional.dropout(torch.ones(4, 5, device=d, dtype=torch.bfloat16), 0.3),
    "dropout2d": lambda d: nn.Dropout2d(0.3)(torch.ones(2, 6, 2, 2, device=d)),
    "alpha dropout": lambda d: functional.alpha_dropout(torch.ones(40, device=d), 0.3, training=True),
    "rrelu": lambda d: functional.rrelu(full(-1.0, d, 20), training=True),
    "generator": lambda d: torch.stack([empty(d, 5).normal_(generator=each) for each in [Generator(d)] * 3]),
    "integers of a generator": lambda d: torch.randint(9, (700,), device=d, generator=Generator(d)),
}


def bits(x: Tensor) -> str:
    return hashlib.sha256(x.cpu().contiguous().view(-1).view(BITS[x.element_size()]).numpy().tobytes()).hexdigest()[:16]


def fingerprints(device: str = "cpu", turns: int = 3) -> dict[str, list[str]]:
    """Of each case a few times: from the third on kernels compute it."""
    torch.manual_seed(3)
    return {name: [bits(case(device)) for _ in range(turns)] for name, case in CASES.items()}


def differing() -> list[str]:
    """Cases whose bits depend on threads or on kernels."""
    results = []
    for threads, kernels in ((1, True), (2, True), (1, False)):
        torch.set_num_threads(threads)
        available, compiler.available = compiler.available, kernels and compiler.available
        results.append(fingerprints())
        compiler.available = available
    return [name for name in CASES if any(each[name] != results[0][name] for each in results)]


def next_key() -> int:
    """Of the draw that comes, which is not taken."""
    state = torch.get_rng_state()
    key = int(torch.empty((), dtype=torch.int64).random_())
    torch.set_rng_state(state)
    return key


def other_than_reference() -> list[str]:
    n = 37
    wanted: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[int], Any], torch.dtype]] = {
        "bernoulli": (lambda x: x.bernoulli_(0.3), lambda k: reference.bernoulli(k, n, 0.3), torch.float32),
        "uniform": (lambda x: x.uniform_(), lambda k: reference.uniform(k, n), torch.float32),
        "ends": (lambda x: x.uniform_(-0.3, 0.8), lambda k: reference.uniform(k, n, -0.3, 0.8), torch.float32),
        "doubles": (lambda x: x.uniform_(), lambda k: reference.uniform(k, n, digits=53), torch.float64),
        "halves": (lambda x: x.uniform_(), lambda k: reference.uniform(k, n, digits=11), torch.float16),
        "normal": (lambda x: x.normal_(), lambda k: reference.normal(k, n), torch.float32),
        "moments": (lambda x: x.normal_(2, 0.3), lambda k: reference.normal(k, n, 2.0, 0.3), torch.float32),
        "normal doubles": (lambda x: x.normal_(), lambda k: reference.normal(k, n, bits=53), torch.float64),
        "exponential": (lambda x: x.exponential_(3), lambda k: reference.exponential(k, n, 3.0), torch.float32),
    }
    results = []
    for name, (draw, definition, dtype) in wanted.items():
        right = torch.from_numpy(np.asarray(definition(next_key()), np.float64)).to(dtype)
        if bits(draw(torch.empty(n, dtype=dtype))) != bits(right):
            results.append(name)
    return results


# --- statistics -------------------------------------------------------------------------------------------------------


def distance(x: Tensor, distribution: Callable[[float], float]) -> float:
    """A. Kolmogorov's, times the root of the number: above 1.95 in one of a thousand samples."""
    ordered = sorted(x.double().tolist())
    return max(abs(distribution(each) - (i + 0.5) / N) for i, each in enumerate(ordered)) * math.sqrt(N)


DISTRIBUTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[float], float]]] = {
    "uniform": (lambda x: x.uniform_(), lambda x: x),
    "normal": (lambda x: x.normal_(1, 2), lambda x: 0.5 + 0.5 * math.erf((x - 1) / math.sqrt(8))),
    "exponential": (lambda x: x.exponential_(2), lambda x: 1 - math.exp(-2 * x)),
    "cauchy": (lambda x: x.cauchy_(1, 2), lambda x: 0.5 + math.atan((x - 1) / 2) / math.pi),
    "log_normal": (lambda x: x.log_normal_(0, 1), lambda x: 0.5 + 0.5 * math.erf(math.log(x) / math.sqrt(2))),
    "gamma": (lambda x: torch._standard_gamma(x.fill_(2)), lambda x: 1 - (1 + x) * math.exp(-x)),
}
MOMENTS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "bernoulli": (lambda x: x.bernoulli_(0.3), 0.3, 0.21),
    "geometric": (lambda x: x.geometric_(0.2), 5.0, 20.0),
    "gamma": (lambda x: torch._standard_gamma(x.fill_(0.3)), 0.3, 0.3),
    "few": (lambda x: torch.poisson(x.fill_(3)), 3.0, 3.0),
    "poisson": (lambda x: torch.poisson(x.fill_(40)), 40.0, 40.0),
    "few of trials": (lambda x: torch.binomial(x.fill_(10), torch.full_like(x, 0.8)), 8.0, 1.6),
    "binomial": (lambda x: torch.binomial(x.fill_(100), torch.full_like(x, 0.4)), 40.0, 24.0),
    "categories": (lambda x: torch.tensor([0.5, 0.0, 0.25, 0.25]).multinomial(N, True).double(), 1.25, 1.6875),
}


def statistics() -> dict[str, float]:
    """Of each distribution how far the samples are from it, in what is usual by chance; about 1."""
    torch.manual_seed(5)
    samples = {name: draw(torch.empty(N)) for name, (draw, _) in DISTRIBUTIONS.items()}
    others = {name: draw(torch.empty(N)) for name, (draw, *_) in MOMENTS.items()}
    results = {name: distance(x, DISTRIBUTIONS[name][1]) for name, x in samples.items()}
    for name, x in others.items():
        _, mean, variance = MOMENTS[name]
        numbers = x.double().numpy()
        results[f"mean of {name}"] = abs(numbers.mean() - mean) / math.sqrt(variance / N)
        results[f"variance of {name}"] = abs(numbers.var() / variance - 1) * math.sqrt(N) / 3
    return results


# --- what programs rely on --------------------------------------------------------------------------------------------


def repeats() -> dict[str, bool]:
    """Tests that numbers come again, or do not, as in PyTorch."""
    x = torch.empty(9)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first, second = torch.rand(9), torch.rand(9)
    torch.set_rng_state(state)
    again = torch.rand(9)
    with torch.random.fork_rng():
        torch.rand(9)
        torch.manual_seed(7)
    after_fork = torch.rand(9)
    generator = Generator().manual_seed(2)
    saved = generator.get_state()
    own = x.normal_(generator=generator).clone()
    generator.set_state(saved)
    state = torch.get_rng_state()
    empty("cpu", 0).uniform_(), empty("cpu", 0).normal_()
    wide = torch.zeros(3, 2, 2)[..., 0]
    wide.uniform_(generator=Generator().manual_seed(2))
    return {
        "after set_rng_state": torch.equal(first, again),
        "after fork_rng": torch.equal(second, after_fork),
        "of a generator": torch.equal(own, x.normal_(generator=generator)),
        "one draw after another": torch.equal(first, second),
        "nothing drawn for nothing": torch.equal(state, torch.get_rng_state()),
        "strided": torch.equal(wide, torch.rand(3, 2, generator=Generator().manual_seed(2))),
        "out": torch.equal(
            torch.rand(6, generator=Generator().manual_seed(2)),
            torch.rand(6, generator=Generator().manual_seed(2), out=torch.empty(2)),
        ),
    }


def edges() -> dict[str, bool]:
    x = torch.ones(50)
    single, narrow = torch.rand(5000), torch.rand(5000, dtype=torch.bfloat16)
    return {
        "p=0": int(torch.empty(50).bernoulli_(0.0).count_nonzero()) == 0,
        "p=1": int(torch.empty(50).bernoulli_(1.0).count_nonzero()) == 50,
        "dropout of all": int(functional.dropout(x, 1.0).count_nonzero()) == 0,
        "dropout of none": torch.equal(functional.dropout(x, 0.0), x),
        "24 bits": torch.equal((single * 2.0**24).trunc(), single * 2.0**24),
        "8 bits, below 1": bool((narrow < 1).all()) and torch.equal((narrow * 256).trunc(), narrow * 256),
    }


def refused() -> list[str]:
    """PyTorch's words for what has no numbers."""
    x, result = torch.empty(3), []
    for draw in (
        lambda: x.uniform_(1, 0),
        lambda: x.normal_(0, -1),
        lambda: x.bernoulli_(1.5),
        lambda: x.exponential_(0),
        lambda: x.geometric_(1.0),
        lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 1),
        lambda: torch.multinomial(torch.tensor([0.5, -0.5]), 1),
        lambda: torch.poisson(torch.tensor([-1.0])),
    ):
        try:
            draw()
        except RuntimeError as error:
            result.append(str(error))
    return result


def dropouts() -> dict[str, bool]:
    """Tests that the forms of dropout agree, with their gradients."""
    x = torch.randn(30, 40, requires_grad=True)
    outcomes = []
    for form in (lambda: functional.dropout(x, 0.1), lambda: torch.native_dropout(x, 0.1, True)[0]):
        torch.manual_seed(4)
        y = form()
        outcomes.append((y, *torch.autograd.grad((y * y).sum(), x)))
    network = nn.Sequential(nn.Linear(40, 40), nn.Dropout(0.4), nn.Linear(40, 40), nn.Dropout(0.4))
    gradients = []
    for kept in (True, False):
        torch.manual_seed(4)
        y = network(x) if kept else checkpoint(network, x, use_reentrant=False)
        gradients.append(torch.autograd.grad((y * y).sum(), list(network.parameters())))
    return {
        "native": all(map(torch.equal, *outcomes)),
        "checkpointed": all(map(torch.equal, *gradients)),
    }


class Augmented(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Tensor:
        return torch.cat([torch.tensor([float(index)]), torch.rand(2), torch.randn(1)])


def loaded(context: str) -> list[str]:
    """The batches of two epochs from two workers."""
    torch.manual_seed(6)
    loader = DataLoader(
        Augmented(),
        batch_size=2,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=True,
    )
    return [bits(batch) for _ in range(2) for batch in loader]


def without_workers() -> list[str]:
    """The same by what is documented: worker w has the seed of the loader plus w, and takes each second batch."""
    torch.manual_seed(6)
    loader = DataLoader(Augmented(), batch_size=2, shuffle=True)
    results: list[str] = []
    states: list[Tensor] = []
    base = int(torch.empty((), dtype=torch.int64).random_())
    for epoch in range(2):
        batches = list(loader.batch_sampler)
        state = torch.get_rng_state()
        for number, batch in enumerate(batches):
            worker = number % 2
            if epoch == 0 and number < 2:
                torch.manual_seed(base + worker)
            else:
                torch.set_rng_state(states[worker])
            results.append(bits(torch.stack([loader.dataset[index] for index in batch])))
            states[worker : worker + 1] = [torch.get_rng_state()]
        torch.set_rng_state(state)
    return results


# --- GPUs -------------------------------------------------------------------------------------------------------------


class Counter:
    """A CUDA generator as the mode sees it: a seed and an offset."""

    device = torch.device("cuda")

    def __init__(self, seed: int, offset: int = 0) -> None:
        self.seed, self.offset = seed, offset

    def initial_seed(self) -> int:
        return self.seed

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        self.offset = offset


def counterparts() -> dict[str, bool]:
    """Tests that numbers that stand for those of CUDA generators are a CPU generator's, and go on from an offset."""

    def drawn(generator: Any, *size: int, high: int = 9) -> Tensor:
        with on_cpu("random_", generator, Counter.device) as taken:
            return torch.randint(high, size, generator=taken)

    cuda, cpu = Counter(5), Generator().manual_seed(5)
    right = [torch.randint(9, size, generator=cpu) for size in ((3,), (2000,), (4,))]
    before = drawn(cuda, 3)
    offset = cuda.offset
    results = [before, drawn(cuda, 2000), drawn(cuda, 4)]
    resumed = Counter(5, offset)
    return {
        "as a CPU generator": all(map(torch.equal, results, right)),
        "resumed": torch.equal(drawn(resumed, 2000), right[1]) and torch.equal(drawn(resumed, 4), right[2]),
        "resumed again": torch.equal(drawn(Counter(5, offset), 2000), right[1]),
        "offset": cuda.offset == resumed.offset and cuda.offset % 4 == 0,
        "key as an int": torch.equal(
            random.normal(Backend, torch.arange(9), 2**40 + 3, precision=24),
            random.normal(Backend, torch.arange(9), torch.tensor(2**40 + 3), precision=24),
        ),
        "other seed": not torch.equal(drawn(Counter(6), 2000), right[1]),
    }


def on_gpu() -> dict[str, Any]:
    """The differences between a CPU and a GPU, and tests that CUDA's own seeds and states count."""
    one, other = fingerprints("cpu", 1), fingerprints("cuda", 1)
    generator = Generator("cuda").manual_seed(8)
    state = generator.get_state()
    first = torch.rand(5, device="cuda", generator=generator)
    generator.set_state(state)
    torch.manual_seed(1)
    torch.cuda.manual_seed(2)
    seeded = torch.rand(5, device="cuda")
    return {
        "differ": [name for name in CASES if one[name] != other[name]],
        "states": torch.equal(first, torch.rand(5, device="cuda", generator=generator)),
        "seeds": torch.equal(seeded.cpu(), torch.rand(5, generator=Generator().manual_seed(2))),
    }


portable.enable()

if __name__ == "__main__":
    if sys.argv[1:] == ["cuda"]:
        print(json.dumps(on_gpu()))
    elif sys.argv[1:] == ["spawn"]:
        print(json.dumps([loaded(context) for context in ("fork", "spawn")]))
    else:
        report = {
            "cases": len(CASES),
            "differ": differing(),
            "reference": other_than_reference(),
            "statistics": statistics(),
            "repeats": repeats(),
            "edges": edges(),
            "refused": refused(),
            "dropouts": dropouts(),
            "counterparts": counterparts(),
            "workers": loaded("fork") == without_workers(),
        }
        print(json.dumps(report))
