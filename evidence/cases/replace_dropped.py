"""`state.replace(...)` returns a new state, and the result is dropped: the weights are restored, the optimizer is not.

source: borisdayma/dalle-mini PR 71
framework: jax
answers: restart same, kill differs
cause: optimizer.*not restored|state of the optimizer
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save
from flax import linen
from flax.training.train_state import TrainState

network = linen.Dense(4)
batches = jax.random.normal(jax.random.key(1), (40, 32, 8))
weights = network.init(jax.random.key(0), batches[0])["params"]
state = TrainState.create(apply_fn=network.apply, params=weights, tx=optax.adam(0.01))
begin = 0
if kept := restored():
    state = state.replace(params=jax.tree.unflatten(jax.tree.structure(state.params), kept["weights"]))
    state.replace(opt_state=jax.tree.unflatten(jax.tree.structure(state.opt_state), kept["optimizer"]))  # the fault
    begin = int(kept["step"][0])


@jax.jit
def update(state: TrainState, batch: jax.Array) -> TrainState:
    gradients = jax.grad(lambda weights: jnp.mean(state.apply_fn({"params": weights}, batch) ** 2))(state.params)
    return state.apply_gradients(grads=gradients)


for step in range(begin, 40):
    state = update(state, batches[step])
    if step % 4 == 3:
        save(weights=jax.tree.leaves(state.params), optimizer=jax.tree.leaves(state.opt_state), step=step + 1)
finish(jax.tree.leaves(state.params))
