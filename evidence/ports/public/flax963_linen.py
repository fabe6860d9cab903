"""The beginning of a ResNet, in Flax Linen: after google/flax issue 963.

python flax963_linen.py DATA.npz [--fault flax963]
"""

import argparse
from functools import partial

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("flax963",))
options = parser.parse_args()
data = np.load(options.data)

# The model's predictions were others until its author gave every layer PyTorch's padding. SAME is what Flax' example has.
SAME = options.fault == "flax963"
Conv = partial(nn.Conv, use_bias=False)
Norm = partial(nn.BatchNorm, use_running_average=False, epsilon=1e-5)


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = Conv(16, (3, 3), strides=2, padding="SAME" if SAME else 1, name="conv1")(x)
        y = Conv(16, (3, 3), name="conv2")(nn.relu(Norm(name="bn1")(y)))
        return nn.relu(Norm(name="bn2")(y) + Conv(16, (1, 1), strides=2, name="downsample")(x))


class Network(nn.Module):
    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = Conv(8, (7, 7), strides=2, padding="SAME" if SAME else 3, name="conv1")(images)
        x = nn.max_pool(
            nn.relu(Norm(name="bn1")(x)), (3, 3), strides=(2, 2), padding="SAME" if SAME else ((1, 1), (1, 1))
        )
        return nn.Dense(10, name="fc")(Block(name="layer2")(x).mean((1, 2)))


def checkpoint() -> dict:
    """Takes the weights of a PyTorch checkpoint."""
    params: dict = {}
    for name in (name for name in data if "." in name):
        array, (*layers, layer, last) = data[name], name.split(".")
        place = params
        for each in (*layers, layer):
            place = place.setdefault(each, {})
        if last == "bias":
            place["bias"] = array
        elif layer.startswith("bn"):
            place["scale"] = array
        else:
            place["kernel"] = array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T
    return jax.tree.map(jax.numpy.asarray, params)


@jax.jit
def train_step(state: TrainState, images: jax.Array, labels: jax.Array) -> tuple[TrainState, jax.Array]:
    def mean_loss(params: dict) -> jax.Array:
        logits, _ = state.apply_fn({"params": params}, images, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    return state.apply_gradients(grads=gradients), loss


state = TrainState.create(apply_fn=Network().apply, params=checkpoint(), tx=optax.sgd(0.05))
losses = []
for batch in zip(np.split(data["images"], 3), np.split(data["labels"], 3), strict=True):
    state, loss = train_step(state, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
