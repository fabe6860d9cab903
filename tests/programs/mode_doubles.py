"""float64 under the mode: sums and products against exact fractions, layers against PyTorch.

    python mode_doubles.py

Prints JSON: by name the largest error of sums and products, in units of 2^-53 of the group's largest sum of magnitudes;
the largest difference of a layer or its gradient from PyTorch's own, relative to the largest number; and a SHA-256 of all
bits for one thread and for two.
"""

import hashlib
import json
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

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


def errors(results: dict[str, Tensor]) -> dict[str, float]:
    a, b = exact(A), exact(B)
    largest = np.abs(a).max(1)
    products = largest[:, None] * np.abs(b).max(0) * TERMS
    sums = np.array([row.sum() for row in a])
    scans = np.stack([np.add.accumulate(row) for row in a])
    roots = exact(results["squares"])
    return {
        "product": worst(exact(results["product"]) - a @ b, products),
        "sum": worst(exact(results["sum"]) - sums, largest),
        "scan": worst(exact(results["scan"]) - scans, largest[:, None] * np.arange(1, TERMS + 1)),
        "squares": worst(roots * roots - np.array([(row * row).sum() for row in a]), roots * roots * 2),
    }


def worst(error: np.ndarray, unit: np.ndarray) -> float:
    return float(max(np.abs(error / unit).flat) * 2**53)


def layers() -> dict[str, list[Tensor]]:
    """Layers and losses, each with its gradient."""
    x = B[:640].reshape(4, 8, 80).tanh()
    weight = torch.linspace(0.5, 2.0, 80, dtype=torch.float64)
    functions = {
        "layer_norm": lambda x: functional.layer_norm(x, (80,), weight, weight),
        "group_norm": lambda x: functional.group_norm(x, 4, weight[:8], weight[:8]),
        "batch_norm": lambda x: functional.batch_norm(x, None, None, weight[:8], weight[:8], training=True),
        "softmax": lambda x: functional.softmax(x, 1),
        "log_softmax": lambda x: functional.log_softmax(x, 2),
        "cross_entropy": lambda x: functional.cross_entropy(x, torch.arange(320).view(4, 80) % 8),
        "convolution": lambda x: functional.conv1d(x, x.detach()[:, :, :3]),
        "attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
    }
    results = {}
    for name, function in functions.items():
        given = x.clone().requires_grad_()
        y = function(given)
        (gradient,) = torch.autograd.grad((y * torch.arange(y.numel(), dtype=y.dtype).view(y.shape)).sum(), given)
        results[name] = [y.detach(), gradient]
    return results


def away(tensors: list[Tensor], right: list[Tensor]) -> float:
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(tensors, right, strict=True))


def digest(result: dict[str, Tensor], made: dict[str, list[Tensor]]) -> str:
    arrays = [*result.values(), *(each for results in made.values() for each in results)]
    return hashlib.sha256(b"".join(each.contiguous().numpy().tobytes() for each in arrays)).hexdigest()


own = layers()
with portable.enable():
    answer = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found, made = computed(), layers()
        answer[f"{threads} threads"] = digest(found, made)
print(json.dumps(answer | {"errors": errors(found), "away": {name: away(made[name], own[name]) for name in own}}))
