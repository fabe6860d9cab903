"""Small networks trained by portable numerics and by PyTorch's float32, five seeds each.

    .venv/pytorch/bin/python -m benchmarks.accuracy_pytorch /usr/share/datasets/fashion-mnist [NETWORK ...]

prints a row for each network: what it reaches on data that it was not trained on, mean and standard deviation over the
seeds. Both start from the same weights and see the same batches.
"""

import argparse
import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import repro.portable.pytorch as portable
from benchmarks import accuracy
from benchmarks.accuracy import BATCH, CONTEXT, SEEDS, STEPS


class Residual(nn.Module):
    """A basic block of ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.beside = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[1](self.second(functional.relu(self.norms[0](self.first(x)))))
        return functional.relu(y + (x if self.same else self.beside(x)))


def resnet18(width: int = 16) -> nn.Module:
    """ResNet-18 with a quarter of its width, for images of 28 x 28."""
    blocks: list[nn.Module] = [nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage in range(4):
        for block in range(2):
            outputs = width * 2**stage
            blocks.append(Residual(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def encoder(width: int, layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class VisionTransformer(nn.Module):
    def __init__(self, width: int = 64, layers: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.positions = nn.Parameter(torch.randn(49, width) * 0.02)
        self.encoder, self.classes = encoder(width, layers), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.encoder(self.patches(x).flatten(2).transpose(1, 2) + self.positions).mean(1))


class Rows(nn.Module):
    """An LSTM that reads an image row by row."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.lstm, self.classes = nn.LSTM(28, width, batch_first=True), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.lstm(x[:, 0])[0][:, -1])


class GPT(nn.Module):
    """A transformer over characters."""

    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.characters = nn.Embedding(128, width)
        nn.init.normal_(self.characters.weight, std=0.02)
        self.positions = nn.Parameter(torch.randn(CONTEXT, width) * 0.02)
        self.encoder, self.norm = encoder(width, layers), nn.LayerNorm(width)
        mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        x = self.encoder(self.characters(x) + self.positions, mask=self.mask, is_causal=True)
        return (self.norm(x) @ self.characters.weight.t()).flatten(0, 1)


@dataclass(frozen=True)
class Task:
    network: Callable[[], nn.Module]
    data: str
    rate: float


TASKS = {
    "ResNet-18": Task(resnet18, "images", 2e-3),
    "ViT": Task(VisionTransformer, "images", 1e-3),
    "LSTM": Task(Rows, "images", 3e-3),
    "GPT": Task(GPT, "text", 3e-3),
}


def tensors(data: str, batch: accuracy.Batch) -> tuple[Tensor, Tensor]:
    """Images as [N, 1, 28, 28]."""
    x, y = map(torch.from_numpy, batch)
    return x[:, None] if data == "images" else x, y.flatten()


def batches(task: Task, folder: Path, seed: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1000 + seed)

    def draw(high: int) -> np.ndarray:
        return torch.randint(high, (STEPS, BATCH), generator=generator).numpy()

    return [tensors(task.data, each) for each in accuracy.batches(task.data, folder, draw)]


def trained(task: Task, network: nn.Module, given: list[tuple[Tensor, Tensor]]) -> nn.Module:
    optimizer = torch.optim.AdamW(network.parameters(), lr=task.rate, foreach=False)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, task.rate, total_steps=STEPS)
    for x, y in given:
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.no_grad()
def reached(task: Task, network: nn.Module, folder: Path) -> float:
    """Percent of right classes, or bits for each character."""
    x, y = tensors(task.data, accuracy.test_data(task.data, folder))
    if task.data == "images":
        return 100 * (network(x).argmax(1) == y).float().mean().item()
    return functional.cross_entropy(network(x), y).item() / math.log(2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("network", nargs="*", default=list(TASKS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(accuracy.header("PyTorch"), flush=True)
    for name in options.network:
        task = TASKS[name]
        results: dict[str, list[float]] = {"float32": [], "portable": []}
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            network, given = task.network(), batches(task, options.folder, seed)
            modes: dict[str, Callable[[], AbstractContextManager]] = {
                "float32": nullcontext,
                "portable": portable.enable,
            }
            for kind, mode in modes.items():
                with mode():
                    results[kind].append(reached(task, trained(task, deepcopy(network).train(), given), options.folder))
            print(f"{name}, seed {seed}: {results['float32'][-1]:.3f} {results['portable'][-1]:.3f}", file=sys.stderr)
        print(accuracy.row(name, task.data, *results.values()), flush=True)


if __name__ == "__main__":
    main()
