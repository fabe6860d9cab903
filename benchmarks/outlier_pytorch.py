"""A network with an outlier, by both precisions of portable numerics and by PyTorch.

    .venv/pytorch/bin/python -m benchmarks.outlier_pytorch

prints a row for each: the largest error of the first layer's output beside float64, in units of that output's own
standard deviation, and the loss of other rows after training.

One feature of each row is 1,000 times as large as the others, as in a transformer's massive activations. Its weights
are 0, so it changes nothing where products keep what is small beside it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

import repro.portable.pytorch as portable

ROWS, INPUTS, HIDDEN, STEPS, SEEDS, OUTLIER = 1024, 16, 64, 200, 5, 1000.0


def batch(seed: int, outlier: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Twice as many rows as are trained on, and what a teacher makes of them without the outlier."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2 * ROWS, INPUTS, generator=generator, dtype=torch.float64)
    teacher = torch.randn(INPUTS, 1, generator=generator, dtype=torch.float64) / INPUTS**0.5
    x[:, 0] = 0.0
    y = torch.sin(x @ teacher)
    x[:, 0] = outlier
    return x.to(dtype), y.to(dtype)


def network(seed: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 + seed)
    first = torch.randn(INPUTS, HIDDEN, generator=generator, dtype=torch.float64) / INPUTS**0.5
    first[0] = 0.0
    second = torch.randn(HIDDEN, 1, generator=generator, dtype=torch.float64) / HIDDEN**0.5
    return [each.to(dtype).requires_grad_() for each in (first, second)]


def trained(
    seed: int, outlier: float, dtype: torch.dtype, mode: Callable[[], AbstractContextManager]
) -> tuple[Tensor, float]:
    """The first layer's output before training, and the loss of other rows after it."""
    (x, y), (first, second) = batch(seed, outlier, dtype), network(seed, dtype)
    (x, new_x), (y, new_y) = x.split(ROWS), y.split(ROWS)
    with mode():
        output = (x @ first).detach()
        optimizer = torch.optim.SGD([first, second], lr=0.05, momentum=0.9)
        for _ in range(STEPS):
            loss = functional.mse_loss(torch.relu(x @ first) @ second, y)
            optimizer.zero_grad()
            loss.backward()
            first.grad[0] = 0.0
            optimizer.step()
        loss = functional.mse_loss(torch.relu(new_x @ first) @ second, new_y)
    return output, loss.item()


def main() -> None:
    torch.set_num_threads(1)
    exact = [trained(seed, 0.0, torch.float64, nullcontext) for seed in range(SEEDS)]
    print("| products | error of the layer's output | loss of other rows after training |\n|---|---|---|")
    for name in ("float64", "float32", "highest", "high"):
        errors, losses = [], []
        for seed, (right, _) in enumerate(exact):
            mode = nullcontext if name.startswith("float") else partial(portable.enable, precision=name)
            output, loss = trained(seed, OUTLIER, torch.float64 if name == "float64" else torch.float32, mode)
            errors.append(float((output.double() - right).abs().max() / right.std()))
            losses.append(loss)
        loss = sum(losses) / SEEDS
        print(f"| {name} | {max(errors):.1e} | {loss:.3g} ({min(losses):.3g} to {max(losses):.3g}) |")


if __name__ == "__main__":
    main()
