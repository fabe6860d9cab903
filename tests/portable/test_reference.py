"""Reference implementation and tables against float64 and Decimal."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import reference
from repro.portable.numbers import tables
from repro.portable.numbers.constants import TINY

Array = np.ndarray
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

# --- gradients: against differences of the same operation, in plain float64 ------------------------------------------


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def slopes(function: Callable[..., Array], arrays: list[Any], which: int, gradient: Array) -> Array:
    """The gradient of sum(gradient * function), by differences."""
    result = np.zeros(arrays[which].shape)
    for at in np.ndindex(result.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = [array.copy() if i == which else array for i, array in enumerate(arrays)]
            moved[which][at] += step
            ends.append(np.sum(gradient * function(*moved)))
        result[at] = (ends[0] - ends[1]) / 2e-5
    return result


def convolved(x: Array, weight: Array, bias: Array, stride, padding, dilation, groups: int) -> Array:
    (batch, height, width, _), (outputs, rows, columns, inputs) = x.shape, weight.shape
    padded = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    down = (height + 2 * padding[0] - dilation[0] * (rows - 1) - 1) // stride[0] + 1
    across = (width + 2 * padding[1] - dilation[1] * (columns - 1) - 1) // stride[1] + 1
    y = np.zeros((batch, down, across, outputs))
    for r in range(down):
        for c in range(across):
            top, left = r * stride[0], c * stride[1]
            patch = padded[
                :, top : top + dilation[0] * rows : dilation[0], left : left + dilation[1] * columns : dilation[1]
            ]
            for o in range(outputs):
                first = o // (outputs // groups) * inputs
                y[:, r, c, o] = (patch[..., first : first + inputs] * weight[o]).sum((1, 2, 3)) + bias[o]
    return y


def pooled(x: Array, kernel, stride, padding, filling: float, pick) -> Array:
    padded = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)), constant_values=filling)
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (1, 2))
    return pick(windows[:, :: stride[0], :: stride[1]], (-2, -1))


def spread(x: Array, axes, eps: float, center: bool) -> Array:
    x = x - x.mean(axes, keepdims=True) if center else x
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)


def softmaxed(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attended(query: Array, key: Array, value: Array, seen: Array, scale: float) -> Array:
    scores = np.where(seen, query @ np.swapaxes(key, -1, -2) * scale, -1e9)
    return np.where(seen.any(-1, keepdims=True), softmaxed(scores), 0) @ value


def turned(x: Array) -> Array:
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate((a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)), -1)


def surprise(logits: Array, labels: Array, smoothing: float) -> Array:
    logs = -np.log(softmaxed(logits))
    return np.mean((1 - smoothing) * logs[np.arange(len(labels)), labels] + smoothing * logs.mean(1))


def gelu(x: Array) -> Array:
    return x * np.vectorize(lambda each: 0.5 + 0.5 * math.erf(each / math.sqrt(2)))(x)


def gelu_tanh(x: Array) -> Array:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


GRID, POINT = 2.0**-9, 2.0**-18  # of the largest number: operands of 13 bits; tables, or one rounding
TRIANGLE = np.tri(3, 4, 1, bool)
HOLES = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]], bool)
LABELS = np.array([1, 0, 4, 2])
ODD: dict[str, Any] = {"stride": (2, 3), "padding": (2, 1), "dilation": (2, 1), "groups": 2}
POOL: dict[str, Any] = {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 1)}
ROWS = {"axes": (-1,), "eps": 1e-2, "center": True, "batch": False}
BATCH = {"axes": (0, 1), "eps": 1e-2, "center": True, "batch": True}
UNCENTERED = {"axes": (-1,), "eps": 1e-2, "center": False, "batch": False}
# name of the test: name of the operation, options, arrays, the same in float64, the arrays that have a gradient, bound
CASES: dict[str, tuple[str, dict[str, Any], list[Any], Callable[..., Array], tuple[int, ...], float]] = {
    "linear": ("linear", {}, [normal(2, 3, 5), normal(4, 5), normal(4)], lambda x, w, b: x @ w.T + b, (0, 1, 2), GRID),
    "embedding": ("embedding", {}, [np.array([[1, 0], [1, 3]]), normal(4, 3)], lambda i, w: w[i], (1,), POINT),
    "convolution": (
        "convolution",
        ODD,
        [normal(2, 6, 5, 4), normal(4, 2, 3, 2), normal(4)],
        lambda x, w, b: convolved(x, w, b, **ODD),
        (0, 1, 2),
        GRID,
    ),
    "max_pool": (
        "max_pool",
        POOL,
        [normal(2, 5, 4, 2)],
        lambda x: pooled(x, **POOL, filling=-np.inf, pick=np.max),
        (0,),
        POINT,
    ),
    "average_pool": (
        "average_pool",
        POOL,
        [normal(2, 5, 4, 2)],
        lambda x: pooled(x, **POOL, filling=0, pick=np.mean),
        (0,),
        POINT,
    ),
    "mean": ("mean", {"axes": (1, 2)}, [normal(2, 3, 4, 2)], lambda x: x.mean((1, 2), keepdims=True), (0,), POINT),
    "add": ("add", {}, [normal(3, 4), normal(3, 4, seed=1)], np.add, (0, 1), POINT),
    "relu": ("relu", {}, [normal(3, 4)], lambda x: np.maximum(x, 0), (0,), POINT),
    "gelu": ("activation", {"name": "gelu"}, [3 * normal(40)], gelu, (0,), POINT),
    "gelu_tanh": ("activation", {"name": "gelu_tanh"}, [3 * normal(40)], gelu_tanh, (0,), POINT),
    "silu": ("activation", {"name": "silu"}, [3 * normal(40)], lambda x: x / (1 + np.exp(-x)), (0,), POINT),
    "tanh": ("activation", {"name": "tanh"}, [3 * normal(40)], np.tanh, (0,), POINT),
    "sigmoid": ("activation", {"name": "sigmoid"}, [3 * normal(40)], lambda x: 1 / (1 + np.exp(-x)), (0,), POINT),
    "affine": (
        "affine",
        {},
        [normal(2, 3, 4), normal(4), normal(4, seed=1)],
        lambda x, s, b: x * s + b,
        (0, 1, 2),
        GRID,
    ),
    "rotate": ("rotate", {"base": 10000.0}, [normal(2, 5, 6)], turned, (0,), POINT),
    "layer norm": ("normalize", ROWS, [2 + normal(2, 3, 6)], lambda x: spread(x, (-1,), 1e-2, True), (0,), GRID),
    "batch norm": ("normalize", BATCH, [2 + normal(2, 6, 3)], lambda x: spread(x, (0, 1), 1e-2, True), (0,), GRID),
    "RMS norm": ("normalize", UNCENTERED, [2 + normal(2, 3, 6)], lambda x: spread(x, (-1,), 1e-2, False), (0,), GRID),
    "normalize_by": (
        "normalize_by",
        {"eps": 1e-2},
        [normal(2, 3, 4), normal(4), normal(4, seed=1) ** 2],
        lambda x, m, v: (x - m) / np.sqrt(v + 1e-2),
        (0,),
        POINT,
    ),
    "attention, causal": (
        "attention",
        {"causal": True, "scale": None},
        [normal(2, 3, 5), normal(2, 4, 5), normal(2, 4, 6), None],
        lambda q, k, v, _: attended(q, k, v, TRIANGLE, 5**-0.5),
        (0, 1, 2),
        GRID,
    ),
    "attention, mask": (
        "attention",
        {"causal": False, "scale": 0.7},
        [normal(2, 3, 5), normal(2, 4, 5), normal(2, 4, 6), HOLES],
        lambda q, k, v, m: attended(q, k, v, m, 0.7),
        (0, 1, 2),
        GRID,
    ),
    "softmax": ("softmax", {}, [3 * normal(4, 6)], softmaxed, (0,), GRID),
    "cross_entropy": (
        "cross_entropy",
        {"smoothing": 0.0},
        [3 * normal(4, 5), LABELS],
        lambda z, y: surprise(z, y, 0.0),
        (0,),
        POINT,
    ),
    "smoothing": (
        "cross_entropy",
        {"smoothing": 0.2},
        [3 * normal(4, 5), LABELS],
        lambda z, y: surprise(z, y, 0.2),
        (0,),
        POINT,
    ),
    "mse": ("mse", {}, [normal(3, 4), normal(3, 4, seed=1)], lambda x, t: np.mean((x - t) ** 2), (0, 1), GRID),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_right(name: str) -> None:
    operation, options, arrays, plain, differentiable, bound = CASES[name]
    result = getattr(reference, operation)(*arrays, **options)
    result = result[0] if isinstance(result, tuple) else result
    double = [array.astype(float) if array is not None and array.dtype == np.float32 else array for array in arrays]
    assert_close(result, plain(*double), bound)
    gradient = normal(*result.shape, seed=2)
    gradients = getattr(reference, f"{operation}_gradients")(*arrays, gradient, **options)
    assert len(gradients) == len(arrays)
    for i, each in enumerate(gradients):
        if i in differentiable:
            assert_close(each, slopes(plain, double, i, gradient), bound)
        else:
            assert each is None


def assert_close(results: Array, expected: Array, bound: float) -> None:
    assert results.dtype == np.float32 and results.shape == np.shape(expected)
    assert np.abs(results - expected).max() <= bound * np.abs(expected).max()


# --- rounding, grids, sums --------------------------------------------------------------------------------------------


def test_rounding() -> None:
    """Once, half to even, and then below 2^-100 to 0."""
    given = [
        1 + 2**-24,
        1 + 3 * 2**-24,
        1 + 2**-24 + 2**-52,
        -TINY * (1 - 2**-25),
        -TINY * (1 - 2**-24),
        2.0**128,
        -0.0,
    ]
    expected = [1, 1 + 2**-22, 1 + 2**-23, -TINY, 0, np.inf, 0]
    result = reference.r32(np.array(given))
    assert result.tolist() == expected and not np.signbit(result[[4, 6]]).any()


@pytest.mark.parametrize("bits", [13, 23, 24])
@pytest.mark.parametrize("power", [-130, -101, -100, -99, 0, 126])
def test_grids(bits: int, power: int) -> None:
    x = (np.random.default_rng(power + 200).uniform(-1, 1, (50, 7)) * 2.0**power).astype(np.float32)
    x[0] = [0, 0, 2.0**power, 0, 0, 0, 0]
    q, p = reference.grid(x, (1,), bits)
    for row, numbers, unit in zip(x, q, p[:, 0], strict=True):
        largest = max(abs(Fraction(float(each))) for each in row)
        assert (
            unit >= TINY and largest < Fraction(float(unit)) and (unit == TINY or largest >= Fraction(float(unit)) / 2)
        )
        exact = [Fraction(float(each)) / Fraction(float(unit)) * 2**bits for each in row]
        assert [round(each) for each in exact] == numbers.tolist()  # half to even


def test_sums_are_exact() -> None:
    a, b = normal(3, 400) * 2.0**-20, normal(3, 400, seed=1) * 2.0**40
    (q, p), (r, s) = reference.grid(a, (1,)), reference.grid(b, (1,))
    for i, result in enumerate(reference.exact_dot(a, b, (1,))[:, 0]):
        terms = [Fraction(int(x) * int(y), 2**26) for x, y in zip(q[i], r[i], strict=True)]
        assert Fraction(float(result)) == sum(terms) * Fraction(float(p[i, 0])) * Fraction(float(s[i, 0]))


# --- tables -----------------------------------------------------------------------------------------------------------


def sigmoid(x: Decimal) -> tuple[Decimal, Decimal]:
    y = 1 / (1 + (-x).exp())
    return y, y * (1 - y)


def silu(x: Decimal) -> tuple[Decimal, Decimal]:
    s, slope = sigmoid(x)
    return s, s + x * slope


def tanh(x: Decimal) -> tuple[Decimal, Decimal]:
    y = 1 - 2 / ((2 * x).exp() + 1)
    return (y / x if x else Decimal(1)), 1 - y * y


def gelu_by_tanh(x: Decimal) -> tuple[Decimal, Decimal]:
    root, cubic = (2 / PI).sqrt(), Decimal("0.044715")
    s, slope = sigmoid(2 * root * (x + cubic * x**3))
    return s, s + x * slope * 2 * root * (1 + 3 * cubic * x * x)


def gelu_by_erf(x: Decimal) -> tuple[Decimal, Decimal]:
    """By the alternating series of erf, which the table's own does not use."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -40:
        n += 1
        term = -term * x * x / (2 * n)
        total += term / (2 * n + 1)
    density = 1 / (2 * PI).sqrt()
    y = Decimal("0.5") + total * density
    return y, y + x * density * (-x * x / 2).exp()


CURVES = {"gelu": gelu_by_erf, "gelu_tanh": gelu_by_tanh, "silu": silu, "tanh": tanh, "sigmoid": sigmoid}


def multiple(x: Decimal, bits: int) -> Fraction:
    """The multiple of 2^-bits nearest to x."""
    return Fraction(int((x * 2**bits).to_integral_value()), 2**bits)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("derivative", [False, True])
def test_activations(name: str, derivative: bool) -> None:
    nodes, slopes = tables.activation(name, derivative)
    reach = tables.reach(name)
    assert len(nodes) == len(slopes) == 2 * reach * 2**10 + 1
    with localcontext() as context:
        context.prec = 60
        for i in [0, 1, reach * 2**10 - 1, reach * 2**10, *range(7, len(nodes) - 1, 509), len(nodes) - 2]:
            here, there = (multiple(CURVES[name](Decimal(k) / 2**10 - reach)[derivative], 50) for k in (i, i + 1))
            here = Fraction(0) if i == 0 and name != "tanh" else here
            assert Fraction(nodes[i]) == here and Fraction(nodes[i + 1]) == there
            assert Fraction(slopes[i]) == Fraction(math.floor((there - here) * 2**40 + Fraction(1, 2)), 2**50)
    assert slopes[-1] == 0


def test_exp_and_log() -> None:
    with localcontext() as context:
        context.prec = 60
        for table, bits, count in zip(tables.exp(), (7, 20), (2**14, 2**13), strict=True):
            assert len(table) == count
            for i in [0, 1, 2, *range(3, count, 61), count - 1]:
                exact, e = (Decimal(-i) / 2**bits).exp(), math.frexp(table[i])[1]
                assert Fraction(table[i]) == multiple(exact, 26 - e)  # so many significant bits
        powers, coarse, fine = tables.log()
        for table, numbers in (
            (coarse, [Decimal(j) / 2**8 for j in range(2**8, 2**9 + 1)]),
            (fine, [1 + Decimal(r) / 2**20 for r in range(2**12 + 2)]),
            (powers, [Decimal(2) ** k for k in range(64)]),
        ):
            assert [Fraction(each) for each in table] == [multiple(number.ln(), 24) for number in numbers]


def turn(x: Decimal) -> tuple[Decimal, Decimal]:
    """cos and sin."""
    x = x.remainder_near(2 * PI)
    sums, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while n < 8 or abs(term) > Decimal(10) ** -40:
        sums[n % 2] += term if n % 4 < 2 else -term
        n += 1
        term = term * x / n
    return sums[0], sums[1]


def test_rotations_and_rates() -> None:
    with localcontext() as context:
        context.prec = 60
        cos, sin = tables.rotations(300, 6, 500.0)
        for n in range(0, 300, 23):
            for i in range(3):
                exact = turn(n * (Decimal(500).ln() * -i / 3).exp())
                assert (float(cos[n, i]), float(sin[n, i])) == tuple(float(np.float32(float(x))) for x in exact)
        for step in (0, 4, 9, 10, 11, 55, 99, 100, 200):
            done = Decimal(min(max(step - 10, 0), 90)) / 90
            falling = (1 + turn(PI * done)[0]) / 2 * Decimal("0.09") + Decimal("0.01")
            rate = Decimal("0.1") * (step + 1) / 10 if step < 10 else falling
            assert tables.cosine(step, 100, 0.1, 0.01, 10) == float(np.float32(float(rate)))


def test_corrections_of_adam() -> None:
    betas = tables.float32(0.9), tables.float32(0.999)
    both = tables.adam(*betas)
    assert both[:, -1].tolist() == [1, 1] and both[1, -2] > 1
    for t in (1, 2, 3, 10, 100, 1000, 5000):
        for beta, result in zip(betas, both[:, t - 1], strict=True):
            assert abs(Fraction(result) * (1 - Fraction(beta) ** t) - 1) < Fraction(t, 2**52) * Fraction(result)
