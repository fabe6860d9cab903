"""Updates by hand, with momentum; a resumed run begins with none.

source: none; a usual loop after JAX's tutorials
framework: jax
answers: restart same, kill differs
cause: optimizer|momentum|argument|state.*not restored
"""

import jax
import jax.numpy as jnp
from arrays import finish, restored, save

weights = {"matrix": jax.random.normal(jax.random.PRNGKey(0), (8, 4)), "bias": jnp.zeros(4)}
batches = jax.random.normal(jax.random.PRNGKey(1), (40, 32, 8))
momentum = jax.tree.map(jnp.zeros_like, weights)
begin = 0
if kept := restored():
    weights = jax.tree.unflatten(jax.tree.structure(weights), kept["weights"])
    begin = int(kept["step"][0])  # the fault: without the momentum


@jax.jit
def update(weights, momentum, batch):
    gradients = jax.grad(lambda weights: jnp.mean((batch @ weights["matrix"] + weights["bias"]) ** 2))(weights)
    momentum = jax.tree.map(lambda mean, gradient: 0.9 * mean + gradient, momentum, gradients)
    return jax.tree.map(lambda weight, mean: weight - 0.05 * mean, weights, momentum), momentum


for step in range(begin, 40):
    weights, momentum = update(weights, momentum, batches[step])
    if step % 4 == 3:
        save(weights=jax.tree.leaves(weights), step=step + 1)
finish(jax.tree.leaves(weights))
