"""Functions of portable numerics for JAX.

The same bits as in PyTorch and TensorFlow, on any device, eager or compiled. Arrays are float32, or of integers where
it says so; images are [B, H, W, C]. JAX must have float64, which is used inside:
jax.config.update("jax_enable_x64", True). All functions but clip_by_global_norm have gradients (of the first order),
work under jit, and raise UsageError, with one line, for another dtype or for shapes that do not fit. What stands here
by name alone is in repro/portable/library/functional.py; docs/reference/specification.md says what each computes.
"""

from functools import partial
from typing import Any, ClassVar

import jax
from jax import Array
from jax import numpy as jnp

from repro.errors import UsageError
from repro.portable.arguments import check_count, check_number
from repro.portable.backends.jax import Backend
from repro.portable.definitions import optimizers, pointwise
from repro.portable.definitions.xp import Backend as AnyBackend
from repro.portable.library import framework, functional
from repro.portable.library.autograd.jax import apply, once_differentiable
from repro.portable.numbers import tables


def check_float64() -> None:
    """UsageError where JAX has no float64."""
    if jax.dtypes.canonicalize_dtype("float64") != "float64":
        raise UsageError(
            'portable numerics: JAX has no float64; say jax.config.update("jax_enable_x64", True) before anything else'
        )


class _JAX:
    xp: ClassVar[AnyBackend] = Backend
    apply = staticmethod(apply)
    constant = staticmethod(jax.lax.stop_gradient)

    @staticmethod
    def array(value: Any) -> Array:
        check_float64()
        return jnp.asarray(value)

    @staticmethod
    def int64(value: Any) -> Array:
        return jnp.asarray(value, jnp.int64)

    @staticmethod
    def known(array: Array) -> bool:
        return not isinstance(array, jax.core.Tracer)


_of = partial(framework.bind, _JAX, __name__)

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


def fan_out(x: Array, copies: int) -> tuple[Array, ...]:
    """Copies of x. Their gradients are added from the first on, which is needed where x is used more than twice.

    Of two the order does not matter; of more, frameworks add in orders of their own.
    """
    check_count("fan_out", "copies", copies)
    return _fan_out(copies, *framework.floats(_JAX, "fan_out", x=x))


fork = fan_out  # its first name


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _fan_out(copies: int, x: Array) -> tuple[Array, ...]:
    return (x,) * copies


_fan_out.defvjp(
    lambda copies, x: (_fan_out(copies, x), None),
    lambda _, __, gradients: (pointwise.add_up(Backend, gradients),),
)


def clip_by_global_norm(gradients: Any, limit: float) -> tuple[Any, Array]:
    """Gradients times min(1, limit / norm), and the norm over all of them, float32.

    gradients: a pytree. Squares are added in the order of its names, as `dense1/kernel`.
    """
    check_number("clip_by_global_norm", "limit", limit)
    paths, tree = jax.tree_util.tree_flatten_with_path(gradients)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
    order = sorted(range(len(names)), key=names.__getitem__)
    arrays = framework.floats(_JAX, "clip_by_global_norm", **{names[i]: paths[i][1] for i in order})
    clipped, norm = optimizers.clip(Backend, once_differentiable(arrays), tables.float32(limit))
    result = dict(zip(order, clipped, strict=True))
    return jax.tree_util.tree_unflatten(tree, [result[i] for i in range(len(names))]), norm
