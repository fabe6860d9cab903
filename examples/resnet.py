"""The training of resnet_pytorch.py, resnet_jax.py and resnet_tensorflow.py but the network: sizes, images, rates.

A small residual network on MNIST: a convolution, then a block in each of three stages, the second and third at half the
resolution of the one before; BatchNorm after every convolution; the mean over the image, and a dense layer.
"""

import os
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

import common
import numpy as np

from repro.portable import schedules
from repro.trainers.loop import data
from repro.trainers.loop.config import Data

CHANNELS, STRIDES, CLASSES = (16, 32, 64), (1, 2, 2), 10
EPSILON, KEPT = 1e-5, 0.9
"""Of BatchNorm; running averages keep so much of what they were."""
BATCH, STEPS = 32, 400
PEAK, WARMUP = 0.05, 40
"""The largest rate, and the steps until it is reached."""
MOMENTUM, DECAY, SMOOTHING = 0.9, 5e-4, 0.1
SLOTS: tuple[str, ...] = ("momentum",)

WORKSPACE = os.environ.get("WORKSPACE_PATH") or Path(__file__).parent.parent / "workspace"
PIXELS = np.array([(pixel / 255 - data.MEAN) / data.STD for pixel in range(256)], np.float64).astype(np.float32)
"""The input of the network for each value of a pixel."""


def _norms(name: str, channels: int, *kinds: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.{kind}": (channels,) for kind in kinds}


def _weights() -> dict[str, tuple[int, ...]]:
    results: dict[str, tuple[int, ...]] = {"conv.kernel": (3, 3, 1, CHANNELS[0])}
    results |= _norms("norm", CHANNELS[0], "scale", "bias")
    before = CHANNELS[0]
    for stage, (channels, stride) in enumerate(zip(CHANNELS, STRIDES, strict=True)):
        results[f"block{stage}.conv1.kernel"] = (3, 3, before, channels)
        results |= _norms(f"block{stage}.norm1", channels, "scale", "bias")
        results[f"block{stage}.conv2.kernel"] = (3, 3, channels, channels)
        results |= _norms(f"block{stage}.norm2", channels, "scale", "bias")
        if stride > 1:
            results[f"block{stage}.conv3.kernel"] = (1, 1, before, channels)
            results |= _norms(f"block{stage}.norm3", channels, "scale", "bias")
        before = channels
    return results | {"dense.kernel": (before, CLASSES), "dense.bias": (CLASSES,)}


WEIGHTS = _weights()
STATISTICS: dict[str, tuple[int, ...]] = {}
for _name, _shape in WEIGHTS.items():
    if _name.endswith("scale"):
        STATISTICS |= _norms(_name.removesuffix(".scale"), _shape[0], "mean", "var")


@cache
def _images() -> data.Dataset:
    return data.load(Data(), Path(WORKSPACE) / "data")


@lru_cache(1)
def _order(seed: int, epoch: int) -> np.ndarray:
    """In which an epoch visits the images: the stable order of random words."""
    return np.argsort(common.words(seed, common.BATCHES, epoch, len(_images().train_labels)), kind="stable")


def batch(seed: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Images, float32 [BATCH, 28, 28, 1], and labels, int32 [BATCH]."""
    images = _images()
    epoch, step = divmod(step, len(images.train_labels) // BATCH)
    chosen = _order(seed, epoch)[step * BATCH : (step + 1) * BATCH]
    return PIXELS[images.train_images[chosen]][..., None], images.train_labels[chosen]


def rate(step: int) -> float:
    """The learning rate of a step, counted from 0."""
    return schedules.cosine(step, STEPS, PEAK, warmup=WARMUP)


def evaluated(evaluate: Callable[[np.ndarray, np.ndarray], float]) -> str:
    """Describes the share of test images that are recognized."""
    images, labels = _images().test_images, _images().test_labels
    parts = [slice(start, start + 500) for start in range(0, len(labels), 500)]
    correct = sum(evaluate(PIXELS[images[part]][..., None], labels[part]) for part in parts)
    return f"test accuracy {100 * correct / len(labels):.2f} %"
