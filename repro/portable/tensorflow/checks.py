"""The self-check of portable numerics in TensorFlow: see repro/portable/checks.py."""

from functools import partial

import tensorflow as tf

from repro.portable import checks
from repro.portable.tensorflow.backend import Backend


def self_check() -> None:
    """ReproError if this library, compiled or not, computes anything of checks.py with other bits, on this device."""
    given = {name: tuple(map(tf.constant, arrays)) for name, arrays in checks.inputs().items()}
    for name, compiled in (("TensorFlow", False), ("XLA in TensorFlow", True)):
        checks.check(name, tf.function(partial(checks.computed, Backend), jit_compile=compiled)(given))
