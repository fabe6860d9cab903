"""Trainings with JAX whose updates are written by hand, one per scenario.

Each prints its name, its number of steps, and the hashes of its last weights, as far as a step shows them.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from hashes import report

COUNT = 5
x, y = np.ones((8, 4), np.float32), np.arange(8, dtype=np.float32)


def weights() -> dict[str, jax.Array]:
    return {"w": jnp.full(4, 0.5), "b": jnp.zeros(())}


def loss(weights: dict, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((x @ weights["w"] + weights["b"] - y) ** 2).mean()


@functools.partial(jax.jit, donate_argnames=("weights",))
def update(weights: dict, x: jax.Array, y: jax.Array, rate: float) -> tuple:
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    return value, jax.tree.map(lambda w, g: w - rate * g, weights, gradients)


gradients_of = jax.jit(jax.grad(loss))


class Model:
    """One whose step is a method, and carries a key on."""

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, weights: dict, key: jax.Array) -> tuple:
        key, drawn = jax.random.split(key)
        return jax.tree.map(lambda w: w + jax.random.normal(drawn), weights), key


@jax.jit
def normalize(x: jax.Array) -> jax.Array:
    return x / x.sum()


@jax.jit
def predict(weights: dict, x: jax.Array) -> jax.Array:
    return x @ weights["w"]


def train_by_update(_: str = "") -> None:
    found = weights()
    for step in range(COUNT):
        predict(found, normalize(x + step))
        _, found = update(found, x + step, y, 0.1 / (step + 1))
    report("update", COUNT, found)


def train_by_gradients(_: str = "") -> None:
    found = weights()
    for step in range(COUNT):
        found = jax.tree.map(lambda w, g: w - 0.1 * g, found, gradients_of(found, x + step, y))
        predict(found, x)
    report("gradients", COUNT, {name: np.zeros(0) for name in found})


def train_by_method(_: str = "") -> None:
    found, key, model = weights(), jax.random.key(0), Model()
    for _ in range(COUNT):
        found, key = model.step(found, key)
    report("method", COUNT, found)


SCENARIOS = {"update": train_by_update, "gradients": train_by_gradients, "method": train_by_method}

if __name__ == "__main__":
    for train in SCENARIOS.values():
        train()
