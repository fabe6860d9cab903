"""The mode's self-check: small cases and their fingerprints.

A case is what the definitions rely on of TensorFlow, of NumPy and of the processor, or a definition itself. What it
should be stands in checks.txt, as SHA-256 of all bits: the rounding mode of a process would spoil results of NumPy at the
same time. tests/portable/test_tensorflow_mode.py compares what the mode computes with NumPy, and with PyTorch's mode.
"""

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from repro.errors import UsageError
from repro.portable.modes.common.checks import apart, fingerprint, published
from repro.portable.modes.common.precision import setting
from repro.portable.modes.tensorflow.dispatcher import dispatch
from repro.portable.numbers.precisions import SLICES

Made = list[Any]
CASES: dict[str, tuple[str, Callable[[], Made]]] = {}
"""The title of each computation, and the function that does it, by its name."""


def register(title: str) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Registers a function by its name; they run in this order, so that the first one that fails is the cause."""

    def registered(compute: Callable[[], Made]) -> Callable[[], Made]:
        CASES[compute.__name__] = title, compute
        return compute

    return registered


# --- numbers: no rounding makes them ----------------------------------------------------------------------------------


@cache
def words(key: int, count: int) -> np.ndarray:
    """Random bits, uint64."""
    return np.random.Philox(key=[5, key]).random_raw(count)


def doubles(key: int, count: int, octaves: int = 20) -> Any:
    """float64 of both signs and all bits, from 1 to 2^octaves."""
    bits = words(key, count)
    exponents = (bits >> np.uint64(52)) % np.uint64(octaves) + np.uint64(1023)
    return tf.constant(((bits & np.uint64(0x800FFFFFFFFFFFFF)) | (exponents << np.uint64(52))).view(np.float64))


def singles(key: int, count: int, octaves: int = 20) -> Any:
    """float32 in the same way."""
    bits = (words(key, count) >> np.uint64(32)).astype(np.uint32)
    exponents = (bits >> np.uint32(23)) % np.uint32(octaves) + np.uint32(127)
    return tf.constant(((bits & np.uint32(0x807FFFFF)) | (exponents << np.uint32(23))).view(np.float32))


# --- cases ------------------------------------------------------------------------------------------------------------


@register("rounding to nearest")
def rounding() -> Made:
    a, b, x, y = singles(0, 256), singles(1, 256), doubles(0, 256), doubles(1, 256)
    made = [each for p, q in ((a, b), (x, y)) for each in (p + q, p - q, p * q, p / q, tf.sqrt(tf.abs(p)))]
    return [*made, tf.cast(x, tf.float32), tf.cast(a, tf.float16), tf.cast(a, tf.bfloat16)]


@register("operations of a graph one by one")
def rewriting() -> Made:
    """Computations that graph rewrites and XLA are known to change."""
    return compiled(singles(0, 256, 4), singles(1, 256, 4)) + compiled(doubles(0, 256, 4), doubles(1, 256, 4))


def planted(a: Any, b: Any) -> Made:
    """A product and a sum; quotients by a number, a row, a root; a number added and taken away; two constants in a row."""
    size = tf.abs(a)
    table = tf.reshape(a, [16, 16])
    return [
        *(a * b + a, a / 3.0, table / table[:1], 1.0 / tf.sqrt(size), a / tf.sqrt(size)),
        *((a + 1e8) - 1e8, (a * 0.3) * 0.7, (a + 0.3) + 0.7),
    ]


def compiled(*arrays: Any) -> Made:
    return list(tf.function(planted, jit_compile=True, autograph=False)(*arrays))


@register("a product of matrices")
def product() -> Made:
    a, b = tf.reshape(singles(2, 768), [6, 128]), tf.reshape(singles(3, 640), [128, 5])
    x, y = tf.reshape(doubles(2, 768), [6, 128]), tf.reshape(doubles(3, 640), [128, 5])
    made = [x @ y]
    for slices in SLICES.values():
        setting.slices = slices
        made += [a @ b, tf.matmul(a, b, transpose_b=False), tf.einsum("ij,jk->ki", a, b)]
    return made


@register("a convolution")
def convolution() -> Made:
    images, kernel = tf.reshape(singles(4, 512), [2, 8, 8, 4]), tf.reshape(singles(5, 288), [3, 3, 4, 8])
    return [tf.nn.conv2d(images, kernel, 1, "SAME"), tf.nn.conv2d(images, kernel, 2, "VALID")]


@register("a sum of numbers")
def sums() -> Made:
    made = []
    for x in (tf.reshape(singles(6, 1024), [8, 128]), tf.reshape(doubles(6, 1024), [8, 128])):
        made += [tf.reduce_sum(x), tf.reduce_mean(x, 0), tf.cumsum(x, 1), tf.math.unsorted_segment_sum(x, ROWS, 3)]
    return made


ROWS = (0, 1, 2, 0, 1, 2, 0, 0)


@register("an elementary function")
def functions() -> Made:
    made = []
    for each in (singles(7, 192, 6), doubles(7, 192, 6)):
        size = tf.abs(each)
        made += [tf.exp(each * 2.0**-5), tf.math.log(size), tf.tanh(each * 2.0**-5), tf.math.erf(each), tf.sin(each)]
        made += [size**0.3, tf.math.rsqrt(size)]
    return [*made, tf.nn.softmax(tf.reshape(singles(7, 192, 6), [4, 48]))]


@register("a random number")
def random() -> Made:
    seed = tf.constant([3, 4])
    return [tf.random.stateless_uniform([32], seed), tf.random.stateless_normal([32], seed)]


# --- the check --------------------------------------------------------------------------------------------------------


def _check_device(device: str, names: Collection[str]) -> None:
    with tf.device(device):
        for name in names:
            if fingerprint(each.numpy() for each in CASES[name][1]()) != published(__file__)[name]:
                raise UsageError(
                    f"portable numerics: TensorFlow {tf.__version__} does not compute {CASES[name][0]} by the rules on "
                    f"{device.rpartition('device:')[2]}; use another version of TensorFlow or of NumPy, or another device"
                )


CHECKED: dict[str, Collection[str]] = {"CPU": CASES, "GPU": ("rounding", "rewriting")}
"""The cases of each kind of device: definitions are computed on CPUs alone."""


def check() -> None:
    """UsageError if a case has other bits on a device; the mode must be on. It counts no operation."""
    before = set(dispatch.allowed)
    dispatch.allowed.clear()
    try:
        with apart(dispatch.counts, dispatch.ran_natively), tf.init_scope():
            for device in tf.config.list_logical_devices():
                if device.device_type in CHECKED:
                    _check_device(device.name, CHECKED[device.device_type])
    finally:
        dispatch.allowed.update(before)
