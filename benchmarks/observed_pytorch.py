"""Training loops in PyTorch whose time with the observer is measured by benchmarks/observing.py.

    .venv/pytorch/bin/python -m benchmarks.observed_pytorch gpt --threads=2 --steps=40

`mlp` is so small that Python takes most of a step, `resnet` is ResNet-18 on images of 32x32, `gpt` has 10.7 million weights.
The last line is JSON: seconds of the steps after the warm-up.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.observed import Loop, options


class Block(nn.Module):
    """Two convolutions of ResNet-18, and the shortcut around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet() -> nn.Module:
    blocks = [Block(i, o, s) for i, o, s in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))]
    blocks = [
        block for first in blocks for block in (first, Block(first.conv2.out_channels, first.conv2.out_channels, 1))
    ]
    stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


class GPT(nn.Module):
    """Six layers of 384 units and six heads, 64 tokens of 256 kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, 384), nn.Embedding(64, 384)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(384, 6, 4 * 384, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(6)
        )
        self.norm, self.head = nn.LayerNorm(384), nn.Linear(384, 256, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(64))

    def forward(self, text: Tensor) -> Tensor:
        x = self.tokens(text) + self.places(torch.arange(text.shape[1]))
        for layer in self.layers:
            x = layer(x, src_mask=self.mask, is_causal=True)
        return self.head(self.norm(x)).transpose(1, 2)


def training(name: str) -> tuple[nn.Module, torch.optim.Optimizer, TensorDataset, int]:
    """The model, its optimizer, its data and the size of a batch."""
    model: nn.Module
    if name == "gpt":
        model, text = GPT(), torch.randint(256, (512, 65))
        return model, torch.optim.AdamW(model.parameters(), 3e-4), TensorDataset(text[:, :-1], text[:, 1:]), 8
    if name == "resnet":
        model, images, size = resnet(), torch.randn(512, 3, 32, 32), 32
    else:
        model, images, size = mlp(), torch.randn(8192, 64), 64
    labels = torch.randint(10, (len(images),))
    return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), TensorDataset(images, labels), size


def main() -> None:
    name, threads, steps = options("mlp", "resnet", "gpt")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, optimizer, data, size = training(name)
    loop = Loop(steps)
    while True:
        for inputs, targets in DataLoader(data, size, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            if loop.is_over():
                return


if __name__ == "__main__":
    main()
