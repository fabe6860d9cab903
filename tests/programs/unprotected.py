"""Code that the rules forbid, and its protected form.

Over a backend, `xp`.

Every function takes float64 arrays [N, C], b positive, and gives one. NumPy says what the right one is.
"""

import importlib

from repro.portable.definitions import grids
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import tables

C = 1.5 * 2.0**52
LIBRARIES = {"own": "numpy", "pytorch": "torch", "jax": "jax.numpy", "tensorflow": "tensorflow"}


def library(xp: Backend):
    """The framework's own functions."""
    framework = xp.__module__.split(".")[-1]
    return importlib.import_module(LIBRARIES[framework])


class NumPy:
    """As much of a backend: one operation at a time, as it is written."""

    __module__ = "own"

    def __getattr__(self, name):
        import numpy as np

        import reference

        own = {
            "f64": reference.f64,
            "f32": lambda x: x.astype(np.float32),
            "r32": reference.r32,
            "sum": lambda x, axes: x.sum(axes, keepdims=True),
            "maximum_of": lambda x: x.max(-1, keepdims=True),
        }
        return own.get(name) or getattr(np, name)


def conversion(xp: Backend, a, b, c):
    return xp.maximum_of(xp.f64(xp.f32(a * 0.3)))


def conversion_protected(xp: Backend, a, b, c):
    return xp.maximum_of(xp.f64(xp.r32(a * 0.3)))


def reciprocal_root(xp: Backend, a, b, c):
    return 1.0 / xp.sqrt(b)


def reciprocal_root_protected(xp: Backend, a, b, c):
    return 1.0 / xp.f64(xp.r32(xp.sqrt(b)))


def over_root(xp: Backend, a, b, c):
    return a / xp.sqrt(b)


def over_root_protected(xp: Backend, a, b, c):
    return a / xp.f64(xp.r32(xp.sqrt(b)))


def fused(xp: Backend, a, b, c):
    return a * b + c


def fused_protected(xp: Backend, a, b, c):
    return xp.f64(xp.r32(a)) * xp.f64(xp.r32(b)) + c


def broadcast(xp: Backend, a, b, c):
    return a / b[:, :1]


def broadcast_protected(xp: Backend, a, b, c):
    return a * (1.0 / b[:, :1])


def constant(xp: Backend, a, b, c):
    return a / 3.0


def constant_protected(xp: Backend, a, b, c):
    return a * (1.0 / 3.0)


def two_constants(xp: Backend, a, b, c):
    return a * 0.3 * 0.7


def two_constants_protected(xp: Backend, a, b, c):
    return xp.f64(xp.r32(a * 0.3)) * 0.7


def three_factors(xp: Backend, a, b, c):
    return a * b * (1.0 - c) * 2.0**40


def three_factors_protected(xp: Backend, a, b, c):
    return xp.where(a == a, a * b, 0.0) * (1.0 - c) * 2.0**40


def two_shifts(xp: Backend, a, b, c):
    return a + 0.3 + 0.7


def two_shifts_protected(xp: Backend, a, b, c):
    return xp.f64(xp.r32(a + 0.3)) + 0.7


def to_and_fro(xp: Backend, a, b, c):
    return (a + C) - C


def to_and_fro_protected(xp: Backend, a, b, c):
    return xp.rint(a)


def decays(xp: Backend, a, b, c):
    """A moving average whose constants are not float32 numbers."""
    return xp.f64(xp.r32(a)) * 0.9 + xp.f64(xp.r32(b)) * 0.1


def decays_protected(xp: Backend, a, b, c):
    return xp.f64(xp.r32(a)) * 0.8999999761581421 + xp.f64(xp.r32(b)) * 0.10000000149011612


def rest(xp: Backend, a, b, c):
    """(1 - m) old + m new, for m = 0.001 in float32: 1 - m has 33 bits."""
    return xp.f64(xp.r32(a)) * (1.0 - 0.0010000000474974513) + xp.f64(xp.r32(b)) * 0.0010000000474974513


def rest_protected(xp: Backend, a, b, c):
    return xp.f64(xp.r32(a)) * 0.9990000128746033 + xp.f64(xp.r32(b)) * 0.0010000000474974513


def root(xp: Backend, a, b, c):
    return library(xp).sqrt(b)


def root_protected(xp: Backend, a, b, c):
    return xp.sqrt(b)


def exponential(xp: Backend, a, b, c):
    return library(xp).exp(a)


def quotient_protected(xp: Backend, a, b, c):
    """As in Adam: no root alone below, so nobody takes its reciprocal."""
    return a * 0.3 / (xp.sqrt(b * 0.7) + 1e-8)


# --- what depends on an order: a itself, and with its rows or columns in another one ---------------------------------


def total(xp: Backend, a, b, c):
    return xp.sum(xp.f32(a), (0,))


def total_protected(xp: Backend, a, b, c):
    return grids.exact_sum(xp, xp.f32(a), (0,))


def product(xp: Backend, a, b, c):
    """Of numbers, not of integers."""
    return xp.matmul(xp.transpose(xp.f32(a)), xp.f32(a))


def product_protected(xp: Backend, a, b, c):
    q, _ = grids.quantize(xp, xp.f32(a), (0, 1))
    return grids.product(xp, xp.transpose(q), q)


def scattered(xp: Backend, a, b, c):
    return xp.add_at(xp.integer(a[:, 0] * 0.0), xp.f32(a), 1)


def scattered_protected(xp: Backend, a, b, c):
    q, _ = grids.quantize(xp, xp.f32(a), (0, 1), 24)
    return xp.add_at(xp.integer(a[:, 0] * 0.0), q, 1)


def place_of_nan(xp: Backend, a, b, c):
    """An integer of NaN may be any."""
    nodes, _ = xp.tables(a, tables.activation, "tanh", False)
    return xp.take(nodes, xp.integer(xp.rint(a * 2.0**10)) + 16 * 2**10)


def place_of_nan_protected(xp: Backend, a, b, c):
    nodes, _ = xp.tables(a, tables.activation, "tanh", False)
    result = xp.take(nodes, xp.integer(xp.rint(xp.where(a != a, 0.0, a) * 2.0**10)) + 16 * 2**10)
    return xp.where(a != a, xp.nan, result)
