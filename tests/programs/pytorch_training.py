"""Training with the portable PyTorch library, for test_pytorch_library.py, in PyTorch's environment.

Prints what it found, as JSON.
"""

import copy
import hashlib
import io
import json
from typing import Any

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import optimizers
from repro.portable.library.pytorch import optim
from repro.portable.numbers import tables

CLOSE = 2e-3  # of the largest number: sums of products have 13 bits


class Block(nn.Module):
    """A container of one's own: its modules are replaced, its forward stays."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norms[0](x)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = x + self.attention(h, h, h, attn_mask=later, need_weights=False)[0]
        return x + self.dense(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.blocks = nn.Sequential(Block(32), Block(32))
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.tokens.weight  # shared

    def forward(self, index: Tensor) -> Tensor:
        places = torch.arange(index.shape[1]).expand(index.shape)
        return self.head(self.blocks(self.tokens(index) + self.positions(places))).movedim(-1, 1)


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding="same"),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2),
        nn.GroupNorm(4, 16),
        nn.SiLU(),
        nn.Dropout2d(0.1),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16 * 3 * 3, 10),
    )


def data(name: str, step: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(step)
    if name == "cnn":
        return torch.rand(32, 1, 28, 28), torch.randint(10, (32,))
    return torch.randint(50, (16, 64)), torch.randint(50, (16, 64))


def prepared(name: str, convert: bool = True) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = cnn() if name == "cnn" else Transformer()
    model = portable.convert(model, seed=5) if convert else model
    if name == "cnn":
        return model, optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    return model, optim.AdamW(model.parameters())


def trained(name: str, model: nn.Module, optimizer: Any, steps: range) -> str:
    for step in steps:
        inputs, labels = data(name, step)
        loss = portable.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def saved(*parts: Any) -> list[dict[str, Any]]:
    buffer = io.BytesIO()
    torch.save([part.state_dict() for part in parts], buffer)
    buffer.seek(0)
    return torch.load(buffer)


def training() -> object:
    results = {}
    for name in ("cnn", "transformer"):
        digests = []
        for threads in (1, 2, 2):
            torch.set_num_threads(threads)
            model, optimizer = prepared(name)
            digests.append(trained(name, model, optimizer, range(3)))
        model, optimizer = prepared(name)
        trained(name, model, optimizer, range(1))
        states = saved(model, optimizer)
        model, optimizer = prepared(name)
        model.load_state_dict(states[0])
        optimizer.load_state_dict(states[1])
        digests.append(trained(name, model, optimizer, range(1, 3)))
        results[name] = digests
    return results


def converting() -> object:
    """Weights, keys, mode and what is shared stay; results in evaluation are close."""
    results = {}
    for name in ("cnn", "transformer"):
        own, _ = prepared(name, convert=False)
        own.eval()
        before = copy.deepcopy(own.state_dict())
        twin = portable.convert(own)
        state = twin.state_dict()
        a, b = (model(data(name, 0)[0]) for model in (twin, own))
        results[name] = {
            "more": sorted(state.keys() - before.keys()),
            "same": all(torch.equal(before[key], state[key]) for key in before),
            "order": [key for key in state if key in before] == list(before),
            "close": bool((a - b).abs().max() <= CLOSE * b.abs().max()),
            "mode": [twin.training, portable.convert(own.train()).training],
            "back": str(twin.load_state_dict(before)),
            "kept": sorted({type(each).__module__ for each in twin.modules()}),
            "original": sorted({type(each).__module__.partition(".")[0] for each in own.modules()}),
        }
        results[name]["shared"] = name == "cnn" or twin.head.weight is twin.tokens.weight
    return results


# --- optimizers -------------------------------------------------------------------------------------------------------


def stepped(made: Any, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(shape).to(dtype)) for shape in ((5, 3), (7,), (2, 2, 2), ())]
    optimizer = made([{"params": weights[:2]}, {"params": weights[2:], "lr": 0.02}])
    for step in range(12):
        for place, weight in enumerate(weights):
            weight.grad = torch.randn(weight.shape).to(dtype) if (step + place) % 4 else None
        optimizer.step()
    return [weight.detach() for weight in weights]


def stepping() -> object:
    """Tests that weights together are what each is alone; and measures how far they are from PyTorch's own."""
    cases: dict[str, dict[str, Any]] = {
        "SGD": {"lr": 0.1},
        "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        "Adam": {"weight_decay": 0.1},
        "AdamW": {"betas": (0.8, 0.99)},
        "Adadelta": {"weight_decay": 0.1},
    }
    results = {}
    for name, options in cases.items():
        kind = name.partition(" ")[0]
        make = lambda weights: getattr(optim, kind)(weights, **options)  # noqa: E731, B023
        together = stepped(make)
        whole, optim.TOGETHER = optim.TOGETHER, 0
        alone = stepped(make)
        optim.TOGETHER = whole
        piece, optim.PIECE = optim.PIECE, 2
        cut = stepped(make)
        optim.PIECE = piece
        exact = stepped(lambda weights: getattr(torch.optim, kind)(weights, **options), torch.float64)  # noqa: B023
        results[name] = [
            all(map(torch.equal, together, alone)),
            all(map(torch.equal, together, cut)),
            max(float((a - b).abs().max()) for a, b in zip(together, exact, strict=True)) < 1e-5,
        ]
    weight, gradient = torch.randn(6), torch.randn(6)
    parameter = nn.Parameter(weight.clone())
    parameter.grad = gradient
    optim.AdamW([parameter], lr=0.1).step()
    betas = [tables.float32(beta) for beta in (0.9, 0.999)]
    rate, decay, corrections = tables.float32(0.1), tables.float32(0.01), tables.adam(*betas)[:, 0].tolist()
    zeros = torch.zeros(6), torch.zeros(6)
    constants = (corrections, rate, decay, *betas, 1e-8, True)
    expected = optimizers.adam(Backend, weight, gradient, *zeros, *constants)[0]
    results["of the definition"] = [torch.equal(parameter.detach(), expected)]
    weights = [nn.Parameter(torch.randn(50, 3)), nn.Parameter(torch.randn(7)), nn.Parameter(torch.randn(2))]
    for each in weights[:2]:
        each.grad = torch.randn(each.shape)
    before = torch.cat([each.grad.flatten() for each in weights[:2]])
    norm = optim.clip_grad_norm_(iter(weights), 1.0)
    after = torch.cat([each.grad.flatten() for each in weights[:2]])
    results["clip"] = [
        bool(abs(norm - before.norm()) < CLOSE * norm),
        torch.allclose(after, before / norm),
        norm.dim() == 0,
    ]
    return results


if __name__ == "__main__":
    parts = (training, converting, stepping)
    print(json.dumps({part.__name__: part() for part in parts}))
