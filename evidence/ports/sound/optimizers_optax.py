"""Ten optimizers of Optax, each in its own run, with the settings of optimizers_pytorch.py.

python optimizers_optax.py DATA.npz --optimizer NAME
"""

import argparse

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

OPTIMIZERS = {
    "sgd": optax.sgd(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "nesterov": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.01, eps=1e-12),
    "adamw": optax.adamw(0.01, eps=1e-12, weight_decay=0.1),
    # By itself Optax adds epsilon inside of the root here, PyTorch outside.
    "rmsprop": optax.rmsprop(0.01, decay=0.9, eps=1e-12, eps_in_sqrt=False),
    # Here epsilon is inside of the root as well, and too small to be seen beside the accumulator's first value.
    "adagrad": optax.adagrad(0.1, initial_accumulator_value=0.1, eps=1e-12),
    "adadelta": optax.adadelta(1.0, rho=0.95, eps=1e-6),
    "adamax": optax.adamax(0.01, eps=1e-12),
    "centered": optax.rmsprop(0.01, decay=0.9, eps=1e-12, eps_in_sqrt=False, momentum=0.9, centered=True),
}
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
options = parser.parse_args()
data = np.load(options.data)


class Network(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(10, name="dense3")(nn.tanh(nn.Dense(64, name="dense1")(x)))


@jax.jit
def train_step(state: TrainState, rows: jax.Array, labels: jax.Array) -> tuple[TrainState, jax.Array]:
    def mean_loss(params: dict) -> jax.Array:
        logits = state.apply_fn({"params": params}, rows)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    return state.apply_gradients(grads=gradients), loss


params = {
    name: {"kernel": jax.numpy.asarray(data[f"{name}.weight"].T), "bias": jax.numpy.asarray(data[f"{name}.bias"])}
    for name in ("dense1", "dense3")
}
state = TrainState.create(apply_fn=Network().apply, params=params, tx=OPTIMIZERS[options.optimizer])
losses = []
for batch in zip(np.split(data["rows"], 3), np.split(data["labels"], 3), strict=True):
    state, loss = train_step(state, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
