"""Inputs of programs: by NumPy, the same in every environment."""

import numpy as np


def normal(*shape: int, key: int = 0) -> np.ndarray:
    """float32 numbers of -2 to 2, made without rounding."""
    bits = np.random.Philox(key=key).random_raw(int(np.prod(shape)))
    return ((bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-22) - np.float32(2.0)).reshape(shape)


def integers(below: int, *shape: int, key: int = 0) -> np.ndarray:
    """int32 numbers from 0."""
    bits = np.random.Philox(key=key).random_raw(int(np.prod(shape)))
    return (bits % np.uint64(below)).astype(np.int32).reshape(shape)


def images(*shape: int, classes: int = 10) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two batches of images [N, H, W, C] with labels [N]."""
    return [(normal(*shape, key=key), integers(classes, shape[0], key=key)) for key in range(2)]


def tokens(*shape: int, vocabulary: int = 31) -> list[np.ndarray]:
    """Two batches of tokens [N, T]."""
    return [integers(vocabulary, *shape, key=key) for key in range(2)]
