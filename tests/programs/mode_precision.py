"""Products of the mode with both precisions, against the reference implementation.

    python mode_precision.py

Prints JSON: by precision and name of the array how many numbers have other bits, over matmul backends, with kernels from
the second call on.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import reference
import repro.portable.pytorch as portable
from repro.errors import UsageError
from repro.portable import kernels
from repro.portable.backends.pytorch import Backend

KINDS = ("normal", "outlier", "mixed", "tiny", "largest", "infinite", "nan")
SCALES = {"tiny": 2.0**-95, "largest": 2.0**125}
HOW: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
HIGHEST: dict[str, Callable[..., Any]] = {
    "matmul": reference.matmul_highest,
    "linear": reference.matmul_highest,
    "convolution": reference.convolution_highest,
    "gradients": reference.convolution_gradients_highest,
}
HIGH: dict[str, Callable[..., Any]] = {
    "matmul": reference.matmul,
    "linear": lambda a, b, plus: reference.linear(a, b.T, plus),
    "convolution": reference.convolution,
    "gradients": lambda x, w, g, *how: reference.convolution_gradients(x, w, None, g, *how)[:2],
}


def filled(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    if kind == "mixed":
        x *= 2.0 ** random.integers(-60, 60, shape)
    elif kind == "outlier":
        x.flat[::11] *= 1000
    elif kind in SCALES:
        x *= SCALES[kind]
    elif kind != "normal":
        x.flat[seed % x.size] = {"infinite": np.inf, "nan": np.nan}[kind]
    return x.astype(np.float32)


def last(x: np.ndarray) -> np.ndarray:
    """[B, C, H, W] -> [B, H, W, C]."""
    return x.transpose(0, 2, 3, 1)


def first(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 3, 1, 2)


def right(by: dict[str, Callable], a, b, many, more, plus, x, w, bias, g) -> dict[str, np.ndarray]:
    how = tuple(HOW.values())
    grad_x, grad_w = by["gradients"](last(x), last(w), last(g), *how)
    return {
        "mm": by["matmul"](a, b),
        "addmm": by["matmul"](a, b, plus),
        "bmm": by["matmul"](many, more),
        "linear": by["linear"](a, b, plus),
        "convolution": first(by["convolution"](last(x), last(w), bias, *how)),
        "images": first(grad_x),
        "kernel": first(grad_w),
    }


def computed(a, b, many, more, plus, x, w, bias, g) -> dict[str, Tensor]:
    x, w = x.requires_grad_(), w.requires_grad_()
    y = functional.conv2d(x, w, bias, **HOW)
    grad_x, grad_w = torch.autograd.grad(y, (x, w), g)
    return {
        "mm": a @ b,
        "addmm": torch.addmm(plus, a, b),
        "bmm": many @ more,
        "linear": functional.linear(a, b.t(), plus),
        "convolution": y.detach(),
        "images": grad_x,
        "kernel": grad_w,
    }


SHAPES = ((6, 40), (40, 5), (2, 6, 40), (2, 40, 5), (5,), (2, 4, 7, 8), (6, 2, 3, 2), (6,), (2, 6, 4, 6))

wrong: dict[str, dict[str, int]] = {}
for precision, by in (("high", HIGH), ("highest", HIGHEST)):
    found = wrong[precision] = {}
    for number, kind in enumerate(KINDS):
        arrays = [
            filled(shape, kind if place % 2 == 0 else "normal", number + place) for place, shape in enumerate(SHAPES)
        ]
        with np.errstate(all="ignore"):
            expected = right(by, *arrays)
        for engine in ("float64", *["int16"] * kernels.paired()):
            with portable.enable(precision=precision):
                Backend.engine = engine
                for _ in range(3):
                    for name, each in computed(*map(torch.from_numpy, arrays)).items():
                        differ = ~np.equal(each.numpy(), expected[name]) & ~(
                            np.isnan(each.numpy()) & np.isnan(expected[name])
                        )
                        found[name] = found.get(name, 0) + int(differ.sum())
try:
    portable.enable(precision="medium")
except UsageError as error:
    wrong["error"] = str(error)  # type: ignore[assignment]
print(json.dumps(wrong))
