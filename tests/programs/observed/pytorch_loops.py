"""Small trainings with PyTorch, one per scenario.

All run in one process, and each prints the hashes of its last weights.
"""

import sys
from collections.abc import Callable

import torch
from hashes import report
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

COUNT = 6


class Nested(torch.optim.SGD):
    """Calls its parent's step, which is hooked as well."""

    def step(self, closure=None):
        return super().step(closure)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))


def batches(workers: int = 0) -> torch.utils.data.DataLoader:
    data = torch.utils.data.TensorDataset(torch.randn(8 * COUNT, 4), torch.randint(0, 2, (8 * COUNT,)))
    return torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=workers)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x), y)


def loop(scenario: str, model: nn.Module, step: Callable, workers: int = 0, count: int = COUNT) -> None:
    for x, y in batches(workers):
        step(x, y)
    report(scenario, count, {name: tensor.numpy() for name, tensor in model.state_dict().items()})


def plain(scenario: str, make: Callable, compiled: Callable = lambda step: step, workers: int = 0) -> None:
    model = network()
    optimizer = make(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()

    loop(scenario, model, compiled(step), workers)


def clipped(scenario: str) -> None:
    """Weights are clipped before each forward pass, behind PyTorch's back; they are what is reported."""
    model, seen = network(), {}
    optimizer = sgd(model)
    for number, (x, y) in enumerate(batches()):
        model[0].weight.data.clamp_(-0.1, 0.1)
        seen[str(number)] = model[0].weight.detach().numpy().copy()
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    report(scenario, COUNT, seen)


def ahead(scenario: str) -> None:
    """The next batch is asked for before the step of this one: no batch comes before the last step."""
    model = network()
    optimizer = sgd(model)
    batch, following = None, iter(batches())
    for _ in range(COUNT + 1):
        asked = next(following, None)
        if batch is not None:
            optimizer.zero_grad()
            loss_of(model, *batch).backward()
            optimizer.step()
        batch = asked
    report(scenario, COUNT, {name: tensor.numpy() for name, tensor in model.state_dict().items()})


def in_backward(scenario: str) -> None:
    """An optimizer per parameter, stepped as soon as its gradient is there."""
    model = network()
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in model.parameters()}
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter: optimizers[parameter].step())

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        loss_of(model, x, y).backward()
        for parameter in model.parameters():
            parameter.grad = None

    loop(scenario, model, step, count=COUNT * len(optimizers))


def scaled(scenario: str, fused: bool) -> None:
    """Every third loss is infinite: GradScaler skips that step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    seen = []

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        seen.append(x)
        optimizer.zero_grad()
        scaler.scale(loss_of(model, x, y) * (float("inf") if len(seen) % 3 == 1 else 1)).backward()
        scaler.step(optimizer)
        scaler.update()

    loop(scenario, model, step, count=COUNT - COUNT // 3)


def scheduled(scenario: str) -> None:
    """Two backward passes to a step, the second one through a checkpointed layer; the rate falls with each step."""
    model = network()
    optimizer = sgd(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        inner = checkpoint(model[0], x.requires_grad_(), use_reentrant=True)
        loss_of(model[1:], inner, y).backward()
        optimizer.step()
        schedule.step()

    loop(scenario, model, step)


class Average:
    """A moving average, as people write it."""

    def __init__(self, model: nn.Module):
        self.shadow = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}

    def update(self, model: nn.Module) -> None:
        for name, tensor in model.named_parameters():
            self.shadow[name].mul_(0.5).add_(tensor.detach(), alpha=0.5)


def averaged(scenario: str) -> None:
    """Two averages, the second one of PyTorch, and a list of the weights of the step before that nothing else holds."""
    model = network()
    optimizer = sgd(model)
    average, other = Average(model), torch.optim.swa_utils.AveragedModel(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        before = [tensor.clone() for tensor in model.parameters()]
        optimizer.step()
        assert len(before) == len(average.shadow)
        average.update(model)
        other.update_parameters(model)

    loop(scenario, model, step)


def main_weights(scenario: str) -> None:
    """The optimizer has weights in double precision, the model computes with copies; an average is rounded to half."""
    model = network()
    weights = [tensor.detach().double() for tensor in model.parameters()]
    average = Average(model.half())
    optimizer = torch.optim.SGD(weights, lr=0.1)
    model.float()

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        loss_of(model, x, y).backward()
        for weight, tensor in zip(weights, model.parameters(), strict=True):
            weight.grad, tensor.grad = tensor.grad.double(), None
        optimizer.step()
        with torch.no_grad():
            for weight, tensor in zip(weights, model.parameters(), strict=True):
                tensor.copy_(weight)
        average.update(model)

    loop(scenario, model, step)


def closure(scenario: str) -> None:
    """LBFGS computes gradients within its step; the first step fails, and the program goes on."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.LBFGS(list(model.parameters()), max_iter=2)

    def fail() -> None:
        raise KeyError

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        def compute() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        optimizer.step(compute)

    try:
        optimizer.step(fail)
    except KeyError:
        loop(scenario, model, step)


def compiled(backend: str) -> Callable:
    return lambda step: torch.compile(step, backend=backend)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def compiled_optimizer(scenario: str, backend: str) -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    update = torch.compile(optimizer.step, backend=backend)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        update()

    loop(scenario, model, step)


SCENARIOS: dict[str, Callable[[str], None]] = {
    "adamw": lambda name: plain(name, lambda model: torch.optim.AdamW(model.parameters())),
    "workers": lambda name: plain(name, sgd, workers=2),
    "ahead": ahead,
    "nested": lambda name: plain(name, lambda model: Nested(model.parameters(), lr=0.1)),
    "fused": lambda name: plain(name, lambda model: torch.optim.AdamW(model.parameters(), fused=True)),
    "by lists": lambda name: plain(
        name, lambda model: torch.optim.SGD([*model[0].parameters(), *model[3].parameters()])
    ),
    "backward": in_backward,
    "scaled": lambda name: scaled(name, fused=False),
    "scaled, fused": lambda name: scaled(name, fused=True),
    "scheduled": scheduled,
    "averaged": averaged,
    "main weights": main_weights,
    "clipped": clipped,
    "closure": closure,
    "compiled": lambda name: plain(name, sgd, compiled("aot_eager")),
    "compiled optimizer": lambda name: compiled_optimizer(name, "aot_eager"),
    "inductor": lambda name: plain(name, sgd, compiled("inductor")),
    "inductor, optimizer": lambda name: compiled_optimizer(name, "inductor"),
}

if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        SCENARIOS[scenario](scenario)
