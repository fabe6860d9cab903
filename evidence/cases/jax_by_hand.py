"""Updates by hand with `jax.tree.map`; the key is made from the time.

source: none; a usual loop after JAX's tutorials
framework: jax
answers: restart differs
cause: seed|key|initial weights
"""

import time

import jax
import jax.numpy as jnp
from arrays import finish

key = jax.random.PRNGKey(time.time_ns() % 1000003)
weights = [(jax.random.normal(key, (8, 16)), jnp.zeros(16)), (jax.random.normal(key, (16, 1)), jnp.zeros(1))]
batches = jax.random.normal(jax.random.PRNGKey(1), (20, 32, 8))


def loss(weights, batch):
    for matrix, bias in weights:
        batch = jnp.tanh(batch @ matrix + bias)
    return jnp.mean(batch**2)


@jax.jit
def update(weights, batch):
    gradients = jax.grad(loss)(weights, batch)
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients)


for batch in batches:
    weights = update(weights, batch)
finish(jax.tree.leaves(weights))
