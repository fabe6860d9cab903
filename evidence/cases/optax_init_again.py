"""`init` is called again as a run resumes: the schedule, whose count is in the optimizer's state, starts anew.

source: google-deepmind/optax#1036
framework: jax
answers: restart same, kill differs
cause: (optimizer|count|schedule).*(not restored|step 1|began|anew)
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save

weights = {"matrix": jax.random.normal(jax.random.key(0), (8, 4)), "bias": jnp.zeros(4)}
optimizer = optax.sgd(optax.cosine_decay_schedule(0.1, 40))
batches = jax.random.normal(jax.random.key(1), (40, 32, 8))
begin = 0
if kept := restored():
    weights = jax.tree.unflatten(jax.tree.structure(weights), kept["weights"])
    begin = int(kept["step"][0])
state = optimizer.init(weights)  # the fault


@jax.jit
def update(weights, state, batch):
    gradients = jax.grad(lambda weights: jnp.mean((batch @ weights["matrix"] + weights["bias"]) ** 2))(weights)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, updates), state


for step in range(begin, 40):
    weights, state = update(weights, state, batches[step])
    if step % 4 == 3:
        save(weights=jax.tree.leaves(weights), step=step + 1)
finish(jax.tree.leaves(weights))
