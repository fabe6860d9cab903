"""The self-check of portable numerics in TensorFlow: see repro/portable/checks.py."""

from functools import partial

import tensorflow as tf

from repro.portable import checks
from repro.portable.tensorflow.backend import Backend


def self_check(engine: str = "float64") -> None:
    """Sets the engine of products: auto, float64 or int8.

    ReproError if this library, compiled or not, computes anything of checks.py with other bits, on this device.
    """
    given = {name: tuple(map(tf.constant, arrays)) for name, arrays in checks.inputs().items()}
    checks.check("TensorFlow", tf.function(partial(checks.computed, Backend))(given))
    compiled, product = ({name: tf.function(function, jit_compile=True) for name in ("float64", "int8")}
                         for function in (partial(checks.computed, Backend), partial(Backend.matmul)))  # fmt: skip
    large = [tf.constant(array) for array in checks.large()]
    checks.settle(
        "XLA in TensorFlow", Backend, engine, lambda: compiled[Backend.engine](given),
        lambda: product[Backend.engine](*large).numpy(),
    )  # fmt: skip
