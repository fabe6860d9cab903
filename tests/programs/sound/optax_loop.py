"""A sound training in JAX: a compiled step of Optax with dropout, whose key is carried on, a schedule and NumPy's noise."""

import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

np.random.seed(0)
inputs, labels = np.random.normal(size=(12, 16, 8)).astype("float32"), np.random.randint(0, 3, (12, 16))
optimizer = optax.adamw(optax.exponential_decay(0.05, 4, 0.8))
params = {"a": jnp.asarray(np.random.normal(size=(8, 16)) / 3), "b": jnp.asarray(np.random.normal(size=(16, 3)) / 4)}
state, key = optimizer.init(params), jax.random.PRNGKey(0)


@jax.jit
def train(params, state, key, x, y):
    key, mine = jax.random.split(key)

    def loss(params):
        h = jax.nn.relu(x @ params["a"]) * jax.random.bernoulli(mine, 0.8, (16, 16))
        return optax.softmax_cross_entropy_with_integer_labels(h @ params["b"], y).mean()

    updates, state = optimizer.update(jax.grad(loss)(params), state, params)
    return optax.apply_updates(params, updates), state, key


path, done = os.path.join(sys.argv[1], "checkpoint.npz"), 0
tree = jax.tree.structure((params, state, key))
if "--resume" in sys.argv:
    kept = np.load(path)
    params, state, key = jax.tree.unflatten(tree, [jnp.asarray(kept[f"l{n}"]) for n in range(tree.num_leaves)])
    np.random.set_state({"bit_generator": "MT19937", "state": {"key": kept["mt"], "pos": int(kept["pos"])}})
    done = int(kept["step"])
for step in range(done, 12):
    noise = np.random.uniform(-0.1, 0.1, (16, 8)).astype("float32")
    params, state, key = train(params, state, key, inputs[step] + noise, labels[step])
    leaves: Any = {f"l{n}": np.asarray(leaf) for n, leaf in enumerate(jax.tree.leaves((params, state, key)))}
    mt = np.random.get_state(legacy=False)["state"]
    np.savez(f"{sys.argv[1]}/new.npz", **leaves, mt=mt["key"], pos=mt["pos"], step=step + 1)
    os.replace(f"{sys.argv[1]}/new.npz", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
print("trained")
