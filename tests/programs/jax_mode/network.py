"""A small network of Flax, trained as its users do; prints the SHA-256 of the weights.

    python network.py [portable|own] [--plain]

--plain is without kernels.
"""

import hashlib
import sys

import jax
import numpy as np
import optax
from flax import linen as nn
from jax import Array

if "--plain" in sys.argv:
    from repro.portable import kernels

    kernels.available = False
if "portable" in sys.argv:
    import repro.portable.jax as portable

    portable.enable()


class Network(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(8, (3, 3))(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME").reshape(x.shape[0], -1)
        x = nn.gelu(nn.Dense(32, kernel_init=nn.initializers.orthogonal())(nn.LayerNorm()(x)))
        return nn.Dense(10)(nn.Dropout(0.1, deterministic=False)(x))


random = np.random.default_rng(0)
images, labels = random.random((16, 8, 8, 1), np.float32), random.integers(0, 10, 16)
model, optimizer = (
    Network(),
    optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, 3))),
)
variables = jax.jit(model.init)({"params": jax.random.key(0), "dropout": jax.random.key(1)}, images)
params, statistics = variables["params"], variables["batch_stats"]
state = optimizer.init(params)


@jax.jit
def step(params, statistics, state, key):
    def loss(params):
        given = {"params": params, "batch_stats": statistics}
        logits, changed = model.apply(given, images, mutable=["batch_stats"], rngs={"dropout": key})
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return losses.mean(), changed["batch_stats"]

    gradient, statistics = jax.grad(loss, has_aux=True)(params)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), statistics, state


for number in range(3):
    params, statistics, state = step(params, statistics, state, jax.random.key(number))
found = hashlib.sha256()
for array in jax.tree.leaves((params, statistics)):
    found.update(np.asarray(array).tobytes())
print(found.hexdigest())
