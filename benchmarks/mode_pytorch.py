"""Networks under the mode, in the library's form and in PyTorch's float32: time of a step.

    .venv/pytorch/bin/python -m benchmarks.mode_pytorch [--threads=N] [--rounds=N] [NETWORK ...]

prints a row for each network: seconds of a step by PyTorch's own float32, and by the two others as multiples of it. Each
is timed in processes of its own, which take turns; the least of the rounds counts. With one thread it is CPU time, so
that what else runs on the machine counts less.

The networks are those of the examples, of the reference trainers' first model and of programs of many small operations.
Their plain form is theirs with PyTorch's modules and functions in the place of the library's.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import repro.portable.pytorch as portable

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

KINDS = ("own", "library", "mode")
FIRST, STEPS = 4, 8
"""Steps before those that are timed, in which kernels are compiled; and those, of which the median counts."""


def rotary(x: Tensor, base: float = 10000.0) -> Tensor:
    """As repro.portable.library.pytorch.functional.rotary, in float32."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * base ** -(torch.arange(half) / half)
    first, second = x.chunk(2, -1)
    sine, cosine = angles.sin(), angles.cos()
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


PLAIN = SimpleNamespace(**vars(functional), add=torch.add, rotary=rotary)
"""PyTorch's functions by the library's names."""

Loss = Callable[[nn.Module, Any], Tensor]


@dataclass(frozen=True)
class Task:
    network: Callable[[bool], nn.Module]
    """In the library's form, or in PyTorch's."""
    loss: Loss
    """Of a network, given PyTorch's functions or the library's."""
    optimizer: Callable[[Any, Any], torch.optim.Optimizer]
    """Of parameters, from torch.optim or repro.portable.library.pytorch.optim."""


def adam(kind: Any, weights: Any) -> torch.optim.Optimizer:
    return kind.AdamW(weights, 1e-3)


def sgd(kind: Any, weights: Any) -> torch.optim.Optimizer:
    return kind.SGD(weights, 0.01, momentum=0.9)


def example(name: str, network: str, library: bool) -> nn.Module:
    """A network of examples/."""
    module = __import__(name)
    if not library:
        module.portable, module.functional = nn, PLAIN  # type: ignore[attr-defined]
    return getattr(module, network)()


def built(make: Callable[[], nn.Module]) -> Callable[[bool], nn.Module]:
    return lambda library: portable.convert(make()) if library else make()


def gpt(network: nn.Module, functions: Any) -> Tensor:
    tokens = torch.arange(16 * 65).view(16, 65) * 7919 % 60
    return functions.cross_entropy(network(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def images(size: int, count: int) -> Loss:
    def loss(network: nn.Module, functions: Any) -> Tensor:
        x = torch.linspace(-1, 1, count * size * size).view(count, 1, size, size)
        return functions.cross_entropy(network(x), torch.arange(count) % 10)

    return loss


def rows(count: int, width: int) -> Loss:
    def loss(network: nn.Module, functions: Any) -> Tensor:
        x = torch.linspace(-1, 1, count * width).view(count, width)
        return functions.cross_entropy(network(x), torch.arange(count) % 10)

    return loss


def wide(network: nn.Module, _: Any) -> Tensor:
    """Nothing but the layer, forward and back: the gradient is one that costs nothing."""
    x = torch.linspace(-1, 1, 20_480 * 1024).view(20_480, 1024).requires_grad_()
    return Picked.apply(network(x))


class Picked(torch.autograd.Function):
    """A number of a matrix, with a gradient for all."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x[0, 0].clone()

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> Tensor:
        return ctx.saved_tensors[0]


def lenet() -> nn.Module:
    parts = nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU()
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


def three() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


TASKS = {
    "LeNet": Task(built(lenet), images(28, 64), sgd),
    "GPT": Task(lambda library: example("gpt_pytorch", "GPT", library), gpt, adam),
    "ResNet": Task(lambda library: example("resnet_pytorch", "ResNet", library), images(28, 32), sgd),
    "dense layer": Task(built(lambda: nn.Linear(1024, 1024)), wide, sgd),
    "three small layers": Task(built(three), rows(32, 64), adam),
}


def seconds(task: Task, kind: str, threads: int) -> float:
    """Of a step, in this process."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    library = kind == "library"
    functions: Any = portable.functional if library else PLAIN
    clock = time.process_time if threads == 1 else time.perf_counter
    with portable.enable() if kind == "mode" else nullcontext():
        network = task.network(library)
        optimizer = task.optimizer(portable.optim if library else torch.optim, network.parameters())
        results = []
        for _ in range(FIRST + STEPS):
            begun = clock()
            optimizer.zero_grad()
            task.loss(network, functions).backward()
            optimizer.step()
            results.append(clock() - begun)
    return sorted(results[FIRST:])[STEPS // 2]


def timed(name: str, kind: str, threads: int) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.mode_pytorch", f"--threads={threads}", f"--only={kind}", name]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("network", nargs="*", default=list(TASKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=KINDS, help="one measurement, in this process")
    options = parser.parse_args()
    if options.only:
        print(seconds(TASKS[options.network[0]], options.only, options.threads))
        return
    print("| network | PyTorch's own, s | the library's form | under the mode |\n|---|---|---|---|")
    for name in options.network:
        least = dict.fromkeys(KINDS, float("inf"))
        for _ in range(options.rounds):
            for kind in KINDS:
                least[kind] = min(least[kind], timed(name, kind, options.threads))
        own = least["own"]
        print(f"| {name} | {own:.4f} | {least['library'] / own:.2f} | {least['mode'] / own:.2f} |", flush=True)


if __name__ == "__main__":
    main()
