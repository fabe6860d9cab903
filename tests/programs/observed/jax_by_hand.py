"""Trainings with JAX whose updates are written by hand, one per scenario.

Each prints its name, its number of steps, and the hashes of its last weights, as far as a step shows them.
"""

import dataclasses
import functools
import inspect
import re
import sys
from typing import Any

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


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Carried:
    """A result of a step."""

    weights: dict
    key: jax.Array


class Model:
    """One whose step is a method, and carries a key on."""

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, weights: dict, key: jax.Array) -> Carried:
        key, drawn = jax.random.split(key)
        return Carried(jax.tree.map(lambda w: w + jax.random.normal(drawn), weights), key)


@jax.jit
def normalize(x: jax.Array) -> jax.Array:
    return x / x.sum()


@jax.jit
def augment(x: jax.Array, y: jax.Array) -> tuple:
    return x * 2, y * 2


@jax.jit
def predict(weights: dict, x: jax.Array) -> jax.Array:
    return x @ weights["w"]


def train_by_update(_: str = "") -> None:
    result = weights()
    for step in range(COUNT):
        predict(result, normalize(x + step))
        _, result = update(result, x + step, y, 0.1 / (step + 1))
    report("update", COUNT, result)


def train_by_gradients(_: str = "") -> None:
    result = weights()
    for step in range(COUNT):
        result = jax.tree.map(lambda w, g: w - 0.1 * g, result, gradients_of(result, x + step, y))
        predict(result, x)
    report("gradients", COUNT, {name: np.zeros(0) for name in result})


def train_by_method(_: str = "") -> None:
    result, key, model = weights(), jax.random.key(0), Model()
    for _ in range(COUNT):
        carried = model.step(result, key)
        result, key = carried.weights, carried.key
    report("method", COUNT, result)


def train_with_state(_: str = "") -> None:
    """As with Haiku: state beside the weights, a momentum that comes first, and a prediction that is like the batch."""

    def loss(weights: dict, state: dict, x: jax.Array) -> tuple:
        again = x * weights["w"] + weights["b"]
        norm = {"mean": state["norm"]["mean"] * 0.9 + x.mean(0), "counter": state["norm"]["counter"] + 1}
        return (again**2).mean(), ({"norm": norm}, again)

    @jax.jit
    def step(momentum: dict, weights: dict, state: dict, key: jax.Array, x: jax.Array) -> tuple:
        gradients, (state, again) = jax.grad(loss, has_aux=True)(weights, state, x)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return again, {"all": (jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum), momentum, state)}

    result, momentum = weights(), jax.tree.map(jnp.zeros_like, weights())
    state = {"norm": {"mean": jnp.zeros(4), "counter": jnp.zeros((), jnp.int32)}}
    for count in range(COUNT):
        _, carried = step(momentum, result, state, jax.random.PRNGKey(count), augment(x + count, y + count)[0])
        result, momentum, state = carried["all"]
    report("state", COUNT, result)


def train_nnx(_: str = "") -> None:
    """A module that a function compiled by NNX changes in place; another one only looks at it."""
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.dense, self.norm = nnx.Linear(4, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.dropout(self.norm(self.dense(x)))

    @nnx.jit
    def step(network: Network, x: jax.Array, rate: float) -> None:
        gradients = nnx.grad(lambda network: (network(x) ** 2).mean())(network)
        trained = nnx.state(network, nnx.Param)
        nnx.update(network, jax.tree.map(lambda w, g: w - rate * g, trained, gradients))

    @nnx.jit
    def evaluate(network: Network, x: jax.Array) -> jax.Array:
        return network(x)

    network = Network(nnx.Rngs(0))
    for count in range(COUNT):
        evaluate(network, x)
        step(network, x + count, 0.1)
    report("nnx", COUNT, {"kernel": np.asarray(network.dense.kernel[...])})


def train_halved(_: str = "") -> None:
    """A weight is halved before each step."""
    result = weights()
    for step in range(COUNT):
        result["w"] = result["w"] / 2
        _, result = update(result, x + step, y, 0.1)
    report("halved", COUNT, result)


def train_halved_nnx(_: str = "") -> None:
    """A Param is halved before each step."""
    from flax import nnx

    @nnx.jit
    def step(network: nnx.Linear, x: jax.Array) -> None:
        gradients = nnx.grad(lambda network: ((network(x) - 1) ** 2).mean())(network)
        nnx.update(network, jax.tree.map(lambda w, g: w - 0.1 * g, nnx.state(network, nnx.Param), gradients))

    network = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    for _ in range(COUNT):
        network.kernel[...] = network.kernel[...] / 2
        step(network, x)
    report("halved nnx", COUNT, {"kernel": np.asarray(network.kernel[...])})


def original(weights: dict, x: jax.Array) -> dict:
    """A step, its trace printed: each is made once."""
    print("traced", flush=True)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(lambda w: loss(w, x, y))(weights))


def instructions(compiled: Any) -> list[str]:
    """The instructions that XLA made, without the places in files."""
    lines = [re.sub(r", metadata=\{.*?\}", "", line) for line in compiled.as_text().splitlines()]
    return [line for line in lines if " = " in line]


def show_what_is_compiled() -> None:
    """A function is traced once, named and compiled as JAX does."""
    result = weights()
    for _ in range(3):
        result = jax.jit(original)(result, x)
    kinds = [original, functools.partial(original), jax.value_and_grad(lambda w, x: loss(w, x, y)), lambda w, _: w["b"]]
    for lowered in [jax.jit(function).lower(result, x) for function in kinds]:
        print(lowered.as_text(), instructions(lowered.compile()))
    print(jax.jit(original).__name__, jax.jit(original).__wrapped__ is original, inspect.signature(jax.jit(original)))


SCENARIOS = {
    "update": train_by_update,
    "gradients": train_by_gradients,
    "method": train_by_method,
    "state": train_with_state,
    "nnx": train_nnx,
}
HALVED = {"halved": train_halved, "halved nnx": train_halved_nnx}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        HALVED[name]()
    if not sys.argv[1:]:
        for train in SCENARIOS.values():
            train()
        show_what_is_compiled()
