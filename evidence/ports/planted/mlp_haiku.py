"""A multilayer perceptron with dropout and smoothed labels, in Haiku.

python mlp_haiku.py DATA.npz [--optimizer NAME] [--fault FAULT]
"""

import argparse

import haiku as hk
import jax
import numpy as np
import optax
from jax import numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=("sgd", "clipped"), default="sgd")
parser.add_argument("--fault", choices=("dropout",))
options = parser.parse_args()
data = np.load(options.data)


class Dropout(hk.Module):
    """Drops what a mask names, so that every framework drops the same."""

    def __call__(self, x: jax.Array, keep: jax.Array) -> jax.Array:
        # Divided here, nothing is left to do after training; or it is scaled there, and not here.
        return x * keep if options.fault == "dropout" else x * keep / 0.75


@hk.without_apply_rng
@hk.transform
def network(rows: jax.Array, keep: jax.Array) -> jax.Array:
    x = Dropout(name="dropout")(jax.nn.relu(hk.Linear(64, name="dense1")(rows)), keep)
    return hk.Linear(10, name="dense3")(jax.nn.relu(hk.Linear(64, name="dense2")(x)))


def checkpoint() -> hk.Params:
    """Takes the weights of a PyTorch checkpoint."""
    return {
        name: {"w": jnp.asarray(data[f"{name}.weight"].T), "b": jnp.asarray(data[f"{name}.bias"])}
        for name in ("dense1", "dense2", "dense3")
    }


def mean_loss(params: hk.Params, rows: jax.Array, keep: jax.Array, labels: jax.Array) -> jax.Array:
    logits = network.apply(params, rows, keep)
    return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 10), 0.1)).mean()


@jax.jit
def train_step(params, slots, rows, keep, labels):
    loss, gradients = jax.value_and_grad(mean_loss)(params, rows, keep, labels)
    updates, slots = optimizer.update(gradients, slots)
    return optax.apply_updates(params, updates), slots, loss


optimizer = optax.sgd(0.1, momentum=0.9)
if options.optimizer == "clipped":
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optimizer)
params = checkpoint()
slots = optimizer.init(params)
losses = []
for batch in zip(*(np.split(data[name][data["order"]], 3) for name in ("rows", "keep", "labels")), strict=True):
    params, slots, loss = train_step(params, slots, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
