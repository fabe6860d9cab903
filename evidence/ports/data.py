"""Write what the two programs of a pair share: the data, and the initial weights as a PyTorch checkpoint lays them out.

    python data.py FOLDER

FOLDER gets one file for each model, such as cnn.npz. A name with a dot, as `conv1.weight`, is a weight: float32, of
a convolution [out, in, height, width], of a dense layer [out, in]. Everything else is data, of three batches.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
STEPS = 3


def weight(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Draws weights float32 that keep the size of what they are multiplied with."""
    return (generator.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def near(generator: np.random.Generator, value: float, *shape: int) -> np.ndarray:
    """Draws numbers float32 near a value, so that no scale is 1 and no bias is 0."""
    return (value + 0.1 * generator.normal(size=shape)).astype(np.float32)


def norm(generator: np.random.Generator, name: str, size: int) -> Arrays:
    return {f"{name}.weight": near(generator, 1, size), f"{name}.bias": near(generator, 0, size)}


def dense(generator: np.random.Generator, name: str, inputs: int, outputs: int) -> Arrays:
    return {f"{name}.weight": weight(generator, outputs, inputs), f"{name}.bias": near(generator, 0, outputs)}


def cnn(generator: np.random.Generator) -> Arrays:
    return {
        "images": generator.integers(256, size=(STEPS * 8, 12, 12, 3), dtype=np.uint8),
        "labels": generator.integers(10, size=STEPS * 8, dtype=np.int32),
        "conv1.weight": weight(generator, 8, 3, 3, 3),
        **norm(generator, "norm1", 8),
        "conv2.weight": weight(generator, 16, 8, 3, 3),
        **norm(generator, "norm2", 16),
        **dense(generator, "dense", 16 * 6 * 6, 10),
    }


def mlp(generator: np.random.Generator) -> Arrays:
    rows = STEPS * 16
    return {
        "rows": generator.normal(size=(rows, 32)).astype(np.float32),
        "labels": generator.integers(10, size=rows, dtype=np.int32),
        "order": generator.permutation(rows),
        "keep": (generator.random((rows, 64)) < 0.75).astype(np.float32),
        **dense(generator, "dense1", 32, 64),
        **dense(generator, "dense2", 64, 64),
        **dense(generator, "dense3", 64, 10),
    }


def transformer(generator: np.random.Generator) -> Arrays:
    lengths = generator.integers(6, 17, size=(STEPS * 4, 1))
    arrays = {
        "tokens": generator.integers(40, size=(STEPS * 4, 17), dtype=np.int32),
        "mask": (np.arange(16) < lengths).astype(np.float32),
        "embedding.weight": near(generator, 0, 40, 32) * 10,
        **norm(generator, "norm", 32),
        "head.weight": weight(generator, 40, 32),
    }
    for block in ("blocks.0", "blocks.1"):
        arrays |= norm(generator, f"{block}.norm1", 32) | norm(generator, f"{block}.norm2", 32)
        arrays[f"{block}.attention.qkv.weight"] = weight(generator, 96, 32)
        arrays[f"{block}.attention.out.weight"] = weight(generator, 32, 32)
        arrays |= dense(generator, f"{block}.mlp.fc1", 32, 128) | dense(generator, f"{block}.mlp.fc2", 128, 32)
    return arrays


def lstm(generator: np.random.Generator) -> Arrays:
    """Four gates, as PyTorch has them: input, forget, cell, output. One bias; PyTorch's second is zero."""
    return {
        "series": generator.normal(size=(STEPS * 8, 10, 6)).astype(np.float32),
        "labels": generator.integers(3, size=STEPS * 8, dtype=np.int32),
        "lstm.weight_ih_l0": weight(generator, 4 * 12, 6),
        "lstm.weight_hh_l0": weight(generator, 4 * 12, 12),
        "lstm.bias_ih_l0": near(generator, 0, 4 * 12),
        **dense(generator, "dense", 12, 3),
    }


def resize(generator: np.random.Generator) -> Arrays:
    return {
        "images": generator.normal(size=(STEPS * 4, 6, 6, 3)).astype(np.float32),
        "targets": generator.normal(size=(STEPS * 4, 12, 12, 2)).astype(np.float32),
        "conv1.weight": weight(generator, 8, 3, 3, 3),
        "conv1.bias": near(generator, 0, 8),
        "conv2.weight": weight(generator, 2, 8, 1, 1),
        "conv2.bias": near(generator, 0, 2),
    }


MODELS: tuple[Callable[[np.random.Generator], Arrays], ...] = (cnn, mlp, transformer, lstm, resize)


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, model in enumerate(MODELS):
        np.savez(folder / f"{model.__name__}.npz", **model(np.random.default_rng(seed)))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
