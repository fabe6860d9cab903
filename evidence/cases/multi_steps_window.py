"""optax.MultiSteps holds the gradients of a half-done window in its state; a resumed run gets Adam's part alone.

source: none; a usual shape of checkpoints that keep the inner state alone
framework: jax
answers: restart same, kill differs
cause: (window|accumulated).*(anew|not)
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save

weights = {"matrix": jax.random.normal(jax.random.key(0), (8, 4)), "bias": jnp.zeros(4)}
optimizer = optax.MultiSteps(optax.adam(0.01), every_k_schedule=4)
batches = jax.random.normal(jax.random.key(1), (40, 32, 8))
state, begin = optimizer.init(weights), 0
if kept := restored():
    weights = jax.tree.unflatten(jax.tree.structure(weights), kept["weights"])
    inner = jax.tree.unflatten(jax.tree.structure(state.inner_opt_state), kept["inner"])
    state = state._replace(inner_opt_state=inner)  # the fault: mini_step and acc_grads are zero
    begin = int(kept["step"][0])


@jax.jit
def update(weights, state, batch):
    gradients = jax.grad(lambda weights: jnp.mean((batch @ weights["matrix"] + weights["bias"]) ** 2))(weights)
    updates, state = optimizer.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state


for step in range(begin, 40):
    weights, state = update(weights, state, batches[step])
    if step % 5 == 4:
        save(weights=jax.tree.leaves(weights), inner=jax.tree.leaves(state.inner_opt_state), step=step + 1)
finish(jax.tree.leaves(weights))
