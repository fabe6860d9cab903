"""float16 under the mode: prints, as JSON, which operations passed, or else the error."""

import json
from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

import repro.portable.jax as portable
from repro.portable.modes.common.refusal import RefusedError

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "product": lambda x: x * x,
    "order": jnp.sort,
    "conversion": lambda x: x.astype(jnp.float32),
    "moves": lambda x: jnp.concatenate([x[::2], x]),
}


def outcome(function: Callable[[Array], Array]) -> str:
    try:
        jax.block_until_ready(jax.jit(function)(np.arange(4, dtype=np.float16)))
    except RefusedError as error:
        return str(error)
    return "passed"


portable.enable()
print(json.dumps({name: outcome(function) for name, function in FUNCTIONS.items()}))
