"""Fingerprints of JAX's pytrees: those of their arrays by their paths, also of bfloat16."""

import jax.numpy as jnp
import numpy as np

from repro.fingerprint import fingerprint, weights_fingerprint

narrow = jnp.ones(3, jnp.bfloat16)
parameters = {"layers": [{"kernel": jnp.ones((2, 3)), "bias": narrow}]}
arrays = {"layers.0.kernel": np.ones((2, 3), np.float32), "layers.0.bias": np.asarray(narrow)}
assert weights_fingerprint(parameters) == fingerprint(arrays)
print("the same")
