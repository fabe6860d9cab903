"""Without a fault, in JAX: weights, optimizer and key are restored.

source: none; a control
framework: jax
answers: restart same, resume same, kill same
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save

weights = {"matrix": jax.random.normal(jax.random.key(1), (8, 4)), "bias": jnp.zeros(4)}
optimizer = optax.adamw(optax.cosine_decay_schedule(0.1, 40))
state = (weights, optimizer.init(weights), jax.random.key_data(jax.random.key(0)))
batches = jax.random.normal(jax.random.key(2), (40, 32, 8))
begin = 0
if kept := restored():
    state = jax.tree.unflatten(jax.tree.structure(state), kept["state"])
    begin = int(kept["step"][0])


@jax.jit
def update(state, batch):
    weights, moments, data = state
    key, drawn = jax.random.split(jax.random.wrap_key_data(data))
    batch = batch * jax.random.bernoulli(drawn, 0.8, batch.shape)
    gradients = jax.grad(lambda weights: jnp.mean((batch @ weights["matrix"] + weights["bias"]) ** 2))(weights)
    updates, moments = optimizer.update(gradients, moments, weights)
    return optax.apply_updates(weights, updates), moments, jax.random.key_data(key)


for step in range(begin, 40):
    state = update(state, batches[step])
    if step % 4 == 3:
        save(state=jax.tree.leaves(state), step=step + 1)
finish(jax.tree.leaves(state[0]))
