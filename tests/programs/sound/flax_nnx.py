"""A sound training in Flax NNX: dropout, BatchNorm and Adam, of which all variables are restored."""

import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Network(nnx.Module):
    """Two layers."""

    def __init__(self, rngs: nnx.Rngs):
        self.a, self.norm = nnx.Linear(8, 16, rngs=rngs), nnx.BatchNorm(16, momentum=0.9, rngs=rngs)
        self.drop, self.b = nnx.Dropout(0.2, rngs=rngs), nnx.Linear(16, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.b(self.drop(nnx.relu(self.norm(self.a(x)))))


random = np.random.default_rng(1)
inputs, labels = random.normal(size=(16, 16, 8)).astype("float32"), random.integers(0, 3, (16, 16))
model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param)


@nnx.jit
def train(model: Any, optimizer: Any, x: Any, y: Any) -> None:
    """Takes a step."""

    def loss(model: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    optimizer.update(model, nnx.grad(loss)(model))


def variables() -> list[Any]:
    """All variables, in one order."""
    owned = [node for part in (model, optimizer) for _, node in nnx.iter_graph(part) if isinstance(node, nnx.Variable)]
    return list({id(variable): variable for variable in owned}.values())


def numbers(variable: Any) -> Any:
    """The numbers of a variable, of a key its data."""
    value = variable.get_value()
    return np.asarray(jax.random.key_data(value) if str(value.dtype).startswith("key") else value)


path, done = os.path.join(sys.argv[1], "checkpoint.npz"), 0
if "--resume" in sys.argv:
    kept = np.load(path)
    done = int(kept["step"])
    for number, variable in enumerate(variables()):
        value = jnp.asarray(kept[f"v{number}"])
        is_key = str(variable.get_value().dtype).startswith("key")
        variable.set_value(jax.random.wrap_key_data(value) if is_key else value)
for step in range(done, 16):
    train(model, optimizer, inputs[step], labels[step])
    arrays: Any = {f"v{number}": numbers(variable) for number, variable in enumerate(variables())}
    np.savez(f"{sys.argv[1]}/new.npz", **arrays, step=step + 1)
    os.replace(f"{sys.argv[1]}/new.npz", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
