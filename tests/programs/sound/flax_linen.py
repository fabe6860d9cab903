"""A sound training in Flax Linen: a TrainState with averages of BatchNorm, and a key that is folded with the step."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn
from flax import serialization
from flax.training import train_state


class Network(nn.Module):
    """Two layers with dropout."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.BatchNorm(use_running_average=False, momentum=0.9)(nn.Dense(16)(x))
        return nn.Dense(3)(nn.Dropout(0.2, deterministic=False)(nn.relu(x)))


class State(train_state.TrainState):
    """The state of a training, with running means."""

    batch_stats: Any = None


random = np.random.default_rng(1)
inputs, labels = random.normal(size=(16, 16, 8)).astype("float32"), random.integers(0, 3, (16, 16))
key = jax.random.key(0)
variables = Network().init({"params": key, "dropout": key}, inputs[0])
state = State.create(
    apply_fn=Network().apply,
    params=variables["params"],
    tx=optax.sgd(0.1, momentum=0.9),
    batch_stats=variables["batch_stats"],
)


@jax.jit
def train(state: Any, x: Any, y: Any) -> Any:
    """Takes a step."""

    def loss(params: Any) -> Any:
        given = {"params": params, "batch_stats": state.batch_stats}
        mine = {"dropout": jax.random.fold_in(jax.random.key(5), state.step)}
        logits, new = state.apply_fn(given, x, mutable=["batch_stats"], rngs=mine)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new["batch_stats"]

    gradients, means = jax.grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradients, batch_stats=means)


path = os.path.join(sys.argv[1], "checkpoint.msgpack")
if "--resume" in sys.argv:
    state = serialization.from_bytes(state, Path(path).read_bytes())
for step in range(int(state.step), 16):
    state = train(state, inputs[step], labels[step])
    Path(f"{path}.new").write_bytes(serialization.to_bytes(state))
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
