"""The tutorial's loop in JAX.

A loader with four worker processes, Flax' layers, a compiled step called for each batch.

The tutorial borrows PyTorch's DataLoader; Grain's is what goes with JAX today. The tutorial's convolutions pad their
inputs, which makes a larger network; here it is the network of the others.
"""

import grain.python as grain
import jax
import numpy as np
import optax
from absl import flags
from flax import linen as nn
from flax.training.train_state import TrainState
from jax import numpy as jnp

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, Baseline, begin
from repro.trainers.loop.data import MEAN, STD


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, training: bool = False):
        x = nn.Conv(10, (5, 5), padding="VALID")(x)
        x = nn.relu(nn.max_pool(x, (2, 2), strides=(2, 2)))
        x = nn.Conv(20, (5, 5), padding="VALID")(x)
        x = nn.Dropout(0.5, broadcast_dims=(1, 2))(x, deterministic=not training)
        x = nn.relu(nn.max_pool(x, (2, 2), strides=(2, 2)))
        x = nn.relu(nn.Dense(50)(x.reshape((x.shape[0], -1))))
        x = nn.Dropout(0.5)(x, deterministic=not training)
        return nn.Dense(10)(x)


class Normalize(grain.MapTransform):
    """Of each image by itself, as torchvision's transforms do it."""

    def map(self, element):
        image, label = element
        return (image[..., None].astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD), label


class Pairs:
    """An image and its label by number."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def loader(baseline: Baseline) -> grain.DataLoader:
    """Of all epochs, one after the other: its workers import JAX, so they are started only once."""
    flags.FLAGS.mark_as_parsed()  # Grain reads its options from the command line, or from nowhere
    data = baseline.dataset
    sampler = grain.IndexSampler(
        len(data.train_labels), shuffle=True, seed=SEED, num_epochs=baseline.epochs, shard_options=grain.NoSharding()
    )
    return grain.DataLoader(
        data_source=Pairs(data.train_images, data.train_labels),
        sampler=sampler,
        operations=[Normalize(), grain.Batch(baseline.batch_size)],
        worker_count=baseline.workers,
    )


def mean_loss(logits, labels):
    return optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 10)).mean()


@jax.jit
def train_step(state: TrainState, images, labels, key):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, images, training=True, rngs={"dropout": key})
        return mean_loss(logits, labels), logits

    gradients, logits = jax.grad(loss_of, has_aux=True)(state.params)
    metrics = {"loss": mean_loss(logits, labels), "accuracy": jnp.mean(jnp.argmax(logits, -1) == labels)}
    return state.apply_gradients(grads=gradients), metrics


def main() -> None:
    baseline = begin()
    key, first = jax.random.split(jax.random.key(SEED))
    net = Net()
    params = net.init(first, jnp.ones([1, 28, 28, 1]))["params"]
    state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.sgd(LEARNING_RATE, MOMENTUM))
    batches = iter(loader(baseline))
    for _ in range(baseline.epochs):
        metrics = []
        for images, labels in baseline.timed(batches):
            key, dropout_key = jax.random.split(key)
            state, step_metrics = train_step(state, images, labels, dropout_key)
            metrics.append(step_metrics)
        jax.device_get(metrics)
    weights = [np.asarray(weight) for weight in jax.tree.leaves(state.params)]
    baseline.finish(jax.__version__, weights, accuracy(state, baseline) if baseline.whole else None)


def accuracy(state: TrainState, baseline: Baseline) -> float:
    data = baseline.dataset
    images = (data.test_images[..., None].astype(np.float32) / 255 - MEAN) / STD
    logits = jax.jit(state.apply_fn)({"params": state.params}, images)
    return float((np.argmax(logits, -1) == data.test_labels).mean())


if __name__ == "__main__":
    main()
