"""A multilayer perceptron in Flax with Optax; Orbax keeps a folder for each checkpoint."""

import argparse
from pathlib import Path

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import linen as nn
from flax.training.train_state import TrainState
from jax import numpy as jnp

STEPS, EVERY = 24, 6


class Network(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(10)(nn.gelu(nn.Dense(32)(x)))


@jax.jit
def train_step(state: TrainState, x: jax.Array, labels: jax.Array) -> TrainState:
    def loss(params: dict) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(state.apply_fn({"params": params}, x), labels).mean()

    return state.apply_gradients(grads=jax.grad(loss)(state.params))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    examples = np.random.default_rng(1).normal(size=(64, 20)).astype(np.float32)
    classes = np.arange(64) % 10
    network = Network()
    params = network.init(jax.random.key(0), jnp.zeros((1, 20)))["params"]
    state = TrainState.create(apply_fn=network.apply, params=params, tx=optax.adamw(1e-2))
    manager = ocp.CheckpointManager(
        options.out.absolute(), options=ocp.CheckpointManagerOptions(enable_async_checkpointing=False)
    )
    step = 0
    if options.resume:
        step = manager.latest_step() or 0
        state = manager.restore(step, args=ocp.args.StandardRestore(state))
    while step < STEPS:
        rows = np.random.default_rng(step).integers(64, size=16)
        state = train_step(state, examples[rows], classes[rows])
        step += 1
        if step % EVERY == 0:
            manager.save(step, args=ocp.args.StandardSave(state))
    manager.close()


if __name__ == "__main__":
    main()
