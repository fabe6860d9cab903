"""A training with Flax NNX and Optax, whose time with the observer is measured by benchmarks/observing.py."""

import os

from benchmarks.observed import Loop, options


def main() -> None:
    _, threads, steps = options("flax")
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"

    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.conv1 = nnx.Conv(1, 32, (3, 3), rngs=rngs)
            self.conv2 = nnx.Conv(32, 64, (3, 3), rngs=rngs)
            self.dense1 = nnx.Linear(7 * 7 * 64, 128, rngs=rngs)
            self.dense2 = nnx.Linear(128, 10, rngs=rngs)

        def __call__(self, images: jax.Array) -> jax.Array:
            x = nnx.max_pool(nnx.relu(self.conv1(images)), (2, 2), (2, 2))
            x = nnx.max_pool(nnx.relu(self.conv2(x)), (2, 2), (2, 2))
            return self.dense2(nnx.relu(self.dense1(x.reshape(len(x), -1))))

    @nnx.jit
    def step(model: Network, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
        def loss(model: Network) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        value, gradients = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    keys = jax.random.split(jax.random.key(0), 2)
    images, labels = jax.random.normal(keys[0], (64, 28, 28, 1)), jax.random.randint(keys[1], (64,), 0, 10)
    loop = Loop(steps)
    while True:
        jnp.asarray(step(model, optimizer, images, labels)).block_until_ready()
        if loop.is_over():
            return


if __name__ == "__main__":
    main()
