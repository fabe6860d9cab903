"""Small networks of arrays alone, and their descent."""

from typing import Any

import jax
from jax import Array, nn
from jax import numpy as jnp
from jax import random as jr

from evidence.coverage.jax_training import Training, integers, normal

Params = list[tuple[Array, Array]]


def batches() -> list[Any]:
    return [(normal(16, 8, key=key), integers(4, 16, key=key)) for key in range(2)]


def initial(dtype: Any = jnp.float32, sizes: tuple[int, ...] = (8, 16, 4), key: int = 0) -> Params:
    keys = jr.split(jr.key(key), len(sizes))
    made = nn.initializers.glorot_normal(dtype=dtype)
    return [(made(key, (m, n)), jnp.zeros(n, dtype)) for key, m, n in zip(keys, sizes, sizes[1:], strict=False)]


def forward(params: Params, x: Array) -> Array:
    *hidden, (last, bias) = params
    for weight, shift in hidden:
        x = jnp.tanh(x @ weight + shift)
    return x @ last + bias


def loss_of(params: Params, batch: Any) -> Array:
    x, y = batch
    return -jnp.take_along_axis(nn.log_softmax(forward(params, x)), y[:, None], 1).mean()


def descended(params: Any, gradients: Any, rate: float = 0.1) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def descent(loss: Any, params: Any, given: Any = None, **options: Any) -> Training:
    """Plain steps down the gradient."""

    def step(params: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        return descended(params, gradients), value

    return Training(params, step, batches() if given is None else given, **options)
