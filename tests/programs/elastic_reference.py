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


def equal(samples: int, micro_batches: int) -> list[bool]:
    """Whether the gradients of the weight and of the bias are those of the specification."""
    torch.manual_seed(5)
    layer = nn.Linear(24, 10)
    # Places differ between samples, and between micro-batches.
    sizes = torch.exp2(torch.randint(-20, 5, (samples, 1)).float())
    x, g = torch.randn(samples, 24), torch.randn(samples, 10) * sizes
    for some, gradient in zip(x.chunk(micro_batches), g.chunk(micro_batches), strict=True):
        layer(some).backward(gradient)
    q, p = grid(x.numpy(), (1,))
    weight = r32(rounded(g.double().numpy() * p, 14).T @ q.astype(np.float64) * 2.0**-13)
    bias = r32(rounded(g.double().numpy(), 25).sum(0))
    pairs = (layer.weight.grad.numpy(), weight), (layer.bias.grad.numpy(), bias)
    return [bool((first == second).all()) for first, second in pairs]


if __name__ == "__main__":
    portable.enable(elastic=True)
    print(
        json.dumps([equal(samples, micro_batches) for samples, micro_batches in ((32, 4), (32, 1), (128, 8), (96, 1))])
    )
