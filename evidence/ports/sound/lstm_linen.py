"""An LSTM that sorts series into classes, in Flax Linen: the counterpart of planted/lstm_pytorch.py.

python lstm_linen.py DATA.npz
"""

import argparse

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)


class Network(nn.Module):
    @nn.compact
    def __call__(self, series: jax.Array) -> jax.Array:
        states = nn.RNN(nn.OptimizedLSTMCell(12, name="cell"), name="lstm")(series)
        return nn.Dense(3, name="dense")(states[:, -1])


def checkpoint() -> dict:
    """Takes the weights of a PyTorch checkpoint: its four gates are one matrix there, and four here."""
    parts = [np.split(data[f"lstm.{name}_l0"], 4) for name in ("weight_ih", "weight_hh", "bias_ih")]
    cell = {}
    for gate, inputs, states, bias in zip("ifgo", *parts, strict=True):
        cell[f"i{gate}"] = {"kernel": inputs.T}
        cell[f"h{gate}"] = {"kernel": states.T, "bias": bias}
    return {"cell": cell, "dense": {"kernel": data["dense.weight"].T, "bias": data["dense.bias"]}}


@jax.jit
def train_step(state: TrainState, series: jax.Array, labels: jax.Array) -> tuple[TrainState, jax.Array]:
    def mean_loss(params: dict) -> jax.Array:
        logits = state.apply_fn({"params": params}, series)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    return state.apply_gradients(grads=gradients), loss


params = jax.tree.map(jax.numpy.asarray, checkpoint())
state = TrainState.create(apply_fn=Network().apply, params=params, tx=optax.sgd(0.1, momentum=0.9))
losses = []
for batch in zip(np.split(data["series"], 3), np.split(data["labels"], 3), strict=True):
    state, loss = train_step(state, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
