"""The key is taken out of the state before it is saved, because it cannot be: dropout draws from key 0 again.

source: google/orbax#1105, #2540, google/flax#4383
framework: jax
answers: restart same, kill differs
cause: (generator|key|dropout).*
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save

state = {
    "weights": {"matrix": jax.random.normal(jax.random.key(1), (8, 4)), "bias": jnp.zeros(4)},
    "key": jax.random.key(0),
}
optimizer = optax.adam(0.01)
state["optimizer"] = optimizer.init(state["weights"])
batches = jax.random.normal(jax.random.key(2), (40, 32, 8))
begin = 0
if kept := restored():
    saved = {name: part for name, part in state.items() if name != "key"}
    state |= jax.tree.unflatten(jax.tree.structure(saved), kept["state"])
    begin = int(kept["step"][0])


@jax.jit
def update(state, batch):
    key, drawn = jax.random.split(state["key"])
    mask = jax.random.bernoulli(drawn, 0.8, batch.shape)
    gradients = jax.grad(lambda weights: jnp.mean(((batch * mask) @ weights["matrix"] + weights["bias"]) ** 2))(
        state["weights"]
    )
    updates, after = optimizer.update(gradients, state["optimizer"])
    return {"weights": optax.apply_updates(state["weights"], updates), "key": key, "optimizer": after}


for step in range(begin, 40):
    state = update(state, batches[step])
    if step % 4 == 3:
        saved = {name: part for name, part in state.items() if name != "key"}  # the fault
        save(state=jax.tree.leaves(saved), step=step + 1)
finish(jax.tree.leaves(state["weights"]))
