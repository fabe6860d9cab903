"""A multilayer perceptron with dropout and smoothed labels, in Equinox.

python mlp_equinox.py DATA.npz [--optimizer NAME] [--fault FAULT]
"""

import argparse

import equinox as eqx
import jax
import numpy as np
import optax
from jax import numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=("sgd", "adam", "adamw"), default="sgd")
parser.add_argument("--fault", choices=("correction",))
options = parser.parse_args()
data = np.load(options.data)


class Network(eqx.Module):
    """The network for one row; `jax.vmap` makes it one for a batch."""

    dense1: eqx.nn.Linear
    dense2: eqx.nn.Linear
    dense3: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        sizes = ((32, 64), (64, 64), (64, 10))
        keys = jax.random.split(key, 3)
        self.dense1, self.dense2, self.dense3 = (
            eqx.nn.Linear(*size, key=key) for size, key in zip(sizes, keys, strict=True)
        )

    def __call__(self, row: jax.Array, keep: jax.Array) -> jax.Array:
        x = jax.nn.relu(self.dense1(row)) * keep / 0.75
        return self.dense3(jax.nn.relu(self.dense2(x)))


def load(network: Network) -> Network:
    """Takes the weights of a PyTorch checkpoint."""
    names = [(layer, kind) for layer in ("dense1", "dense2", "dense3") for kind in ("weight", "bias")]
    return eqx.tree_at(
        lambda network: [getattr(getattr(network, layer), kind) for layer, kind in names],
        network,
        [jnp.asarray(data[f"{layer}.{kind}"]) for layer, kind in names],
    )


def uncorrected_adam(rate: float, eps: float, b1: float = 0.9, b2: float = 0.999) -> optax.GradientTransformation:
    """Adam without bias correction, as BERT was first trained."""

    def init(params):
        return jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)

    def update(gradients, state, params=None):
        mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state[0], gradients)
        square = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, state[1], gradients)
        return jax.tree.map(lambda m, v: -rate * m / (jnp.sqrt(v) + eps), mean, square), (mean, square)

    return optax.GradientTransformation(init, update)


def make_optimizer() -> optax.GradientTransformation:
    if options.optimizer == "adam":
        return (uncorrected_adam if options.fault == "correction" else optax.adam)(0.01, eps=1e-3)
    if options.optimizer == "adamw":
        return optax.adamw(0.01, weight_decay=0.1)
    return optax.sgd(0.1, momentum=0.9)


def mean_loss(network: Network, rows: jax.Array, keep: jax.Array, labels: jax.Array) -> jax.Array:
    logits = jax.vmap(network)(rows, keep)
    return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 10), 0.1)).mean()


@eqx.filter_jit
def train_step(network, slots, rows, keep, labels):
    loss, gradients = eqx.filter_value_and_grad(mean_loss)(network, rows, keep, labels)
    updates, slots = optimizer.update(gradients, slots, eqx.filter(network, eqx.is_array))
    return eqx.apply_updates(network, updates), slots, loss


network, optimizer = load(Network(jax.random.key(0))), make_optimizer()
slots = optimizer.init(eqx.filter(network, eqx.is_array))
losses = []
for batch in zip(*(np.split(data[name][data["order"]], 3) for name in ("rows", "keep", "labels")), strict=True):
    network, slots, loss = train_step(network, slots, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
