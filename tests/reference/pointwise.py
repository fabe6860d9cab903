"""Reference: what is computed number by number."""

import math
from collections.abc import Sequence

import numpy as np

from reference.arithmetic import Array, exact_dot, exact_sum, f64, r32
from repro.portable.numbers import tables
from repro.portable.numbers.constants import NODE_BITS, STEP_BITS


def add(a: Array, b: Array) -> Array:
    """Of one shape."""
    return r32(f64(a) + f64(b))


def add_gradients(a: Array, b: Array, gradient: Array):
    return gradient, gradient


def relu(x: Array) -> Array:
    return np.where(x < 0, np.float32(0), x)


def relu_gradients(x: Array, gradient: Array):
    return (np.where(x > 0, gradient, np.float32(0)),)


def activation(x: Array, name: str) -> Array:
    """x G(x), or G(x) itself for sigmoid; for tanh, both x are within the table. NaN of NaN."""
    factor = _on_line(x, name, derivative=False)
    end = tables.reach(name)
    inside = np.clip(x, -end, end) if name == "tanh" else x
    return np.where(np.isnan(x), x, r32(factor if name == "sigmoid" else f64(inside) * factor))


def activation_gradients(x: Array, gradient: Array, name: str):
    return (np.where(np.isnan(x), x, r32(f64(gradient) * _on_line(x, name, derivative=True))),)


def _on_line(x: Array, name: str, derivative: bool) -> Array:
    """G or the derivative, at the multiple of 2^-20 nearest to x: from the node below it up the line, exactly."""
    nodes, slopes = tables.activation(name, derivative)
    end = tables.reach(name)
    inside = f64(np.clip(np.where(np.isnan(x), 0, x), -end, end))
    steps = np.rint(inside * 2.0**STEP_BITS).astype(np.int64) + end * 2**STEP_BITS
    node, rest = np.divmod(steps, 2 ** (STEP_BITS - NODE_BITS))
    return nodes[node] + slopes[node] * rest


def affine(x: Array, scale: Array, shift: Array | None) -> Array:
    """x scale + shift: [..., C], [C], [C]."""
    y = f64(x) * f64(scale)
    return r32(y if shift is None else y + f64(shift))


def affine_gradients(x: Array, scale: Array, shift: Array | None, gradient: Array):
    rows, values = gradient.reshape(-1, len(scale)), x.reshape(-1, len(scale))
    return (
        r32(f64(gradient) * f64(scale)),
        r32(exact_dot(rows, values, (0,)))[0],
        None if shift is None else r32(exact_sum(rows, (0,)))[0],
    )


def rotate(x: Array, base: float, sign: float = 1.0) -> Array:
    """x [..., T, D]: at position n, the pair (x_i, x_(i + D/2)) is turned by the angle n base^(-2 i / D)."""
    cos, sin = (f64(table) for table in tables.rotations(x.shape[-2], x.shape[-1], base))
    a, b = np.split(f64(x), 2, -1)
    return np.concatenate((r32(a * cos - b * (sign * sin)), r32(b * cos + a * (sign * sin))), -1)


def rotate_gradients(x: Array, gradient: Array, base: float):
    return (rotate(gradient, base, -1.0),)


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10, four words of 32 bits from four and two: J. Salmon et al., Parallel random numbers, SC 2011."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (second >> 32) ^ b ^ k, second % 2**32, (first >> 32) ^ d ^ m, first % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return a, b, c, d


def keep(key: int, step: int, shape: tuple[int, ...], rate: float) -> Array:
    """The mask of numbers that dropout keeps: word i decides on number i, and four words have one counter."""
    size = math.prod(shape)
    words: list[int] = []
    for block in range((size + 3) // 4):
        words += philox((block % 2**32, block >> 32, step, 0), (key % 2**32, key >> 32))
    return np.array(words[:size], np.int64).reshape(shape) >= round(rate * 2**32)


def dropout(x: Array, key: Array, step: Array, rate: float, rows: bool) -> Array:
    """x times 1 / (1 - rate), a float32 number. With `rows`, a sample keeps or loses a whole channel."""
    shape = (len(x), *(1,) * (x.ndim - 2), x.shape[-1]) if rows else x.shape
    held = keep(int(key), int(step), shape, rate)
    return np.where(held, r32(f64(x) * float(np.float32(1 / (1 - rate)))), np.float32(0))


def dropout_gradients(x: Array, key: Array, step: Array, gradient: Array, rate: float, rows: bool):
    return dropout(gradient, key, step, rate, rows), None, None
