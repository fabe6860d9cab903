"""A training with PyTorch that says itself what its modules take and give in its first step, and other ways to train.

Arguments: scenarios. Each prints a line of JSON; the weights of all of them, after a few steps, come last.
"""

import copy
import functools
import json
import sys

import torch
from hashes import sha
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 3


class Pair(nn.Module):
    """Gives a tuple, and takes an argument by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.shift = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        projected = self.project(x) * scale + self.shift
        return projected, {"mean": projected.mean(1)}


class Net(nn.Module):
    def __init__(self, recurrent: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(inplace=True))
        self.pair = Pair()
        self.drop = nn.Dropout(0.5)
        self.memory = nn.LSTM(8, 8, batch_first=True) if recurrent else None
        self.never = nn.Linear(3, 3)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = functional.gelu(self.stem(x)).view(len(x), 4, -1, 2).mean(3)
        output, parts = self.pair(pooled, scale=torch.full((8,), 0.5))
        dropped = self.drop(output)
        last = dropped if self.memory is None else self.memory(dropped)[0]
        return self.head(last[:, -1]) + parts["mean"].mean()


def arrays(value: object, name: str = "") -> dict[str, str]:
    if isinstance(value, torch.Tensor):
        return {name: sha(value.detach().numpy())}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {key: code for place, one in items for key, code in arrays(one, f"{name}.{place}".strip(".")).items()}


def spied(model: nn.Module) -> tuple[list[dict], list]:
    """What PyTorch's own hooks see of the calls of a model's modules, in the order in which they begin; the hooks."""
    calls: list[dict] = []
    begun: list[dict] = []

    def before(name: str, module: nn.Module, args: tuple, kwargs: dict) -> None:
        call = {"module": name, "type": type(module).__name__, "inputs": {**arrays(args), **arrays(kwargs)}}
        call["weights"] = arrays({k: v for k, v in module._parameters.items() if v is not None})
        call["buffers"] = arrays(dict(module._buffers))
        calls.append(call)
        begun.append(call)

    def after(module: nn.Module, args: tuple, result: object) -> None:
        begun.pop()["outputs"] = arrays(result)

    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(functools.partial(before, name), with_kwargs=True))
        handles.append(module.register_forward_hook(after))
    return calls, handles


class Noise(nn.Module):
    """Dropout with the mask of another call."""

    def __init__(self, noise: torch.Tensor) -> None:
        super().__init__()
        self.noise = noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.noise


def doubled(model: Net, noise: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, dict]:
    """Outputs, loss and gradients of a copy of the model in float64, and the loss as a number."""
    twin = copy.deepcopy(model).double()
    twin.drop = Noise(noise.double())
    outputs: dict[str, dict] = {}
    for name, module in twin.named_modules():
        module.register_forward_hook(lambda module, args, result, name=name: outputs.update({name: arrays(result)}))
    loss = functional.cross_entropy(twin(x.double()), y)
    loss.backward()
    outputs["loss"], outputs["number"] = arrays(loss), loss.item()
    outputs["gradients"] = {f"0.{n}": sha(p.grad.numpy()) for n, p in twin.named_parameters() if p.grad is not None}
    return outputs


def gradients(model: nn.Module) -> dict[str, str]:
    return {f"0.{n}": sha(p.grad.numpy()) for n, p in model.named_parameters() if p.grad is not None}


def seen(recurrent: bool = False) -> nn.Module:
    model, criterion = Net(recurrent), nn.CrossEntropyLoss()
    x, y = torch.randn(5, 2, 16), torch.randint(0, 3, (5,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with torch.no_grad():
        model.eval()(x)
    nn.Identity()(model.train()(x).argmax(1))  # with a graph, which no loss needs
    start = copy.deepcopy(model)
    calls, handles = spied(model)
    noise: list[torch.Tensor] = []
    handles.append(model.drop.register_forward_hook(lambda module, args, result: noise.append((result != 0) * 2.0)))
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        if step == 0:
            said = {"calls": calls, "loss": arrays(loss), "gradients": gradients(model)}
            for handle in handles:
                handle.remove()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
    print(json.dumps(said | {"exact": doubled(start, noise[0], x, y)}))  # in steps that nobody asks for
    return model


def recurrent() -> nn.Module:
    """With the LSTM of a CPU. In float64 another operation adds up its gates, in another order."""
    return seen(recurrent=True)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))


def train(model: nn.Module, forward: object = None, parts: int = 1, late: bool = False) -> nn.Module:
    optimizer = None if late else torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        for _ in range(parts):
            loss = (forward or model)(torch.randn(3, 4)).square().mean()
            loss.backward()
        print(json.dumps(gradients(model)))
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.step()
        optimizer.zero_grad()
    return model


def accumulated() -> nn.Module:
    return train(network(), parts=2)


def checkpointed() -> nn.Module:
    model = network()
    return train(model, lambda x: model[3](checkpoint(model[:3], x, use_reentrant=False)))


def compiled() -> nn.Module:
    model = network()
    return train(model, torch.compile(model, backend="eager"))


def late() -> nn.Module:
    """The optimizer is made after the first backward pass."""
    return train(network(), late=True)


def one_address() -> nn.Module:
    """The second training's optimizer is where the first one's was, as far as the observer knows, if there is one."""
    models = [network(), network()]
    watcher = next((module for name, module in sys.modules.items() if name.endswith("observe.pytorch")), None)
    for model in models:
        model(torch.randn(3, 4)).square().mean().backward()
        print(json.dumps(gradients(model)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if watcher is not None and model is models[1]:
            known = watcher.observer.optimizers
            known[id(optimizer)] = list(known.values())[-1]
        optimizer.step()
    return models[-1]


def by_hand() -> nn.Module:
    model = network()
    for _ in range(STEPS):
        model(torch.randn(3, 4)).square().mean().backward()
        print(json.dumps(gradients(model)))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    return model


def two_models() -> nn.Module:
    """The first one's output goes into the second one, and each has an optimizer."""
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    second(first(torch.randn(3, 4))).mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    return nn.Sequential(first, second)


def without_doubles() -> nn.Module:
    """An operation that has no float64 form: what comes after it has none."""

    @torch.library.custom_op("own::halved", mutates_args=())
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    halved.register_autograd(lambda context, gradient: gradient / 2)
    model = network()
    return train(model, lambda x: model[3](halved(model[:3](x))))


SCENARIOS = {
    one.__name__: one
    for one in (
        seen,
        recurrent,
        accumulated,
        checkpointed,
        compiled,
        late,
        one_address,
        by_hand,
        two_models,
        without_doubles,
    )
}

if __name__ == "__main__":
    torch.manual_seed(0)
    models = [SCENARIOS[name]() for name in sys.argv[1:]]
    print(json.dumps([arrays(dict(model.state_dict())) for model in models]))
    print(sha(torch.get_rng_state().numpy()))
