"""The self-check in TensorFlow: see repro/portable/backends/checks/cases.py."""

from functools import partial

import tensorflow as tf

from repro.portable import kernels
from repro.portable.backends.checks import cases as checks
from repro.portable.backends.tensorflow import Backend

if kernels.available:
    from repro.portable.kernels import tensorflow as ffi

ENGINES = ("float64", "int16", "int8")


def self_check(engine: str = "float64") -> None:
    """Sets the matmul backend: auto, float64, int8, or, on CPUs that have its instruction, int16.

    ReproError if this library, compiled or not, computes anything of cases.py with other bits, on this device.
    """
    given = {name: tuple(map(tf.constant, arrays)) for name, arrays in checks.inputs().items()}
    checks.check("TensorFlow", tf.function(partial(checks.computed, Backend))(given))
    compiled, product = (
        {name: tf.function(function, jit_compile=True) for name in ENGINES}
        for function in (partial(checks.computed, Backend), _product)
    )
    large = [tf.constant(array) for array in checks.large()]
    checks.choose_engine(
        "XLA in TensorFlow",
        Backend,
        engine,
        lambda: compiled[Backend.engine](given),
        lambda: product[Backend.engine](*large).numpy(),
        paired=kernels.available and ffi.possible(),
        int8_may_be_faster=False,
    )


def _product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return Backend.matmul(*Backend.operands(a, b, work=checks.LARGE))
