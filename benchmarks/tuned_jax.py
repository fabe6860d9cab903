"""A loop in JAX, tuned by hand.

Images ready on the device, an epoch in one scan, convolutions as products.

A convolution of XLA's own takes ten times as long inside a loop on a CPU, so its 25 shifted slices become one matrix.
"""

from functools import partial

import jax
import numpy as np
import optax
from jax import Array, lax
from jax import numpy as jnp

from benchmarks.baseline import LEARNING_RATE, MOMENTUM, SEED, begin
from repro.trainers.loop.data import MEAN, STD

SIZES = {"conv1": (25, 10), "conv2": (250, 20), "dense1": (320, 50), "dense2": (50, 10)}


def initial(key: Array) -> dict[str, tuple[Array, Array]]:
    """Kernels and biases, uniform in +-1/sqrt(inputs)."""
    results = {}
    for name, (inputs, outputs) in SIZES.items():
        key, own = jax.random.split(key)
        both = jax.random.uniform(own, (inputs + 1, outputs), minval=-(inputs**-0.5), maxval=inputs**-0.5)
        results[name] = (both[1:], both[0])
    return results


def conv(x: Array, kernel: Array, bias: Array) -> Array:
    """[B, H, W, C] -> [B, H - 4, W - 4, outputs]."""
    height, width = x.shape[1] - 4, x.shape[2] - 4
    slices = [x[:, i : i + height, j : j + width] for i in range(5) for j in range(5)]
    return jnp.concatenate(slices, -1) @ kernel + bias


def max_pool(x: Array) -> Array:
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def logits_of(weights: dict[str, tuple[Array, Array]], images: Array, key: Array | None) -> Array:
    """float32 [B, 10] of images float32 [B, 28, 28, 1]; without a key, no dropout."""
    x = jax.nn.relu(max_pool(conv(images, *weights["conv1"])))
    x = conv(x, *weights["conv2"])
    if key is not None:
        key, own = jax.random.split(key)
        x = x * 2 * jax.random.bernoulli(own, 0.5, (len(x), 1, 1, 20))
    x = jax.nn.relu(max_pool(x)).reshape(-1, 320)
    x = jax.nn.relu(x @ weights["dense1"][0] + weights["dense1"][1])
    if key is not None:
        x = x * 2 * jax.random.bernoulli(key, 0.5, x.shape)
    return x @ weights["dense2"][0] + weights["dense2"][1]


def ready(images: np.ndarray) -> Array:
    """Images uint8 [N, 28, 28] -> normalized float32 [N, 28, 28, 1]."""
    return (jnp.asarray(images)[..., None].astype(jnp.float32) / 255 - MEAN) / STD


def main() -> None:
    baseline = begin()
    data = baseline.dataset
    images, labels = ready(data.train_images), jnp.asarray(data.train_labels)
    optimizer = optax.sgd(LEARNING_RATE, MOMENTUM)
    weights = initial(jax.random.key(SEED))
    state = (weights, optimizer.init(weights), jax.random.key(SEED))

    @partial(jax.jit, donate_argnums=0)
    def epoch(state, images, labels, batches):
        def step(state, batch):
            weights, slots, key = state
            key, own = jax.random.split(key)

            def loss_of(weights):
                logits = logits_of(weights, images[batch], own)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels[batch]).mean()

            loss, gradients = jax.value_and_grad(loss_of)(weights)
            updates, slots = optimizer.update(gradients, slots)
            return (optax.apply_updates(weights, updates), slots, key), loss

        return lax.scan(step, state, batches)

    def train(batches: np.ndarray) -> None:
        nonlocal state
        state, losses = epoch(state, images, labels, batches)
        losses.block_until_ready()

    baseline.call(train)
    right = np.argmax(jax.jit(logits_of)(state[0], ready(data.test_images), None), 1) == data.test_labels
    results = [np.asarray(weight) for weight in jax.tree.leaves(state[0])]
    baseline.finish(jax.__version__, results, float(right.mean()) if baseline.whole else None)


if __name__ == "__main__":
    main()
