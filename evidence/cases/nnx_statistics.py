"""A checkpoint of NNX holds the parameters and the optimizer; the means of the batch normalization go back to zero.

source: AI-Hypercomputer/maxtext PR 4343
framework: jax
answers: restart same, kill differs
cause: buffers|statistic|running mean|\bmean\b
"""

import jax
import jax.numpy as jnp
import optax
from arrays import finish, restored, save
from flax import nnx


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first, self.second = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)

    def __call__(self, batch: jax.Array) -> jax.Array:
        return self.second(nnx.relu(self.norm(self.first(batch))))


network = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(network, optax.sgd(0.05, momentum=0.9), wrt=nnx.Param)
batches = jax.random.normal(jax.random.key(1), (40, 32, 8))
begin = 0
if kept := restored():
    for part, module, kind in (("weights", network, nnx.Param), ("optimizer", optimizer, nnx.optimizer.OptState)):
        structure = jax.tree.structure(nnx.state(module, kind))
        nnx.update(module, jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in kept[part]]))
    begin = int(kept["step"][0])


@nnx.jit
def update(network: Network, optimizer: nnx.Optimizer, batch: jax.Array) -> None:
    gradients = nnx.grad(lambda network: jnp.mean(network(batch) ** 2))(network)
    optimizer.update(network, gradients)


for step in range(begin, 40):
    update(network, optimizer, batches[step])
    if step % 4 == 3:  # the fault: without nnx.BatchStat
        weights, state = nnx.state(network, nnx.Param), nnx.state(optimizer, nnx.optimizer.OptState)
        save(weights=jax.tree.leaves(weights), optimizer=jax.tree.leaves(state), step=step + 1)
finish(jax.tree.leaves(nnx.state(network, (nnx.Param, nnx.BatchStat))))
