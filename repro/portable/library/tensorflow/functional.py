"""Functions of portable numerics for TensorFlow.

The same bits as in PyTorch and JAX, on any device, eagerly, in a tf.function or compiled by XLA. Tensors are float32,
or of integers where it says so, of known shapes; images are [B, H, W, C]. All functions but clip_by_global_norm have
gradients (of the first order), and raise UsageError, with one line, for another dtype or for shapes that do not fit.
What stands here by name alone is in repro/portable/library/functional.py; docs/reference/specification.md says what each computes.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import tensorflow as tf

from repro.portable.arguments import check_count, check_number
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions import optimizers, pointwise
from repro.portable.definitions.xp import Backend as AnyBackend
from repro.portable.library import framework, functional
from repro.portable.library.autograd.tensorflow import apply, once_differentiable
from repro.portable.numbers import tables


class _TensorFlow:
    xp: ClassVar[AnyBackend] = Backend
    apply = staticmethod(apply)
    array, constant = staticmethod(tf.convert_to_tensor), staticmethod(tf.stop_gradient)

    @staticmethod
    def int64(value: Any) -> tf.Tensor:
        return tf.cast(tf.convert_to_tensor(value), tf.int64)

    @staticmethod
    def known(array: tf.Tensor) -> bool:
        return hasattr(array, "numpy")


_of = partial(framework.bind, _TensorFlow, __name__)

linear = _of(functional.linear)
conv2d = _of(functional.conv2d)
max_pool2d = _of(functional.max_pool2d)
avg_pool2d = _of(functional.avg_pool2d)
global_avg_pool2d = _of(functional.global_avg_pool2d)
embedding = _of(functional.embedding)
scaled_dot_product_attention = _of(functional.scaled_dot_product_attention)
relu = _of(functional.relu)
gelu = _of(functional.gelu)
silu = _of(functional.silu)
tanh = _of(functional.tanh)
sigmoid = _of(functional.sigmoid)
softmax = _of(functional.softmax)
dropout = _of(functional.dropout)
layer_norm = _of(functional.layer_norm)
rms_norm = _of(functional.rms_norm)
group_norm = _of(functional.group_norm)
batch_norm = _of(functional.batch_norm)
rotary = _of(functional.rotary)
add = _of(functional.add)
cross_entropy = _of(functional.cross_entropy)
mse = _of(functional.mse)


def fan_out(x: tf.Tensor, copies: int) -> tuple[tf.Tensor, ...]:
    """Copies of x. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """
    check_count("fan_out", "copies", copies)

    @tf.custom_gradient
    def call(x: tf.Tensor):
        def add(*gradients: tf.Tensor) -> tf.Tensor:
            return once_differentiable([pointwise.add_up(Backend, gradients)], *gradients)[0]

        return tuple(tf.identity(x) for _ in range(copies)), add

    return tuple(call(*framework.floats(_TensorFlow, "fan_out", x=x)))


fork = fan_out  # its first name


def clip_by_global_norm(gradients: Mapping[str, tf.Tensor], limit: float) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Gradients times min(1, limit / norm), and the norm over all of them, float32.

    gradients: by name. Squares are added in the order of names.
    """
    check_number("clip_by_global_norm", "limit", limit)
    names = sorted(gradients)
    arrays = framework.floats(_TensorFlow, "clip_by_global_norm", **{name: gradients[name] for name in names})
    clipped, norm = optimizers.clip(Backend, arrays, tables.float32(limit))
    result = dict(zip(names, once_differentiable(clipped, *arrays), strict=True))
    return {name: result[name] for name in gradients}, norm
