"""The models of scores.py in PyTorch."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SIZE, HEADS = 32, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.attended, self.out = nn.Linear(SIZE, 3 * SIZE), nn.Linear(SIZE, SIZE)
        self.wide, self.narrow = nn.Linear(SIZE, 4 * SIZE), nn.Linear(4 * SIZE, SIZE)

    def forward(self, x: Tensor) -> Tensor:
        heads = (each.unflatten(2, (HEADS, -1)).transpose(1, 2) for each in self.attended(self.before(x)).chunk(3, -1))
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


class GPT(nn.Module):
    """Words, int64 [B, T] -> the log-likelihood of each but the first, float32 [B, T - 1]."""

    def __init__(self, words: int, longest: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, SIZE), nn.Embedding(longest, SIZE)
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(SIZE)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.blocks(self.words(x) + self.places(torch.arange(x.shape[1]))))
        logits = functional.linear(hidden[:, :-1], self.words.weight)
        return logits.log_softmax(-1).gather(-1, x[:, 1:, None])[..., 0]


class Residual(nn.Module):
    def __init__(self, channels: int, to: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, to, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(to, to, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(channels, to, 1, stride, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(to) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[1](self.second(self.norms[0](self.first(x)).relu()))
        return (y + self.norms[2](self.short(x))).relu()


def resnet() -> nn.Module:
    """Pictures, float32 [B, 3, H, W] -> logits, float32 [B, 10]."""
    blocks = Residual(3, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def models(words: int, longest: int, pictures: np.ndarray) -> list[Callable[[np.ndarray], np.ndarray]]:
    """The likelihoods of texts, and the logits of pictures; batch norm has the statistics of all pictures."""
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    gpt, residual = GPT(words, longest), resnet()
    residual(torch.from_numpy(pictures))
    return [partial(computed, model.eval()) for model in (gpt, residual)]


def computed(model: nn.Module, x: np.ndarray) -> np.ndarray:
    return model(torch.from_numpy(x)).numpy()
