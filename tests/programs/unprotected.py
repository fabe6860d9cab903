"""What the definitions of portable numerics forbid, over a backend X, each beside what they have instead.

Every function takes float64 arrays [N, C], b positive, and gives one. NumPy says what the right one is.
"""

import importlib

from repro.portable import tables
from repro.portable.operations import grids

C = 1.5 * 2.0**52
LIBRARIES = {"own": "numpy", "pytorch": "torch", "jax": "jax.numpy", "tensorflow": "tensorflow"}


def library(X):
    """The framework's own functions."""
    framework = X.__module__.split(".")[-2]
    return importlib.import_module(LIBRARIES[framework])


class NumPy:
    """As much of a backend: one operation at a time, as it is written."""

    __module__ = "own.backend"

    def __getattr__(self, name):
        import numpy as np

        from repro.portable import reference

        own = {
            "f64": reference.f64,
            "f32": lambda x: x.astype(np.float32),
            "r32": reference.r32,
            "sum": lambda x, axes: x.sum(axes, keepdims=True),
            "maximum_of": lambda x: x.max(-1, keepdims=True),
        }
        return own.get(name) or getattr(np, name)


def conversion(X, a, b, c):
    return X.maximum_of(X.f64(X.f32(a * 0.3)))


def conversion_protected(X, a, b, c):
    return X.maximum_of(X.f64(X.r32(a * 0.3)))


def reciprocal_root(X, a, b, c):
    return 1.0 / X.sqrt(b)


def reciprocal_root_protected(X, a, b, c):
    return 1.0 / X.f64(X.r32(X.sqrt(b)))


def over_root(X, a, b, c):
    return a / X.sqrt(b)


def over_root_protected(X, a, b, c):
    return a / X.f64(X.r32(X.sqrt(b)))


def fused(X, a, b, c):
    return a * b + c


def fused_protected(X, a, b, c):
    return X.f64(X.r32(a)) * X.f64(X.r32(b)) + c


def broadcast(X, a, b, c):
    return a / b[:, :1]


def broadcast_protected(X, a, b, c):
    return a * (1.0 / b[:, :1])


def constant(X, a, b, c):
    return a / 3.0


def constant_protected(X, a, b, c):
    return a * (1.0 / 3.0)


def two_constants(X, a, b, c):
    return a * 0.3 * 0.7


def two_constants_protected(X, a, b, c):
    return X.f64(X.r32(a * 0.3)) * 0.7


def two_shifts(X, a, b, c):
    return a + 0.3 + 0.7


def two_shifts_protected(X, a, b, c):
    return X.f64(X.r32(a + 0.3)) + 0.7


def to_and_fro(X, a, b, c):
    return (a + C) - C


def to_and_fro_protected(X, a, b, c):
    return X.rint(a)


def decays(X, a, b, c):
    """A moving average whose constants are not float32 numbers."""
    return X.f64(X.r32(a)) * 0.9 + X.f64(X.r32(b)) * 0.1


def decays_protected(X, a, b, c):
    return X.f64(X.r32(a)) * 0.8999999761581421 + X.f64(X.r32(b)) * 0.10000000149011612


def rest(X, a, b, c):
    """(1 - m) old + m new, for m = 0.001 in float32: 1 - m has 33 bits."""
    return X.f64(X.r32(a)) * (1.0 - 0.0010000000474974513) + X.f64(X.r32(b)) * 0.0010000000474974513


def rest_protected(X, a, b, c):
    return X.f64(X.r32(a)) * 0.9990000128746033 + X.f64(X.r32(b)) * 0.0010000000474974513


def root(X, a, b, c):
    return library(X).sqrt(b)


def root_protected(X, a, b, c):
    return X.sqrt(b)


def exponential(X, a, b, c):
    return library(X).exp(a)


def quotient_protected(X, a, b, c):
    """As in Adam: no root alone below, so nobody takes its reciprocal."""
    return a * 0.3 / (X.sqrt(b * 0.7) + 1e-8)


# --- what depends on an order: a itself, and with its rows or columns in another one ---------------------------------


def total(X, a, b, c):
    return X.sum(X.f32(a), (0,))


def total_protected(X, a, b, c):
    return grids.exact_sum(X, X.f32(a), (0,))


def product(X, a, b, c):
    """Of numbers, not of integers."""
    return X.matmul(X.transpose(X.f32(a)), X.f32(a))


def product_protected(X, a, b, c):
    q, _ = grids.quantize(X, X.f32(a), (0, 1))
    return grids.product(X, X.transpose(q), q)


def scattered(X, a, b, c):
    return X.add_at(X.integer(a[:, 0] * 0.0), X.f32(a), 1)


def scattered_protected(X, a, b, c):
    q, _ = grids.quantize(X, X.f32(a), (0, 1), 24)
    return X.add_at(X.integer(a[:, 0] * 0.0), q, 1)


def place_of_nan(X, a, b, c):
    """An integer of NaN may be any."""
    nodes, _ = X.tables(a, tables.activation, "tanh", False)
    return X.take(nodes, X.integer(X.rint(a * 2.0**10)) + 16 * 2**10)


def place_of_nan_protected(X, a, b, c):
    nodes, _ = X.tables(a, tables.activation, "tanh", False)
    found = X.take(nodes, X.integer(X.rint(X.where(a != a, 0.0, a) * 2.0**10)) + 16 * 2**10)
    return X.where(a != a, X.nan, found)
