"""Sums and products of float64 under the mode, against exact fractions.

    python mode_doubles.py

Prints JSON: by name the largest error, in units of 2^-53 of the group's largest sum of magnitudes, and a SHA-256 of all
bits for one thread and for two.
"""

import hashlib
import json
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

import repro.portable.pytorch as portable

ROWS, TERMS, COLUMNS = 3, 700, 4


def filled(shape: tuple[int, ...], seed: int) -> Tensor:
    """Of magnitudes from 2^-40 to 2^40, with groups that nearly cancel."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * 2.0 ** random.integers(-40, 40, shape)
    x.flat[1::2] = -x.flat[0 : 2 * (x.size // 2) : 2] * (1 + 1e-9)
    return torch.from_numpy(x)


A, B = filled((ROWS, TERMS), 0), filled((TERMS, COLUMNS), 1)


def exact(x: Tensor) -> np.ndarray:
    return np.array([Fraction(each) for each in x.flatten().tolist()], dtype=object).reshape(x.shape)


def computed() -> dict[str, Tensor]:
    return {"product": A @ B, "sum": A.sum(1), "scan": A.cumsum(1), "squares": torch.linalg.vector_norm(A, dim=1)}


def errors(found: dict[str, Tensor]) -> dict[str, float]:
    a, b = exact(A), exact(B)
    largest = np.abs(a).max(1)
    products = largest[:, None] * np.abs(b).max(0) * TERMS
    sums = np.array([row.sum() for row in a])
    scans = np.stack([np.add.accumulate(row) for row in a])
    roots = exact(found["squares"])
    return {
        "product": worst(exact(found["product"]) - a @ b, products),
        "sum": worst(exact(found["sum"]) - sums, largest),
        "scan": worst(exact(found["scan"]) - scans, largest[:, None] * np.arange(1, TERMS + 1)),
        "squares": worst(roots * roots - np.array([(row * row).sum() for row in a]), roots * roots * 2),
    }


def worst(error: np.ndarray, unit: np.ndarray) -> float:
    return float(max(np.abs(error / unit).flat) * 2**53)


def digest(found: dict[str, Tensor]) -> str:
    return hashlib.sha256(b"".join(each.numpy().tobytes() for each in found.values())).hexdigest()


with portable.enable():
    answer = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found = computed()
        answer[f"{threads} threads"] = digest(found)
print(json.dumps(answer | {"errors": errors(found)}))
