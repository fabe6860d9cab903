"""Portable numerics in JAX: the operations of reference.py, with gradients, on any device.

Images are [C, H, W, B] and kernels [h, w, I, O], as the trainer has them; activations are float64, weights float32. JAX
must be told to have float64 at all: jax.config.update("jax_enable_x64", True).
"""

import jax
import numpy as np
import optax
from jax import Array, lax
from jax import numpy as jnp

from repro.portable import checks, rules
from repro.portable.jax.convolution import correlate, correlate_with, spread
from repro.portable.rules import operand_bits
from repro.run.config import Params
from repro.run.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

BATCH_LAST = (3, 1, 2, 0)  # [B, H, W, C] -> [C, H, W, B], and back

# --- grids ----------------------------------------------------------------------------------------------------------


def exponent(x: Array, axes: tuple[int, ...]) -> Array:
    """The e with 2^(e-1) <= max|x| < 2^e over the axes, int64, kept as axes of size 1."""
    patterns = lax.bitcast_convert_type(jnp.abs(x), jnp.int64).max(axes, keepdims=True)
    return (patterns >> 52) - 1022


def round_to_grid(x: Array, e: Array, bits: int) -> Array:
    """x rounded, half to even, to a multiple of 2^(e - bits); NaN where e is above LIMIT."""
    safe = jnp.clip(e, -rules.LIMIT, rules.LIMIT)
    back = jnp.where(e > rules.LIMIT, jnp.nan, power_of_two(safe - bits))
    return lax.round(x * power_of_two(bits - safe), lax.RoundingMethod.TO_NEAREST_EVEN) * back


def power_of_two(e: Array) -> Array:
    """2^e for int64 e in the normal range, made of its bit pattern."""
    return lax.bitcast_convert_type((e + 1023) << 52, jnp.float64)


def to_state(x: Array) -> Array:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    # Where float64 follows, XLA may drop a conversion, on GPUs and in some fusions on CPUs, but not this rounding.
    rounded = lax.reduce_precision(jnp.where(jnp.abs(x) < rules.TINY, 0.0, x), FLOAT32.nexp, FLOAT32.nmant)
    return rounded.astype(jnp.float32)


FLOAT32 = jnp.finfo(jnp.float32)


# --- layers ---------------------------------------------------------------------------------------------------------


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


# --- loss -----------------------------------------------------------------------------------------------------------


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


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer(params: Params) -> "_Sgd | _Adam":
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return (_Adam if params.optimizer == "adam" else _Sgd)(params)


class _Sgd:
    def __init__(self, params: Params) -> None:
        self.rate, self.decay = rules.as_float32(params.learning_rate), rules.as_float32(params.momentum)

    def init(self, weights: dict[str, Array]) -> optax.TraceState:
        return optax.TraceState(jax.tree.map(jnp.zeros_like, weights))

    def update(self, weights, slots, gradients):
        momenta = {
            name: to_state(self.decay * _double(slots.trace[name]) + gradient) for name, gradient in gradients.items()
        }
        weights = {name: to_state(weight - self.rate * _double(momenta[name])) for name, weight in weights.items()}
        return weights, optax.TraceState(momenta)


class _Adam:
    def __init__(self, params: Params) -> None:
        self.rate = rules.as_float32(params.learning_rate)

    def init(self, weights: dict[str, Array]) -> optax.ScaleByAdamState:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        return optax.ScaleByAdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.copy, zeros))

    def update(self, weights, slots, gradients):
        corrections = jnp.asarray(rules.adam_corrections())
        correction = corrections[:, jnp.minimum(slots.count, corrections.shape[1] - 1)]
        first, second, updated = {}, {}, {}
        for name, weight in weights.items():
            g = _double(gradients[name])
            first[name] = to_state(rules.BETA1 * _double(slots.mu[name]) + (1 - rules.BETA1) * g)
            square = _double(to_state(g * g))
            second[name] = to_state(rules.BETA2 * _double(slots.nu[name]) + (1 - rules.BETA2) * square)
            root = jnp.sqrt(_double(second[name]) * correction[1])
            step = to_state(_double(first[name]) * correction[0] / (root + rules.EPSILON))
            updated[name] = to_state(weight - self.rate * _double(step))
        return updated, optax.ScaleByAdamState(slots.count + 1, first, second)


def _double(x: Array) -> Array:
    return x.astype(jnp.float64)


# --- self-check -----------------------------------------------------------------------------------------------------


def self_check() -> None:
    """ReproError if this library, compiled, computes anything of checks.py with other bits, on this device."""
    images, kernel, *_ = checks.products()
    x, k = images.transpose(BATCH_LAST).astype(np.float64), kernel.astype(np.float64)
    # Compiled at once, as a step is: one by one, they take four times as long.
    (y, dk, dx), found = jax.jit(lambda *given: (_products(*given[:2]), _operations(given[2])))(x, k, checks.inputs())
    found_products = (np.asarray(y.transpose(BATCH_LAST)), np.asarray(dk), np.asarray(dx.transpose(BATCH_LAST)))
    checks.check_products("JAX's matrix product", *found_products)
    checks.check_operations("JAX", found)


def _products(x: Array, kernel: Array) -> tuple[Array, Array, Array]:
    y = correlate(x, kernel)
    return y, correlate_with(x, jnp.sign(y)), spread(jnp.sign(y), kernel)


def _operations(given: dict[str, tuple[Array, ...]]) -> dict[str, tuple[Array, ...]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    loss, pull = jax.vjp(lambda logits: softmax_cross_entropy(logits, labels), logits)
    weight, momentum, gradient = ({"w": array} for array in given["sgd"])
    sgd, slots = _Sgd(checks.SGD).update(weight, optax.TraceState(momentum), gradient)
    weight, first, second, gradient = ({"w": array} for array in given["adam"])
    moments = optax.ScaleByAdamState(jnp.int32(checks.ADAM_COUNT), first, second)
    adam, moments = _Adam(checks.ADAM).update(weight, moments, gradient)
    return {
        "rounding": (_double(to_state(rounding * checks.FACTOR)) * checks.FACTOR,),
        "maximum": (_double(to_state(maximum * checks.FACTOR)).max(1),),
        "grid": (round_to_grid(grid, exponent(grid, (1,)), rules.BITS),),
        "loss": (loss, *pull(jnp.ones_like(loss))),
        "sgd": (sgd["w"], slots.trace["w"]),
        "adam": (adam["w"], moments.mu["w"], moments.nu["w"]),
    }
