"""Integers made of fractions under the mode, for cases.py."""

from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

from programs import conversion_cases


def conversions() -> dict[str, list[str]]:
    """Ways to make integers of fractions, and the conversions that give wrong ones."""
    with jax.enable_x64(True):
        numbers = jnp.array(conversion_cases.NUMBERS, jnp.float64)
        floats = {each: numbers.astype(each) for each in ("float16", "bfloat16", "float32", "float64")}
        plain = {source: np.asarray(each, np.float64) for source, each in floats.items()}
        many = {source: jnp.tile(each, conversion_cases.COPIES) for source, each in floats.items()}
        ways: dict[str, Callable[[Array, str], Array]] = {
            "eager": lambda x, target: x.astype(target),
            "compiled": lambda x, target: jax.jit(lambda x: x.astype(target))(x),
            "constant": lambda x, target: jax.jit(lambda: x.astype(target))(),
        }
        return {name: [*conversion_cases.wrong(plain, converting(many, way))] for name, way in ways.items()}


def converting(many: dict[str, Array], way: Callable[[Array, str], Array]) -> Callable[[str, str], np.ndarray]:
    return lambda source, target: np.asarray(way(many[source], target))
