"""Reference implementation: every operation in plain NumPy.

Forward and backward, by docs/specification.md.

It shares no code with repro/portable/operations, whose mistakes it is there to find. Read it before you write them for
another framework. Arrays between operations are float32. Inside, a sum that must be exact is one of int64. The rest is
float64, one correctly rounded operation at a time.

An operation's `..._gradients` takes the same arrays, and then `gradient`, that of a loss with respect to the result. It
gives the gradient with respect to each array, None where there is none.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from repro.portable import tables
from repro.portable.constants import (
    BITS,
    EXP_BITS,
    EXP_SPLIT,
    LARGEST_DISTANCE,
    LOSS_BITS,
    MEAN_BITS,
    NODE_BITS,
    POWER_BITS,
    SMALLEST,
    STEP_BITS,
    SUM_BITS,
    TINY,
)

Array = np.ndarray
Pair = tuple[int, int]

# --- rounding, grids, exact sums --------------------------------------------------------------------------------------


def r32(x) -> Array:
    """Rounded once to float32; then magnitudes below 2^-100 become +0."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.asarray(x, np.float64).astype(np.float32)
    return np.where(np.abs(rounded) < np.float32(TINY), np.float32(0), rounded)


def f64(x) -> Array:
    return np.asarray(x, np.float64)


def grid(x: Array, axes: tuple[int, ...], bits: int = BITS) -> tuple[Array, Array]:
    """Integers q, int64, and powers of two p = 2^e, float64, with x close to q p 2^-bits: a p for each group.

    Along the axes lies a group. Its e is the least integer that is -100 or more and has every |x| < 2^e; q is x times
    2^(bits - e), rounded half to even. If a number of the group is not below 2^127, or NaN, then p is NaN, and so will
    be whatever is computed with it.
    """
    largest = np.abs(f64(x)).max(axes, keepdims=True)
    counts = largest < 2.0**127
    e = np.frexp(np.where(counts, largest, 1.0))[1]  # largest = f 2^e with 1/2 <= f < 1
    e = np.where(largest > 0, np.maximum(e, SMALLEST), SMALLEST)
    q = np.rint(np.ldexp(np.where(counts, x, 0.0), bits - e)).astype(np.int64)
    return q, np.where(counts, np.ldexp(1.0, e), np.nan)


def exact_sum(x: Array, axes: tuple[int, ...], bits: int = SUM_BITS) -> Array:
    """The sum of each group on its grid, float64."""
    q, p = grid(x, axes, bits)
    return q.sum(axes, keepdims=True) * (p * 2.0**-bits)


def exact_mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Times the reciprocal of how many there are, rounded to float64: no division."""
    return r32(exact_sum(x, axes, MEAN_BITS) * (1.0 / length(x, axes)))


def exact_dot(a: Array, b: Array, axes: tuple[int, ...]) -> Array:
    """The sum of a b of each group, both on their grids, float64."""
    (q, p), (r, s) = grid(a, axes), grid(b, axes)
    return (q * r).sum(axes, keepdims=True) * (p * s * 2.0 ** (-2 * BITS))


def length(x: Array, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def swap(x: Array) -> Array:
    """Rows and columns of matrices."""
    return np.swapaxes(x, -1, -2)


# --- linear, embedding ------------------------------------------------------------------------------------------------


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x [..., I], weight [O, I], bias [O] -> [..., O]. A grid for each row of x, one for the weight."""
    (q, p), (w, s) = grid(x, (-1,)), grid(weight, (0, 1))
    y = (q @ w.T) * (p * s[0] * 2.0 ** (-2 * BITS))
    return r32(y if bias is None else y + f64(bias))


def linear_gradients(x: Array, weight: Array, bias: Array | None, gradient: Array):
    """That of the weight: x is on the grids of its rows. Their p go into the gradient, with a grid for each output."""
    (q, p), (w, s), (g, r) = grid(x, (-1,)), grid(weight, (0, 1)), grid(gradient, (-1,))
    grad_x = r32((g @ w) * (r * s[0] * 2.0 ** (-2 * BITS)))
    rows, inputs = gradient.reshape(-1, len(weight)), q.reshape(-1, weight.shape[1])
    h, r = grid(rows * p.reshape(-1, 1), (0,))
    grad_weight = r32((h.T @ inputs) * (r.T * 2.0 ** (-2 * BITS)))
    return grad_x, grad_weight, None if bias is None else r32(exact_sum(rows, (0,)))[0]


def embedding(index: Array, weight: Array) -> Array:
    """index int [...], weight [N, C] -> [..., C]."""
    return weight[index]


def embedding_gradients(index: Array, weight: Array, gradient: Array):
    """Each row of the weight has the sum of the gradients of its uses; there is one grid for the whole gradient."""
    q, p = grid(gradient.reshape(-1, weight.shape[1]), (0, 1), SUM_BITS)
    total = np.zeros(weight.shape, np.int64)
    for row, use in zip(index.reshape(-1), q, strict=True):
        total[row] += use
    return None, r32(total * (p * 2.0**-SUM_BITS))


# --- convolution, pooling ---------------------------------------------------------------------------------------------


def sizes(image: Sequence[int], kernel: Sequence[int], stride: Pair, padding: Pair, dilation: Pair = (1, 1)) -> Pair:
    """How often a kernel [h, w] fits into an image [H, W], down and across."""
    down, across = ((image[k] + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1 for k in (0, 1))
    return down, across


def meetings(
    image: Sequence[int], kernel: Sequence[int], stride: Pair, padding: Pair, dilation: Pair = (1, 1)
) -> Iterator[tuple[Pair, Pair, Pair]]:
    """Where an element of a kernel meets one of the image: that of the kernel, of the result, and of the image.

    By the kernel's elements, row by row. What lies in the padding is left out.
    """
    rows, columns = sizes(image, kernel, stride, padding, dilation)
    for i, j in np.ndindex(kernel[0], kernel[1]):
        for r, c in np.ndindex(rows, columns):
            y, x = r * stride[0] + i * dilation[0] - padding[0], c * stride[1] + j * dilation[1] - padding[1]
            if 0 <= y < image[0] and 0 <= x < image[1]:
                yield (i, j), (r, c), (y, x)


def channels(weight: Array, groups: int) -> Iterator[tuple[slice, slice]]:
    """The outputs and the inputs of each group."""
    outputs, inputs = len(weight) // groups, weight.shape[3]
    for k in range(groups):
        yield slice(k * outputs, (k + 1) * outputs), slice(k * inputs, (k + 1) * inputs)


def convolution(x, weight, bias, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x [B, H, W, I], weight [O, h, w, I / groups], bias [O] -> [B, H', W', O].

    A grid for each sample, one for the weight.
    """
    (q, p), (w, s) = grid(x, (1, 2, 3)), grid(weight, (0, 1, 2, 3))
    image, kernel = x.shape[1:3], weight.shape[1:3]
    total = np.zeros((len(x), *sizes(image, kernel, stride, padding, dilation), len(weight)), np.int64)
    for (i, j), (r, c), (row, column) in meetings(image, kernel, stride, padding, dilation):
        for outs, ins in channels(weight, groups):
            total[:, r, c, outs] += q[:, row, column, ins] @ w[outs, i, j].T
    y = total * (p * s * 2.0 ** (-2 * BITS))
    return r32(y if bias is None else y + f64(bias))


def convolution_gradients(x, weight, bias, gradient, stride: Pair, padding: Pair, dilation: Pair, groups: int):
    """As those of linear, with samples for rows."""
    (q, p), (w, s), (g, r) = grid(x, (1, 2, 3)), grid(weight, (0, 1, 2, 3)), grid(gradient, (1, 2, 3))
    h, t = grid(gradient * p, (0, 1, 2))
    grad_x, grad_weight = np.zeros(x.shape, np.int64), np.zeros(weight.shape, np.int64)
    for (i, j), (y, c), (row, column) in meetings(x.shape[1:3], weight.shape[1:3], stride, padding, dilation):
        for outs, ins in channels(weight, groups):
            grad_x[:, row, column, ins] += g[:, y, c, outs] @ w[outs, i, j]
            grad_weight[outs, i, j] += h[:, y, c, outs].T @ q[:, row, column, ins]
    return (
        r32(grad_x * (r * s * 2.0 ** (-2 * BITS))),
        r32(grad_weight * (t.reshape(-1, 1, 1, 1) * 2.0 ** (-2 * BITS))),
        None if bias is None else r32(exact_sum(gradient, (0, 1, 2)))[0, 0, 0],
    )


def max_pool(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """x [B, H, W, C] -> [B, H', W', C]: NaN where a window has one."""
    return _largest(x, kernel, stride, padding)[0]


def _largest(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> tuple[Array, Array]:
    """The largest of each window, and its place there: of equals the first, of NaN the last."""
    best = np.full((len(x), *sizes(x.shape[1:3], kernel, stride, padding), x.shape[3]), -np.inf, np.float32)
    first = np.zeros(best.shape, int)
    for (i, j), (r, c), (row, column) in meetings(x.shape[1:3], kernel, stride, padding):
        here = x[:, row, column]
        better = (here > best[:, r, c]) | np.isnan(here)
        best[:, r, c] = np.where(better, here, best[:, r, c])
        first[:, r, c] = np.where(better, i * kernel[1] + j, first[:, r, c])
    return best, first


def max_pool_gradients(x: Array, gradient: Array, kernel: Pair, stride: Pair, padding: Pair):
    _, first = _largest(x, kernel, stride, padding)
    places = [np.where(first == place, gradient, np.float32(0)) for place in range(kernel[0] * kernel[1])]
    return (_spread(places, x.shape, kernel, stride, padding),)


def average_pool(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """x [B, H, W, C] -> [B, H', W', C]: float64 sums, in the order of a window's places; padding is 0."""
    total = np.zeros((len(x), *sizes(x.shape[1:3], kernel, stride, padding), x.shape[3]))
    for _, (r, c), (row, column) in meetings(x.shape[1:3], kernel, stride, padding):
        total[:, r, c] += x[:, row, column]
    return r32(total * (1.0 / (kernel[0] * kernel[1])))


def average_pool_gradients(x: Array, gradient: Array, kernel: Pair, stride: Pair, padding: Pair):
    places = kernel[0] * kernel[1]
    return (_spread([r32(f64(gradient) * (1.0 / places))] * places, x.shape, kernel, stride, padding),)


def _spread(places: list[Array], shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """What each place of all windows gives to the image below it, one place after the other, each sum rounded."""
    parts = np.zeros((len(places), *shape), np.float32)
    for (i, j), (r, c), (row, column) in meetings(shape[1:3], kernel, stride, padding):
        place = i * kernel[1] + j
        parts[place, :, row, column] = places[place][:, r, c]
    total = parts[0]
    for part in parts[1:]:
        total = r32(f64(total) + f64(part))
    return total


def mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Over these axes, which stay with size 1."""
    return exact_mean(x, axes)


def mean_gradients(x: Array, gradient: Array, axes: tuple[int, ...]):
    return (np.broadcast_to(r32(f64(gradient) * (1.0 / length(x, axes))), x.shape),)


# --- numbers one by one -----------------------------------------------------------------------------------------------


def add(a: Array, b: Array) -> Array:
    """Of one shape."""
    return r32(f64(a) + f64(b))


def add_gradients(a: Array, b: Array, gradient: Array):
    return gradient, gradient


def relu(x: Array) -> Array:
    return np.where(x < 0, np.float32(0), x)


def relu_gradients(x: Array, gradient: Array):
    return (np.where(x > 0, gradient, np.float32(0)),)


def activation(x: Array, name: str) -> Array:
    """x G(x), or G(x) itself for sigmoid; for tanh, both x are within the table. NaN of NaN."""
    factor = _on_line(x, name, derivative=False)
    end = tables.reach(name)
    inside = np.clip(x, -end, end) if name == "tanh" else x
    return np.where(np.isnan(x), x, r32(factor if name == "sigmoid" else f64(inside) * factor))


def activation_gradients(x: Array, gradient: Array, name: str):
    return (np.where(np.isnan(x), x, r32(f64(gradient) * _on_line(x, name, derivative=True))),)


def _on_line(x: Array, name: str, derivative: bool) -> Array:
    """G or the derivative, at the multiple of 2^-20 nearest to x: from the node below it up the line, exactly."""
    nodes, slopes = tables.activation(name, derivative)
    end = tables.reach(name)
    inside = f64(np.clip(np.where(np.isnan(x), 0, x), -end, end))
    steps = np.rint(inside * 2.0**STEP_BITS).astype(np.int64) + end * 2**STEP_BITS
    node, rest = np.divmod(steps, 2 ** (STEP_BITS - NODE_BITS))
    return nodes[node] + slopes[node] * rest


def affine(x: Array, scale: Array, shift: Array | None) -> Array:
    """x scale + shift: [..., C], [C], [C]."""
    y = f64(x) * f64(scale)
    return r32(y if shift is None else y + f64(shift))


def affine_gradients(x: Array, scale: Array, shift: Array | None, gradient: Array):
    rows, values = gradient.reshape(-1, len(scale)), x.reshape(-1, len(scale))
    return (
        r32(f64(gradient) * f64(scale)),
        r32(exact_dot(rows, values, (0,)))[0],
        None if shift is None else r32(exact_sum(rows, (0,)))[0],
    )


def rotate(x: Array, base: float, sign: float = 1.0) -> Array:
    """x [..., T, D]: at position n, the pair (x_i, x_(i + D/2)) is turned by the angle n base^(-2 i / D)."""
    cos, sin = (f64(table) for table in tables.rotations(x.shape[-2], x.shape[-1], base))
    a, b = np.split(f64(x), 2, -1)
    return np.concatenate((r32(a * cos - b * (sign * sin)), r32(b * cos + a * (sign * sin))), -1)


def rotate_gradients(x: Array, gradient: Array, base: float):
    return (rotate(gradient, base, -1.0),)


# --- dropout ----------------------------------------------------------------------------------------------------------


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10, four words of 32 bits from four and two: J. Salmon et al., Parallel random numbers, SC 2011."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (second >> 32) ^ b ^ k, second % 2**32, (first >> 32) ^ d ^ m, first % 2**32
        k, m = (k + 0x9E3779B9) % 2**32, (m + 0xBB67AE85) % 2**32
    return a, b, c, d


def keep(key: int, step: int, shape: tuple[int, ...], rate: float) -> Array:
    """Which numbers of an array dropout keeps: word i decides on number i, and four words have one counter."""
    size = math.prod(shape)
    words: list[int] = []
    for block in range((size + 3) // 4):
        words += philox((block % 2**32, block >> 32, step, 0), (key % 2**32, key >> 32))
    return np.array(words[:size], np.int64).reshape(shape) >= round(rate * 2**32)


def dropout(x: Array, key: Array, step: Array, rate: float, rows: bool) -> Array:
    """x times 1 / (1 - rate), a float32 number. With `rows`, a sample keeps or loses a whole channel."""
    shape = (len(x), *(1,) * (x.ndim - 2), x.shape[-1]) if rows else x.shape
    held = keep(int(key), int(step), shape, rate)
    return np.where(held, r32(f64(x) * float(np.float32(1 / (1 - rate)))), np.float32(0))


def dropout_gradients(x: Array, key: Array, step: Array, gradient: Array, rate: float, rows: bool):
    return dropout(gradient, key, step, rate, rows), None, None


# --- normalization ----------------------------------------------------------------------------------------------------


def normalize(x: Array, axes: tuple[int, ...], eps: float, center: bool, batch: bool) -> tuple[Array, ...]:
    """(x - mean) / sqrt(variance + eps), mean and variance; without `center`, as if the mean were 0, and none is given.

    `batch` says that other ranks have samples, too, and matters to them alone.
    """
    y, mean, variance, _ = _normalized(x, axes, eps, center)
    return (y, mean, variance) if center else (y, variance)


def _normalized(x: Array, axes: tuple[int, ...], eps: float, center: bool):
    share = 1.0 / length(x, axes)
    if center:  # the mean is rounded to the grid of x, and taken away there: integers below 2^24
        q, p = grid(x, axes, MEAN_BITS)
        unit, middle = p * 2.0**-MEAN_BITS, np.rint(q.sum(axes, keepdims=True) * share)
        away, mean = q - middle, r32(middle * unit)
    else:
        away, unit, mean = f64(x), f64(1.0), None
    q, p = grid(away, axes)
    variance = r32((q * q).sum(axes, keepdims=True) * (p * unit * 2.0**-BITS) ** 2 * share)
    root = r32(np.sqrt(f64(variance) + eps))
    inverse = r32(1.0 / f64(root))
    return r32(away * (unit * f64(inverse))), mean, variance, inverse


def normalize_gradients(x: Array, gradient: Array, axes: tuple[int, ...], eps: float, center: bool, batch: bool):
    """(g - mean(g) - y mean(g y)) / root; without `center`, without mean(g)."""
    y, _, _, inverse = _normalized(x, axes, eps, center)
    along = r32(exact_dot(gradient, y, axes) * (1.0 / length(x, axes)))
    rest = f64(gradient) - (f64(exact_mean(gradient, axes)) if center else 0.0)
    return (r32((rest - f64(y) * f64(along)) * f64(inverse)),)


def normalize_by(x: Array, mean: Array, variance: Array, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps): [..., C], [C], [C]."""
    return r32(f64(r32(f64(x) - f64(mean))) * f64(_inverse(variance, eps)))


def normalize_by_gradients(x: Array, mean: Array, variance: Array, gradient: Array, eps: float):
    return r32(f64(gradient) * f64(_inverse(variance, eps))), None, None


def _inverse(variance: Array, eps: float) -> Array:
    return r32(1.0 / f64(r32(np.sqrt(f64(variance) + eps))))


# --- softmax, attention -----------------------------------------------------------------------------------------------


def exponentials(steps: Array, seen: Array) -> tuple[Array, Array, int]:
    """exp of each row of steps, in units of 2^-20, over that of the row's largest: integers in units of 2^-bits.

    Returns them, float64, their sums, of size 1 on the last axis, and bits: 40, or fewer so that sums stay below 2^53.
    What is not seen is 0, and is no largest. A row with NaN has NaN for a sum.
    """
    coarse, fine = tables.exp()
    bits = min(POWER_BITS, 53 - (steps.shape[-1] - 1).bit_length())
    found = np.zeros(steps.shape)
    for at in np.ndindex(steps.shape[:-1]):
        row = steps[at][seen[at]]
        if row.size:
            below = row.max() - row
            index = np.where(np.isnan(below), 0, np.minimum(below, 2**26 - 1)).astype(np.int64)
            power = coarse[index >> EXP_SPLIT] * fine[index % 2**EXP_SPLIT]  # of 26 bits each: exact
            found[at][seen[at]] = np.where(np.isnan(below), np.nan, np.rint(power * 2.0**bits))
    return found, found.sum(-1, keepdims=True), bits


def softmax(x: Array) -> Array:
    """Of the last axis; the sum divides as its reciprocal."""
    powers, total, _ = exponentials(np.rint(f64(x) * 2.0**EXP_BITS), np.ones(x.shape, bool))
    return r32(powers * (1.0 / total))


def softmax_gradients(x: Array, gradient: Array):
    y = softmax(x)
    return (r32(f64(y) * (f64(gradient) - f64(r32(exact_dot(gradient, y, (-1,)))))),)


def attention(query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float | None) -> Array:
    """softmax(query key^T scale) value: [..., T, D], [..., S, D], [..., S, E] -> [..., T, E]. A grid for each row.

    The p of the values go into the shares that a query gives to them, which then have a grid for each query.
    """
    (v, r), shares = grid(value, (-1,)), _shares(query, key, mask, causal, scale)
    h, u = grid(shares * swap(r), (-1,))
    return r32((h @ v) * (u * 2.0 ** (-2 * BITS)))


def _shares(query: Array, key: Array, mask: Array | None, causal: bool, scale: float | None) -> Array:
    """What each query gives to each key, float32 [..., T, S]: together 1, or 0 where it sees none.

    A query sees what the mask says, and if causal no key after its own; the last query has the last key for its own.
    """
    (q, p), (k, s) = grid(query, (-1,)), grid(key, (-1,))
    scores = (q @ swap(k)) * (p * swap(s) * 2.0 ** (-2 * BITS))
    seen = np.ones(scores.shape, bool)
    if mask is not None:
        seen &= mask
    if causal:
        rows, columns = np.indices(scores.shape[-2:])
        seen &= columns - scores.shape[-1] <= rows - scores.shape[-2]
    powers, total, _ = exponentials(np.rint(scores * (_scale(query, scale) * 2.0**EXP_BITS)), seen)
    return r32(powers * (1.0 / np.where(total == 0, 1.0, total)))


def _scale(query: Array, scale: float | None) -> float:
    return float(np.float32(1 / math.sqrt(query.shape[-1]) if scale is None else scale))


def attention_gradients(query, key, value, mask, gradient, causal: bool, scale: float | None):
    """Queries, keys and the gradient keep the grids of their rows. Their p go into what they are multiplied by."""
    (q, p), (k, s), (v, r), (g, w) = (grid(x, (-1,)) for x in (query, key, value, gradient))
    shares, unit = _shares(query, key, mask, causal, scale), 2.0 ** (-2 * BITS)
    along = exact_dot(gradient, attention(query, key, value, mask, causal, scale), (-1,))
    grad_shares = (g @ swap(v)) * (w * swap(r) * unit)
    grad_scores = r32(f64(shares) * (grad_shares - along))
    h, u = grid(grad_scores * swap(s), (-1,))
    grad_query = r32((h @ k) * (u * (unit * _scale(query, scale))))
    h, u = grid(grad_scores * p, (-2,))
    grad_key = r32((swap(h) @ q) * (swap(u) * (unit * _scale(query, scale))))
    h, u = grid(shares * w, (-2,))
    return grad_query, grad_key, r32((swap(h) @ g) * (swap(u) * unit)), None


# --- losses -----------------------------------------------------------------------------------------------------------


def cross_entropy(logits: Array, labels: Array, smoothing: float = 0.0, mean: bool = True) -> Array:
    """Of logits [N, V] and labels int [N], the mean, of no dimension: log(sum of exp) - logit, all over the largest.

    Without `mean` the sum, float64.

    The loss of a sample is a multiple of 2^-24, and so are logarithms and distances. A distance is how far a logit is
    below the largest of its row, 2^12 at most; the label's counts 1 - smoothing, the mean of all counts smoothing.
    """
    z = f64(logits)
    _, total, bits = exponentials(np.rint(z * 2.0**EXP_BITS), np.ones(z.shape, bool))
    losses = []
    for row, label, s in zip(z, labels, total[:, 0], strict=True):
        if np.isnan(s):
            losses.append(np.nan)
            continue
        distances = np.rint(np.minimum(row.max() - row, LARGEST_DISTANCE) * 2.0**LOSS_BITS)
        distance = distances[label]
        if smoothing:
            distance = np.rint(distance * (1.0 - smoothing)) + np.rint(distances.sum() * (smoothing / len(row)))
        losses.append(logarithm(float(s) * 2.0**-bits) + float(distance) * 2.0**-LOSS_BITS)
    return r32(np.sum(losses) * (1.0 / len(losses))) if mean else np.sum(losses)


def logarithm(s: float) -> float:
    """Of 1 <= s < 2^63, s = 2^k (j / 2^8) (1 + rest / 2^20): three logarithms by tables, multiples of 2^-24."""
    powers_of_two, coarse, fine = tables.log()
    k = math.frexp(s)[1] - 1
    m = math.ldexp(s, -k)
    j = math.floor(m * 2**8)
    rest = round((m / (j * 2.0**-8) - 1.0) * 2.0**20)
    return float(powers_of_two[k] + coarse[j - 2**8] + fine[rest])


def cross_entropy_gradients(logits: Array, labels: Array, gradient: Array, smoothing: float = 0.0, mean: bool = True):
    """Softmax, a multiple of 2^-40, less the target: 1 - smoothing for the label, and smoothing / V for every class."""
    powers, total, _ = exponentials(np.rint(f64(logits) * 2.0**EXP_BITS), np.ones(logits.shape, bool))
    target = np.zeros(logits.shape)
    target[np.arange(len(labels)), labels] = 1.0 - smoothing
    target = target + smoothing / logits.shape[1]
    residual = r32(np.rint(powers * (1.0 / total) * 2.0**POWER_BITS) * 2.0**-POWER_BITS - target)
    share = r32(f64(gradient) * (1.0 / len(logits) if mean else 1.0))
    return r32(f64(residual) * f64(share)), None


def mse(x: Array, target: Array) -> Array:
    """The mean of (x - target)^2, of no dimension."""
    away = r32(f64(x) - f64(target)).reshape(-1)
    return r32(exact_dot(away, away, (0,))[0] * (1.0 / away.size))


def mse_gradients(x: Array, target: Array, gradient: Array):
    share = r32(f64(gradient) * (2.0 / x.size))
    grad_x = r32(f64(r32(f64(x) - f64(target))) * f64(share))
    return grad_x, -grad_x


# --- optimizers -------------------------------------------------------------------------------------------------------
# Constants are float32 numbers, but eps: products with them are exact. Each gives the weight, then its slots.


def moving(old: Array, new: Array, momentum: float, factor: float = 1.0) -> Array:
    """A moving average: (1 - momentum) old + momentum new, for new times factor; both shares rounded to float32."""
    old_share, new_share = float(np.float32(1.0 - momentum)), float(np.float32(momentum))
    return r32(f64(old) * old_share + f64(r32(f64(new) * factor)) * new_share)


def _decayed(weight: Array, gradient: Array, decay: float) -> Array:
    return r32(f64(gradient) + decay * f64(weight)) if decay else gradient


def sgd(weight, gradient, momentum, rate: float, decay: float, beta: float, nesterov: bool) -> tuple[Array, Array]:
    """v = beta v + g, w = w - rate v; with Nesterov's momentum w = w - rate (g + beta v). g has decay w added."""
    gradient = _decayed(weight, gradient, decay)
    momentum = r32(beta * f64(momentum) + f64(gradient))
    step = r32(f64(gradient) + beta * f64(momentum)) if nesterov else momentum
    return r32(f64(weight) - rate * f64(step)), momentum


def adam(weight, gradient, first, second, corrections, rate, decay, beta1, beta2, eps, decoupled: bool):
    """D. Kingma and J. Ba, arXiv 1412.6980; decoupled: I. Loshchilov and F. Hutter, arXiv 1711.05101.

    corrections: 1 / (1 - beta1^t) and 1 / (1 - beta2^t) of this step, float64.
    """
    gradient = gradient if decoupled else _decayed(weight, gradient, decay)
    square = r32(f64(gradient) * f64(gradient))
    first = r32(beta1 * f64(first) + tables.float32(1.0 - beta1) * f64(gradient))
    second = r32(beta2 * f64(second) + tables.float32(1.0 - beta2) * f64(square))
    step = r32(f64(first) * corrections[0] / (np.sqrt(f64(second) * corrections[1]) + eps))
    if decoupled:
        step = _decayed(weight, step, decay)
    return r32(f64(weight) - rate * f64(step)), first, second


def adadelta(weight, gradient, squares, updates, rate: float, decay: float, rho: float, eps: float):
    """M. Zeiler, arXiv 1212.5701."""
    gradient = f64(_decayed(weight, gradient, decay))
    squares = r32(rho * f64(squares) + tables.float32(1.0 - rho) * f64(r32(gradient * gradient)))
    above, below = f64(r32(np.sqrt(f64(updates) + eps))), f64(r32(np.sqrt(f64(squares) + eps)))
    step = f64(r32(f64(r32(above / below)) * gradient))
    updates = r32(rho * f64(updates) + tables.float32(1.0 - rho) * f64(r32(step * step)))
    return r32(f64(weight) - rate * step), squares, updates


def clip(gradients: list[Array], limit: float) -> tuple[list[Array], Array]:
    """Each times limit / (norm + 1e-6), where that is below 1, and the norm of all. Their squares add up in order."""
    total = 0.0
    for gradient in gradients:
        flat = gradient.reshape(-1)
        total += exact_dot(flat, flat, (0,))[0]
    norm = r32(np.sqrt(total))
    ratio = r32(limit / (f64(norm) + 1e-6))
    factor = f64(1.0 if ratio > 1 else ratio)
    return [r32(f64(gradient) * factor) for gradient in gradients], norm
