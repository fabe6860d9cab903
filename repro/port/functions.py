"""Activations: functions of single numbers, in float64."""

import math
from collections.abc import Callable

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu by erf": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "gelu by tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu by the sigmoid of 1.702 x": lambda x: x * _sigmoid(1.702 * x),
    "no function": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu up to 6": lambda x: np.clip(x, 0, 6),
    "leaky relu of 0.01": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky relu of 0.1": lambda x: np.where(x > 0, x, 0.1 * x),
    "leaky relu of 0.2": lambda x: np.where(x > 0, x, 0.2 * x),
    "leaky relu of 0.3": lambda x: np.where(x > 0, x, 0.3 * x),
    "silu": lambda x: x * _sigmoid(x),
    "hard silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "sigmoid": _sigmoid,
    "hard sigmoid of x / 6": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard sigmoid of x / 5": lambda x: np.clip(x / 5 + 0.5, 0, 1),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "softplus": lambda x: np.logaddexp(x, 0),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
}
"""Functions of single numbers, in float64; sources: the documentation of `torch.nn.functional`, `jax.nn` and `keras.activations`."""

BETWEEN = ("relu", "gelu by erf", "gelu by tanh", "silu", "tanh")
"""Functions that often stand before what differs, with no module of their own."""
