"""A multilayer perceptron with dropout and smoothed labels, in Flax Linen.

python mlp_linen.py DATA.npz [--optimizer NAME] [--own-weights] [--fault FAULT]
"""

import argparse

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training.train_state import TrainState

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=("sgd", "clipped", "warmup"), default="sgd")
parser.add_argument("--own-weights", action="store_true", help="draw the initial weights; otherwise they are read")
parser.add_argument("--fault", choices=("initializer", "clip_value", "warmup", "order"))
options = parser.parse_args()
data = np.load(options.data)
FAN = "fan_out" if options.fault == "initializer" else "fan_in"  # the variance is 2 / fan


class Network(nn.Module):
    def setup(self) -> None:
        draw = nn.initializers.variance_scaling(2.0, FAN, "normal")
        self.dense1, self.dense2, self.dense3 = (nn.Dense(size, kernel_init=draw) for size in (64, 64, 10))

    def __call__(self, x: jax.Array, keep: jax.Array) -> jax.Array:
        x = nn.relu(self.dense1(x)) * keep / 0.75
        return self.dense3(nn.relu(self.dense2(x)))


def checkpoint() -> dict[str, dict[str, np.ndarray]]:
    """Takes the weights of a PyTorch checkpoint."""
    return {
        name: {"kernel": data[f"{name}.weight"].T, "bias": data[f"{name}.bias"]}
        for name in ("dense1", "dense2", "dense3")
    }


def make_optimizer() -> optax.GradientTransformation:
    if options.optimizer == "clipped":
        clip = optax.clip(0.05) if options.fault == "clip_value" else optax.clip_by_global_norm(0.5)
        return optax.chain(clip, optax.sgd(0.1, momentum=0.9))
    if options.optimizer == "warmup":
        # The first step's count is 0.
        first = 0.0 if options.fault == "warmup" else 0.1 / 4
        return optax.sgd(optax.linear_schedule(first, first + 0.1, 4), momentum=0.9)
    return optax.sgd(0.1, momentum=0.9)


@jax.jit
def train_step(state: TrainState, rows: jax.Array, keep: jax.Array, labels: jax.Array) -> tuple[TrainState, jax.Array]:
    def mean_loss(params: dict) -> jax.Array:
        logits = state.apply_fn({"params": params}, rows, keep)
        return optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 10), 0.1)).mean()

    loss, gradients = jax.value_and_grad(mean_loss)(state.params)
    return state.apply_gradients(grads=gradients), loss


order = np.random.default_rng(99).permutation(48) if options.fault == "order" else data["order"]
rows, keep, labels = (np.split(data[name][order], 3) for name in ("rows", "keep", "labels"))
network = Network()
params = network.init(jax.random.key(0), rows[0], keep[0])["params"] if options.own_weights else checkpoint()
state = TrainState.create(apply_fn=network.apply, params=jax.tree.map(jax.numpy.asarray, params), tx=make_optimizer())
losses = []
for batch in zip(rows, keep, labels, strict=True):
    state, loss = train_step(state, *batch)
    losses.append(loss)
print("loss", np.mean(losses))
