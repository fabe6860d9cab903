"""Networks in PyTorch whose steps `benchmarks.mode` times."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

import repro.portable.pytorch as portable
from benchmarks import mode


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.inner(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        read = scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.outer(read.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Of a transformer."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """GPT-2 of four layers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(1024, 256), nn.Embedding(128, 256)
        self.layers = nn.Sequential(*(Layer(256, 4, causal=True) for _ in range(4)), nn.LayerNorm(256))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.layers(self.tokens(tokens) + self.places(torch.arange(tokens.shape[1])))
        return (x @ self.tokens.weight.T).flatten(0, 1)


class ViT(nn.Module):
    """ViT-Tiny: 12 layers of 192, for images of 224 x 224."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.places = nn.Parameter(torch.randn(196, 192) / 50)
        self.layers = nn.Sequential(*(Layer(192, 3, causal=False) for _ in range(12)), nn.LayerNorm(192))
        self.last = nn.Linear(192, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(self.patches(x).flatten(2).transpose(1, 2) + self.places).mean(1))


class Block(nn.Module):
    """Of a ResNet."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(*conv(inner, outer, 3, stride), nn.ReLU(), *conv(outer, outer, 3))
        self.beside = nn.Identity() if inner == outer else nn.Sequential(*conv(inner, outer, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.beside(x))


def conv(inner: int, outer: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inner, outer, size, stride, size // 2, bias=False), nn.BatchNorm2d(outer)


def resnet() -> nn.Module:
    """K. He et al., Deep residual learning for image recognition, 2016."""
    widths = 64, 64, 128, 256, 512
    blocks = []
    for stage, (inner, outer) in enumerate(pairwise(widths)):
        blocks += [Block(inner, outer, 2 if stage else 1), Block(outer, outer, 1)]
    first = *conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def lenet() -> nn.Module:
    """The reference trainers' network."""
    parts = nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU()
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


class LSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.inner(x)[0][:, -1])


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def images(*shape: int) -> tuple[Tensor, Tensor]:
    return torch.randn(shape), torch.arange(shape[0]) % 10


def tokens() -> tuple[Tensor, Tensor]:
    given = torch.arange(8 * 129).view(8, 129) * 7919 % 1024
    return given[:, :-1], given[:, 1:].flatten()


sgd = partial(torch.optim.SGD, lr=0.01, momentum=0.9)
adam = partial(torch.optim.AdamW, lr=1e-3)


def training(
    make: Callable[[], nn.Module],
    batch: Callable[[], tuple[Tensor, Tensor]],
    choose: Callable[..., torch.optim.Optimizer],
) -> mode.Step:
    """A step of a new network."""
    torch.manual_seed(0)
    network = make()
    optimizer = choose(network.parameters())
    x, y = batch()

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(network(x), y).backward()
        optimizer.step()

    return step


NETWORKS: dict[str, Callable[[], mode.Step]] = {
    "ResNet-18": partial(training, resnet, partial(images, 32, 3, 64, 64), sgd),
    "GPT-2": partial(training, GPT, tokens, adam),
    "ViT-Tiny": partial(training, ViT, partial(images, 8, 3, 224, 224), adam),
    "LeNet": partial(training, lenet, partial(images, 64, 1, 28, 28), sgd),
    "LSTM": partial(training, LSTM, partial(images, 16, 32, 32), adam),
    "small layers": partial(training, small, partial(images, 32, 64), adam),
}


if __name__ == "__main__":
    mode.measure(NETWORKS, portable.enable)
