"""Gradients of a dense layer under `enable(elastic=True)`, in micro-batches, and by the specification at once, in NumPy."""

import json

import numpy as np
import torch
from torch import nn

import repro.portable.pytorch as portable
from reference.arithmetic import grid, r32


def rounded(x: np.ndarray, width: int) -> np.ndarray:
    """float64 numbers as multiples of the unit of their column."""
    _, exponent = np.frexp(np.abs(x).max(0))
    unit = 2.0 ** (width * (np.floor(np.maximum(exponent, -100) / width) - 1))
    return np.rint(x / unit) * unit


def main() -> None:
    portable.enable(elastic=True)
    torch.manual_seed(5)
    layer = nn.Linear(24, 10)
    sizes = torch.exp2(
        torch.randint(-20, 5, (32, 1)).float()
    )  # places differ between samples, and between micro-batches
    x, g = torch.randn(32, 24), torch.randn(32, 10) * sizes
    for some, gradient in zip(x.chunk(4), g.chunk(4), strict=True):
        layer(some).backward(gradient)
    q, p = grid(x.numpy(), (1,))
    weight = r32(rounded(g.double().numpy() * p, 14).T @ q.astype(np.float64) * 2.0**-13)
    bias = r32(rounded(g.double().numpy(), 25).sum(0))
    pairs = (layer.weight.grad.numpy(), weight), (layer.bias.grad.numpy(), bias)
    print(json.dumps([bool((first == second).all()) for first, second in pairs]))


if __name__ == "__main__":
    main()
