"""A language model of two blocks with rotary embeddings, in PyTorch.

python transformer_pytorch.py DATA.npz [--fault FAULT]
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("norm_epsilon", "softmax"))
options = parser.parse_args()
data = np.load(options.data)


class LayerNorm(nn.LayerNorm):
    """Adds epsilon to the standard deviation, not to the variance: the fault."""

    def forward(self, x: Tensor) -> Tensor:
        deviation = x.std(-1, correction=0, keepdim=True)
        return (x - x.mean(-1, keepdim=True)) / (deviation + self.eps) * self.weight + self.bias


Norm = LayerNorm if options.fault == "norm_epsilon" else nn.LayerNorm


def rotate(x: Tensor) -> Tensor:
    """Turns each query or key [batch, head, position, 8] by its position: numbers 0 and 4, 1 and 5, ... are a pair."""
    angles = torch.arange(16.0)[:, None] * 10000 ** (-torch.arange(4) / 4)
    first, second = x.chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = rotate(q) @ rotate(k).transpose(-1, -2) / 8**0.5
        scores = scores.masked_fill(torch.ones(16, 16).triu(1).bool(), float("-inf"))
        if options.fault == "softmax":
            scores = scores.bfloat16()
        return self.out((scores.softmax(-1).float() @ v).transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = Norm(32, eps=1e-3), Attention()
        self.norm2, self.mlp = Norm(32, eps=1e-3), MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 32)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm, self.head = Norm(32, eps=1e-3), nn.Linear(32, 40, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name})
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
tokens, masks = torch.from_numpy(data["tokens"]).long(), torch.from_numpy(data["mask"])
losses = []
for batch, mask in zip(tokens.split(4), masks.split(4), strict=True):
    each = functional.cross_entropy(network(batch[:, :-1]).transpose(1, 2), batch[:, 1:], reduction="none")
    loss = (each * mask).sum() / mask.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
