"""A classifier of sentences, in Flax Linen, with initial weights as PyTorch draws them: after google/flax issue 3125.

python flax3125_linen.py DATA.npz [--fault flax3125]
"""

import argparse

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("flax3125",))
options = parser.parse_args()
data = np.load(options.data)


def dense(inputs: int, outputs: int, name: str) -> nn.Dense:
    """A layer whose weights and biases are uniform within 1 / sqrt(inputs), as PyTorch's."""
    if options.fault == "flax3125":  # Flax' own: LeCun's truncated normal, and zeros
        return nn.Dense(outputs, name=name)

    def bias(key, shape, dtype):
        return jax.random.uniform(key, shape, dtype, -(inputs**-0.5), inputs**-0.5)

    kernel = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    return nn.Dense(outputs, kernel_init=kernel, bias_init=bias, name=name)


def embedding(rows: int, size: int, name: str) -> nn.Embed:
    """Rows of normal numbers, as PyTorch's."""
    if options.fault == "flax3125":  # Flax' own: of the variance 1 / size
        return nn.Embed(rows, size, name=name)
    return nn.Embed(rows, size, embedding_init=nn.initializers.normal(1.0), name=name)


class Network(nn.Module):
    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = dense(64, 128, "dense1")(embedding(200, 64, "embedding")(tokens).mean(1))
        return dense(128, 10, "dense2")(nn.relu(x))


@jax.jit
def train_step(state: TrainState, tokens: jax.Array, labels: jax.Array) -> tuple[TrainState, jax.Array]:
    def mean_loss(params: dict) -> jax.Array:
        logits = state.apply_fn({"params": params}, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    return state.apply_gradients(grads=gradients), loss


network = Network()
params = network.init(jax.random.key(0), data["tokens"])["params"]
state = TrainState.create(apply_fn=network.apply, params=params, tx=optax.sgd(0.1))
losses = []
for batch in zip(np.split(data["tokens"], 3), np.split(data["labels"], 3), strict=True):
    state, loss = train_step(state, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
