"""Portable numerics in NumPy: slow, plain, and the judge of the other implementations; docs/portable.md has the proofs.

Every array is float64 unless said otherwise. No sum here rounds, so no order of summation matters; whatever is not a
sum is one correctly rounded IEEE operation at a time.
"""

import numpy as np

from repro.portable import rules
from repro.portable.rules import operand_bits
from repro.run import float32

# --- grids ----------------------------------------------------------------------------------------------------------


def exponent(x: np.ndarray, axes: tuple[int, ...] | None) -> np.ndarray:
    """The e with 2^(e-1) <= max|x| < 2^e over the axes (None: all), int64, kept as axes of size 1.

    It is read off the bit patterns of the magnitudes, whose order as integers is their order as numbers, with infinity
    and then NaN last. Zero and denormals give -1022 or less, infinity and NaN 1025.
    """
    patterns = np.abs(x).view(np.int64).max(axis=axes, keepdims=True)
    return (patterns >> 52) - 1022


def round_to_grid(x: np.ndarray, e: np.ndarray, bits: int) -> np.ndarray:
    """x rounded, half to even, to a multiple of 2^(e - bits); NaN where e is above LIMIT."""
    e = np.maximum(e, -rules.LIMIT)
    safe = np.minimum(e, rules.LIMIT)
    rounded = np.rint(x * power_of_two(bits - safe)) * power_of_two(safe - bits)
    return np.where(e > rules.LIMIT, np.nan, rounded)


def power_of_two(e: np.ndarray) -> np.ndarray:
    """2^e for int64 e in the normal range, made of its bit pattern."""
    return ((e + 1023) << 52).view(np.float64)


# --- layers ---------------------------------------------------------------------------------------------------------


def patches(x: np.ndarray, height: int, width: int) -> np.ndarray:
    """[B, H, W, C] -> [B, H - height + 1, W - width + 1, height * width * C], in the order of a kernel's elements."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), axis=(1, 2))
    rows, columns = windows.shape[1:3]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(len(x), rows, columns, -1)


def conv(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Valid convolution: [B, H, W, I], [h, w, I, O], [O] -> [B, H - h + 1, W - w + 1, O].

    The bias is one more row of the kernel, against one more input that is always 1 and takes part in the grids. Each
    sample has its own grid, so its result does not depend on the batch it is in.
    """
    height, width, _, outputs = kernel.shape
    rounded, ones = _inputs(x, kernel[..., 0].size + 1, per_sample=True)
    weights, biases = _weights(kernel, bias, kernel[..., 0].size + 1)
    return patches(rounded, height, width) @ weights.reshape(-1, outputs) + ones * biases


def conv_gradients(
    x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients with respect to x, kernel and bias of a loss with this gradient with respect to conv's result.

    The first is one exact product with overlapping windows, not a sum of rounded ones, with a grid for each sample. The
    others sum over samples, with one grid for the whole batch, and are rounded once to float32.
    """
    height, width, inputs, outputs = kernel.shape
    terms = height * width * outputs
    each = round_to_grid(gradient, exponent(gradient, (1, 2, 3)), operand_bits(terms))
    weights, _ = _weights(kernel, bias, terms)
    padded = np.pad(each, ((0, 0), (height - 1, height - 1), (width - 1, width - 1), (0, 0)))
    flipped = weights[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, inputs)
    x_gradient = patches(padded, height, width) @ flipped

    terms = gradient[..., 0].size
    whole = round_to_grid(gradient, exponent(gradient, None), operand_bits(terms)).reshape(-1, outputs)
    rounded, ones = _inputs(x, terms, per_sample=False)
    kernel_gradient = patches(rounded, height, width).reshape(terms, -1).T @ whole
    bias_gradient = (ones * whole).sum(axis=(0, 1, 2))
    return x_gradient, to_state(kernel_gradient.reshape(kernel.shape)), to_state(bias_gradient)


def dense(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[B, I], [I, O], [O] -> [B, O]: a convolution of one pixel."""
    return conv(x[:, None, None, :], kernel[None, None], bias)[:, 0, 0]


def dense_gradients(
    x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As conv_gradients."""
    as_image = (x[:, None, None, :], kernel[None, None], bias, gradient[:, None, None, :])
    x_gradient, kernel_gradient, bias_gradient = conv_gradients(*as_image)
    return x_gradient[:, 0, 0], kernel_gradient[0, 0], bias_gradient


def _inputs(x: np.ndarray, terms: int, per_sample: bool) -> tuple[np.ndarray, np.ndarray]:
    """x on its grid, and the number 1 on the same: the input that belongs to the bias."""
    e = np.maximum(exponent(x, tuple(range(1, x.ndim)) if per_sample else None), 1)
    bits = operand_bits(terms)
    return round_to_grid(x, e, bits), round_to_grid(np.ones_like(e, np.float64), e, bits)


def _weights(kernel: np.ndarray, bias: np.ndarray, terms: int) -> tuple[np.ndarray, np.ndarray]:
    e = np.maximum(exponent(kernel, None).reshape(()), exponent(bias, None).reshape(()))
    bits = operand_bits(terms)
    return round_to_grid(kernel, e, bits), round_to_grid(bias, e, bits)


def max_pool(x: np.ndarray) -> np.ndarray:
    """Maximum of each 2 x 2 window of [B, H, W, C]."""
    return np.take_along_axis(_windows(x), _first_maximum(x)[:, :, :, None], 3)[:, :, :, 0]


def max_pool_gradient(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """To the first of equal maxima, in the order (0, 0), (0, 1), (1, 0), (1, 1)."""
    batch, height, width, channels = x.shape
    spread = np.zeros_like(_windows(x))
    np.put_along_axis(spread, _first_maximum(x)[:, :, :, None], gradient[:, :, :, None], 3)
    spread = spread.reshape(batch, height // 2, width // 2, 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    return spread.reshape(x.shape)


def _windows(x: np.ndarray) -> np.ndarray:
    batch, height, width, channels = x.shape
    split = x.reshape(batch, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    return split.reshape(batch, height // 2, width // 2, 4, channels)


def _first_maximum(x: np.ndarray) -> np.ndarray:
    return _windows(x).argmax(axis=3)


# --- loss -----------------------------------------------------------------------------------------------------------


def softmax_cross_entropy(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each sample [B], a multiple of 2^-30, and the gradient of their sum [B, N], of logits [B, N].

    Labels are int [B].
    """
    coarse, fine = rules.exp_tables()
    distance = logits.max(axis=1, keepdims=True) - logits
    steps = np.rint(np.minimum(distance, rules.EXP_END) * 2.0**rules.EXP_BITS).astype(np.int64)
    steps = np.minimum(steps, 2 ** (2 * rules.EXP_SPLIT) - 1)
    product = coarse[steps >> rules.EXP_SPLIT] * fine[steps & (2**rules.EXP_SPLIT - 1)]
    powers = np.rint(product * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    total = powers.sum(axis=1, keepdims=True)
    own = np.arange(logits.shape[1]) == labels[:, None]
    # Not powers / total: XLA divides by a number that is shared along an axis by multiplying with its reciprocal.
    shares = np.rint(powers * (1 / total) * 2.0**rules.SUM_BITS) * 2.0**-rules.SUM_BITS
    gradient = shares - own

    coarse, fine = rules.log_tables(logits.shape[1])
    index = np.floor(total * 2.0**rules.LOG_COARSE_BITS)
    ratio = total / (index * 2.0**-rules.LOG_COARSE_BITS)
    rest = np.rint((ratio - 1) * 2.0**rules.LOG_FINE_BITS).astype(np.int64)
    log_total = coarse[index.astype(np.int64) - 2**rules.LOG_COARSE_BITS] + fine[rest]
    own_distance = np.where(own, np.rint(distance * 2.0**rules.LOSS_BITS) * 2.0**-rules.LOSS_BITS, 0).sum(axis=1)
    return log_total[:, 0] + own_distance, gradient


# --- state ----------------------------------------------------------------------------------------------------------


def to_state(x: np.ndarray) -> np.ndarray:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return np.where(np.abs(x) < float32.TINY, 0.0, x).astype(np.float32)


def sgd(
    weight: np.ndarray, momentum: np.ndarray, gradient: np.ndarray, learning_rate: float, decay: float
) -> tuple[np.ndarray, np.ndarray]:
    """v = decay v + g; w = w - learning_rate v. Arrays float32, both constants float32 values.

    Each product has 24 bits times 24 and is exact, so that a fused multiply-add gives the same.
    """
    momentum = to_state(decay * momentum.astype(np.float64) + gradient)
    return to_state(weight - learning_rate * momentum.astype(np.float64)), momentum


def adam(
    weight: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    gradient: np.ndarray,
    learning_rate: float,
    corrections: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Adam with the constants of rules. Arrays float32; the corrections are those of rules.adam_corrections()."""
    g = gradient.astype(np.float64)
    first = to_state(rules.BETA1 * first.astype(np.float64) + (1 - rules.BETA1) * g)
    square = to_state(g * g).astype(np.float64)
    second = to_state(rules.BETA2 * second.astype(np.float64) + (1 - rules.BETA2) * square)
    root = np.sqrt(second * corrections[1])
    step = to_state(first * corrections[0] / (root + rules.EPSILON))
    return to_state(weight - learning_rate * step.astype(np.float64)), first, second
