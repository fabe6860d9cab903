"""Portable numerics in JAX: the operations of reference.py, with gradients, on any device.

Images are [C, H, W, B] and kernels [h, w, I, O], as the trainer has them; activations are float64, weights float32. JAX
must be told to have float64 at all: jax.config.update("jax_enable_x64", True).
"""

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp

from repro.portable import rules
from repro.portable.jax.convolution import correlate, correlate_with, spread
from repro.portable.jax.grids import exponent, round_to_grid, to_state
from repro.portable.jax.optimizers import optimizer as optimizer  # one of the operations
from repro.portable.rules import operand_bits
from repro.run.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- layers -----------------------------------------------------------------------------------------------------------


def inputs(images: Array) -> Array:
    """uint8 [B, H, W] -> float64 [1, H, W, B]."""
    return (images.astype(jnp.float64) * rules.SCALE - rules.SHIFT).transpose(1, 2, 0)[None]


def dense(x: Array, kernel: Array, bias: Array) -> Array:
    """[B, I], [I, O], [O] -> [B, O]; see reference.dense."""
    return conv(x.T[:, None, None], kernel[None, None], bias)[:, 0, 0].T


@jax.custom_vjp
def conv(x: Array, kernel: Array, bias: Array) -> Array:
    """Valid convolution with bias; see reference.conv."""
    return _conv(x, kernel, bias)[0]


def _conv(x: Array, kernel: Array, bias: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    terms = kernel[..., 0].size + 1
    rounded, ones = _inputs(x, exponent(x, (0, 1, 2)), terms)
    weights, biases = _weights(kernel, bias, terms)
    return correlate(rounded, weights) + ones * biases[:, None, None, None], (x, kernel, bias)


def _conv_gradients(residuals: tuple[Array, Array, Array], gradient: Array) -> tuple[Array, Array, Array]:
    x, kernel, bias = residuals
    terms = kernel[:, :, 0].size
    each, most = exponent(gradient, (0, 1, 2)), exponent(x, (0, 1, 2))
    weights, _ = _weights(kernel, bias, terms)
    x_gradient = spread(round_to_grid(gradient, each, operand_bits(terms)), weights)
    terms = gradient[0].size * ranks.size
    e, x_e = ranks.maximum(*(found.max(3, keepdims=True) for found in (each, most)))
    whole = round_to_grid(gradient, e, operand_bits(terms))
    rounded, ones = _inputs(x, x_e, terms)
    bias_gradient = (whole * ones).sum((1, 2, 3))
    kernel_gradient, bias_gradient = ranks.total(correlate_with(rounded, whole), bias_gradient)
    return x_gradient, to_state(kernel_gradient), to_state(bias_gradient)


conv.defvjp(_conv, _conv_gradients)


def _inputs(x: Array, e: Array, terms: int) -> tuple[Array, Array]:
    e = jnp.maximum(e, 1)
    bits = operand_bits(terms)
    return round_to_grid(x, e, bits), round_to_grid(jnp.ones(e.shape), e, bits)


def _weights(kernel: Array, bias: Array, terms: int) -> tuple[Array, Array]:
    kernel, bias = kernel.astype(jnp.float64), bias.astype(jnp.float64)
    e = jnp.maximum(exponent(kernel, (0, 1, 2, 3)).reshape(1), exponent(bias, (0,)))
    bits = operand_bits(terms)
    return round_to_grid(kernel, e, bits), round_to_grid(bias, e, bits)


PLACES = A, B, C, D = np.arange(4, dtype=np.uint8)  # in a 2 x 2 window


@jax.custom_vjp
def max_pool(x: Array) -> Array:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    return _max_pool(x)[0]


def _max_pool(x: Array) -> tuple[Array, Array]:
    channels, height, width, batch = x.shape
    x = x.reshape(channels, height // 2, 2, width // 2, 2, batch)
    a, b, c, d = (x[:, :, i, :, j] for i in range(2) for j in range(2))
    upper, lower = jnp.where(a >= b, a, b), jnp.where(c >= d, c, d)
    first = jnp.where(upper >= lower, jnp.where(a >= b, A, B), jnp.where(c >= d, C, D))
    return jnp.where(upper >= lower, upper, lower), first


def _max_pool_gradient(first: Array, gradient: Array) -> tuple[Array]:
    # Joined, not added up: XLA writes each of the four straight to its place.
    a, b, c, d = (jnp.where(first == place, gradient, 0) for place in PLACES)
    x = jnp.stack([jnp.stack([a, b], 3), jnp.stack([c, d], 3)], 2)
    channels, height, _, width, _, batch = x.shape
    return (x.reshape(channels, 2 * height, 2 * width, batch),)


max_pool.defvjp(_max_pool, _max_pool_gradient)


# --- loss -------------------------------------------------------------------------------------------------------------


@jax.custom_vjp
def softmax_cross_entropy(logits: Array, labels: Array) -> Array:
    """The loss of each sample, float64 [B], of logits [B, N] and labels int32 [B]; see reference."""
    return _softmax_cross_entropy(logits, labels)[0]


def _softmax_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    coarse, fine = map(jnp.asarray, rules.exp_tables())
    distance = logits.max(1, keepdims=True) - logits
    steps = _round(jnp.minimum(distance, rules.EXP_END) * 2.0**rules.EXP_BITS).astype(jnp.int64)
    steps = jnp.minimum(steps, 2 ** (2 * rules.EXP_SPLIT) - 1)
    product = coarse[steps >> rules.EXP_SPLIT] * fine[steps & (2**rules.EXP_SPLIT - 1)]
    powers = _round(product * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    total = powers.sum(1, keepdims=True)
    own = jnp.arange(logits.shape[1]) == labels[:, None]
    shares = _round(powers * (1 / total) * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    gradient = shares - own

    coarse, fine = map(jnp.asarray, rules.log_tables(logits.shape[1]))
    index = jnp.floor(total * 2.0**rules.LOG_COARSE_BITS)
    ratio = total / (index * 2.0**-rules.LOG_COARSE_BITS)
    rest = _round((ratio - 1) * 2.0**rules.LOG_FINE_BITS).astype(jnp.int64)
    log_total = coarse[index.astype(jnp.int64) - 2**rules.LOG_COARSE_BITS] + fine[rest]
    on_grid = _round(distance * 2.0**rules.LOSS_BITS) * 2.0**-rules.LOSS_BITS
    return log_total[:, 0] + jnp.where(own, on_grid, 0.0).sum(1), gradient


def _softmax_cross_entropy_gradients(own: Array, gradient: Array) -> tuple[Array, None]:
    return gradient[:, None] * own, None


softmax_cross_entropy.defvjp(_softmax_cross_entropy, _softmax_cross_entropy_gradients)


def _round(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def mean_loss(logits: Array, labels: Array) -> Array:
    """The mean over the batch, float64: an exact sum, times 1 / B."""
    loss = total_loss(logits, labels)
    (everywhere,) = ranks.total(lax.stop_gradient(loss))
    loss += lax.stop_gradient(everywhere - loss)  # sums of losses are exact
    return loss * (1.0 / (len(labels) * ranks.size))


def total_loss(logits: Array, labels: Array) -> Array:
    """The sum over the batch, float64, exact."""
    return softmax_cross_entropy(logits, labels).sum()
