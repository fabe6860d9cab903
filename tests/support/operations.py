"""Cases of operations, and their comparison."""

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import reference
from repro.portable.numbers import tables

FILLS = (
    "normal",
    "huge",
    "small",
    "tiny",
    "subnormal",
    "zero",
    "equal",
    "negative zero",
    "integers",
    "infinite",
    "nan",
    "mixed",
    "smallest",
    "limit",
)
Made = Callable[[str, int], np.ndarray | None]
Sizes = tuple[int, int, int, int]
Kinds = tuple[str, ...]
"""The kind of each of up to five arrays, and of the gradient."""
SIZES = (2, 4, 6, 3)


def filled(shape: tuple[int, ...], fill: str, seed: int) -> np.ndarray:
    """An array of an awkward kind, float32."""
    random = np.random.default_rng(seed)
    x: np.ndarray = random.standard_normal(shape)
    below = float(np.nextafter(np.float32(1), np.float32(0)))
    match fill:
        case "huge":
            x *= 2.0**100
        case "small":  # but its squares count as 0
            x *= 2.0**-60
        case "tiny":
            x *= 2.0**-95
        case "subnormal":
            x *= 2.0**-135
        case "zero":
            x = np.zeros(shape)
        case "equal":
            x = np.full(shape, x.flat[0])
        case "negative zero":
            x = np.where(x > 0, -0.0, x)
        case "integers":  # and so ties
            x = random.integers(-3, 4, shape) * 1.0
        case "infinite":
            x.flat[seed % x.size] = random.choice([-np.inf, np.inf])
        case "nan":
            x.flat[seed % x.size] = np.nan
        case "mixed":
            x *= 2.0 ** random.integers(-60, 60, shape)
        case "smallest":  # that is not 0 after rounding, or the next smaller number
            x = random.choice([-1, 0, 1, below], shape) * 2.0**-100
        case "limit":  # a group that is not a number any more, or the largest that is
            x = random.choice([-1, -0.5, 0, 0.5, 1], shape) * random.choice([1, below]) * 2.0**127
    return x.astype(np.float32)


def number(*shape: int) -> Made:
    return lambda fill, seed: filled(shape, fill, seed)


def rounded(*shape: int) -> Made:
    """As operations give them: no subnormals, of which JAX and TensorFlow make zeros, and PyTorch does not."""
    return lambda fill, seed: reference.r32(filled(shape, fill, seed))


def positive(*shape: int) -> Made:
    return lambda fill, seed: np.abs(reference.r32(filled(shape, fill, seed)))


def index(below: int, *shape: int) -> Made:
    return lambda _, seed: np.random.default_rng(seed).integers(0, below, shape)


def mask(*shape: int) -> Made:
    return lambda _, seed: np.random.default_rng(seed).random(shape) < (0.2, 0.6, 1)[seed % 3]


def one_of(*values: float) -> Made:
    return lambda _, seed: np.array(values[seed % len(values)])


def none(fill: str, seed: int) -> None:
    """No bias, no mask."""


def corrections(fill: str, seed: int) -> np.ndarray:
    both = tables.adam(BETA1, BETA2)
    return both[:, seed % 3 * both.shape[1] // 2 - (seed % 3 == 2)].copy()


@dataclass(frozen=True, eq=False)
class Case:
    operation: str
    options: dict[str, Any]
    arrays: Callable[[int, int, int, int], list[Made]]


def geometry(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def window(kernel, stride, padding) -> dict[str, Any]:
    return {"kernel": kernel, "stride": stride, "padding": padding}


def along(axes, eps: float, center: bool, batch: bool) -> dict[str, Any]:
    return {"axes": axes, "eps": eps, "center": center, "batch": batch}


BETA1, BETA2, RATE, DECAY = (tables.float32(x) for x in (0.9, 0.999, 0.1, 0.01))
ODD = geometry((2, 3), (2, 1), (2, 1), 2)
ADAM = {"decay": 0.0, "beta1": BETA1, "beta2": BETA2, "eps": 1e-8, "decoupled": False}
STEP = [one_of(RATE, 1.0)]
CASES = {
    "linear": Case("linear.linear", {}, lambda n, t, c, k: [number(n, t, c), number(k, c), number(k)]),
    "linear, one row": Case("linear.linear", {}, lambda n, t, c, k: [number(1, c), number(k, c), none]),
    "embedding": Case("linear.embedding", {}, lambda n, t, c, k: [index(k, n, t), number(k, c)]),
    "convolution": Case(
        "convolution.convolution",
        geometry(),
        lambda n, t, c, k: [number(1, t + 2, 4, c), number(k, 3, 2, c), number(k)],
    ),
    "convolution, odd": Case(
        "convolution.convolution", ODD, lambda n, t, c, k: [number(n, t + 3, 7, 2 * c), number(2 * k, 2, 3, c), none]
    ),
    "max_pool": Case("pooling.max_pool", window((3, 3), (2, 2), (1, 1)), lambda n, t, c, k: [rounded(n, t + 1, 6, c)]),
    "average_pool": Case(
        "pooling.average_pool", window((3, 2), (1, 2), (1, 0)), lambda n, t, c, k: [number(n, t + 1, 6, c)]
    ),
    "mean": Case("pooling.mean", {"axes": (1, 2)}, lambda n, t, c, k: [number(n, t, k, c)]),
    "add": Case("pointwise.add", {}, lambda n, t, c, k: [number(n, c), number(n, c)]),
    "relu": Case("pointwise.relu", {}, lambda n, t, c, k: [rounded(n, t, c)]),
    **{
        name: Case("pointwise.activation", {"name": name}, lambda n, t, c, k: [number(n, t, c)])
        for name in tables.ACTIVATIONS
    },
    "affine": Case("pointwise.affine", {}, lambda n, t, c, k: [rounded(n, t, c), rounded(c), rounded(c)]),
    "affine, no shift": Case("pointwise.affine", {}, lambda n, t, c, k: [rounded(n, c), rounded(c), none]),
    "rotate": Case("pointwise.rotate", {"base": 10000.0}, lambda n, t, c, k: [rounded(n, k, t, 2 * c)]),
    "dropout": Case(
        "pointwise.dropout",
        {"rate": 0.25, "rows": False},
        lambda n, t, c, k: [number(n, t, c), index(2**62), index(2**31)],
    ),
    "dropout of rows": Case(
        "pointwise.dropout",
        {"rate": 0.5, "rows": True},
        lambda n, t, c, k: [number(n, t, 2, c), index(2**62), index(2**31)],
    ),
    "layer norm": Case(
        "normalization.normalize", along((-1,), 1e-5, True, False), lambda n, t, c, k: [number(n, t, c)]
    ),
    "RMS norm": Case("normalization.normalize", along((-1,), 1e-6, False, False), lambda n, t, c, k: [number(n, t, c)]),
    "batch norm": Case(
        "normalization.normalize", along((0, 1), 1e-5, True, True), lambda n, t, c, k: [number(n, t, c)]
    ),
    "no eps": Case("normalization.normalize", along((1,), 0.0, False, True), lambda n, t, c, k: [rounded(n, t, c)]),
    "normalize_by": Case(
        "normalization.normalize_by", {"eps": 1e-5}, lambda n, t, c, k: [number(n, t, c), number(c), positive(c)]
    ),
    "attention, causal": Case(
        "attention.attention",
        {"causal": True, "scale": None},
        lambda n, t, c, k: [number(n, t, c), number(n, t + 1, c), number(n, t + 1, k), none],
    ),
    "attention, mask": Case(
        "attention.attention",
        {"causal": False, "scale": 0.3},
        lambda n, t, c, k: [number(n, t, c), number(n, k, c), number(n, k, c), mask(t, k)],
    ),
    "attention, both": Case(
        "attention.attention",
        {"causal": True, "scale": None},
        lambda n, t, c, k: [number(n, t, c), number(n, k, c), number(n, k, c), mask(n, t, k)],
    ),
    "softmax": Case("softmax.softmax", {}, lambda n, t, c, k: [number(n, t, c)]),
    "cross_entropy": Case("losses.cross_entropy", {"smoothing": 0.0}, lambda n, t, c, k: [number(t, c), index(c, t)]),
    "smoothing": Case("losses.cross_entropy", {"smoothing": 0.1}, lambda n, t, c, k: [number(t, c), index(c, t)]),
    "mse": Case("losses.mse", {}, lambda n, t, c, k: [number(t, c), number(t, c)]),
    "moving": Case(
        "normalization.moving", {"momentum": 0.001, "factor": 16 / 15}, lambda n, t, c, k: [rounded(c), positive(c)]
    ),
    "sgd": Case(
        "optimizers.sgd",
        {"decay": 0.0, "beta": BETA1, "nesterov": False},
        lambda n, t, c, k: [rounded(c, k)] * 3 + STEP,
    ),
    "sgd, nesterov": Case(
        "optimizers.sgd",
        {"decay": DECAY, "beta": BETA1, "nesterov": True},
        lambda n, t, c, k: [rounded(c, k)] * 3 + STEP,
    ),
    "adam": Case(
        "optimizers.adam",
        ADAM | {"decay": DECAY},
        lambda n, t, c, k: [rounded(c, k)] * 3 + [positive(c, k), corrections] + STEP,
    ),
    "adamw": Case(
        "optimizers.adam",
        ADAM | {"decay": DECAY, "decoupled": True},
        lambda n, t, c, k: [rounded(c, k)] * 3 + [positive(c, k), corrections] + STEP,
    ),
    "adadelta": Case(
        "optimizers.adadelta",
        {"decay": DECAY, "rho": BETA1, "eps": 1e-6},
        lambda n, t, c, k: [rounded(c, k)] * 2 + [positive(c, k)] * 2 + STEP,
    ),
    "clip": Case("worker.clip", {"limit": 1.0}, lambda n, t, c, k: [rounded(c, k), rounded(t), rounded(n, 1, c)]),
}


LARGE = {
    "linear": Case("linear.linear", {}, lambda *_: [number(4, 5, 32), number(64, 32), rounded(64)]),
    "a long one": Case("linear.linear", {}, lambda *_: [number(34, 320), number(32, 320), none]),
    "convolution": Case(
        "convolution.convolution",
        geometry(padding=(1, 0)),
        lambda *_: [number(3, 6, 5, 6), number(4, 3, 2, 6), rounded(4)],
    ),
    "convolution, stride": Case(
        "convolution.convolution",
        geometry((2, 3), (1, 1)),
        lambda *_: [number(2, 7, 8, 4), number(6, 3, 2, 4), rounded(6)],
    ),
    "convolution, odd": CASES["convolution, odd"],
}

# --- comparison -------------------------------------------------------------------------------------------------------


def expected(case: Case, arrays: list[Any], gradient: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """The results and gradients of the reference implementation."""
    name = case.operation.split(".")[1]
    with np.errstate(all="ignore"):
        if name == "clip":
            clipped, norm = reference.clip(arrays, **case.options)
            return [*clipped, norm], []
        result = getattr(reference, name)(*arrays, **case.options)
        results = [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]
        if not hasattr(reference, f"{name}_gradients"):
            return results, []
        last = np.resize(gradient, results[0].shape)
        gradients = getattr(reference, f"{name}_gradients")(*arrays, last, **case.options)
    return results, [None if each is None else np.asarray(each) for each in gradients]


def is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype == np.float32


def assert_same(results: list[np.ndarray], right: list[np.ndarray], what: str) -> None:
    """Equal bits, where every NaN is one and -0 is 0: neither reaches the state."""
    for i, (f, e) in enumerate(zip(results, right, strict=True)):
        assert (f.dtype, f.shape) == (e.dtype, e.shape), f"{what} {i}"
        assert np.array_equal(f, e, equal_nan=True), (
            f"{what} {i}: {np.argwhere((f != e) & ~(np.isnan(f) & np.isnan(e)))}"
        )


@cache
def _given(case: Case, sizes: Sizes, kinds: Kinds, seed: int):
    """Arrays, the gradient, and what the reference implementation computes of them, once for all frameworks."""
    seed += zlib.crc32(case.operation.encode())
    arrays = [made(kinds[i % 5], seed + i) for i, made in enumerate(case.arrays(*sizes))]
    gradient = np.roll(reference.r32(filled((37,), kinds[5], seed + 9)), seed)
    return arrays, gradient, *expected(case, arrays, gradient)


def compare(ask, way: str, case: Case, sizes: Sizes, kinds: Kinds, seed: int) -> None:
    """Fails where a framework's results and gradients are not those of the reference implementation, with ==."""
    arrays, gradient, right, slopes = _given(case, sizes, kinds, seed)
    results, gradients = ask(way, case.operation, case.options, arrays, gradient)
    if way.startswith("jax"):  # where there is no gradient, it has zeros
        slopes = [np.zeros_like(a) if s is None and is_float(a) else s for s, a in zip(slopes, arrays, strict=False)]
    what = f"{case.operation} of {sizes}, {kinds}, {seed}:"
    assert_same(results, right, f"{what} result")
    assert_same(gradients, [slope for slope in slopes if slope is not None], f"{what} gradient")


def numbers(x: np.ndarray) -> bytes:
    """The numbers that an array holds, in whatever shape."""
    return np.sort(x.ravel() + 0.0).tobytes()


MANY = (23, 17, 12, 8)


@cache
def _before_rounding(case: Case, kinds: Kinds, seed: int):
    """Arrays and gradient, if there is one, and all that the reference implementation rounds to float32, before."""
    arrays = [made(kinds[i % 5], seed + i) for i, made in enumerate(case.arrays(*MANY))]
    arrays = [reference.r32(each) if is_float(each) else each for each in arrays]
    gradient = reference.r32(filled((1001,), kinds[5], seed + 9))
    results: list[np.ndarray] = []
    rounding = reference.r32

    def record(x):
        results.append(np.asarray(x, np.float64))
        return rounding(x)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in sys.modules.items():
            if name.startswith("reference") and hasattr(module, "r32"):
                patch.setattr(module, "r32", record)
        (first, *_), gradients = expected(case, arrays, gradient)
    given = [*arrays, np.resize(gradient, first.shape)] if gradients else arrays
    return given, {numbers(each) for each in results}


def compare_before_rounding(ask, way: str, case: Case, kinds: Kinds, seed: int) -> None:
    """float32 hides what differs in float64 in all but one of 2^29 numbers: fails where that differs."""
    given, right = _before_rounding(case, kinds, seed)
    result, _ = ask(way, case.operation, case.options, given, unrounded=True)
    for i, each in enumerate(result):
        assert each.dtype == np.float64
        assert numbers(each) in right, f"what is rounded as number {i} of {len(result)}, {each.shape}, differs"


# --- convolution and pooling of any geometry --------------------------------------------------------------------------


def compare_convolution(ask, way: str, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    def arrays(*sizes: int) -> list[Made]:
        return [number(2, 7, 8, 2 * groups), number(3 * groups, *kernel, 2), number(3 * groups)]

    case = Case("convolution.convolution", geometry(stride, padding, dilation, groups), arrays)
    compare(ask, way, case, SIZES, ("normal",) * 6, seed)


def compare_convolution_with_the_batch_last(
    ask, framework: str, kernel, dilation, padding, inputs: int, groups: int, batch: int, seed: int
) -> None:
    """Of pairs of channels, or of pixels where there is one; of more than 15, whose sum int32 does not hold."""
    options = geometry((1, 1), padding, dilation, groups)
    x = filled((batch, 8, 9, inputs * groups), "normal", seed)
    weight = filled((3 * groups, *kernel, inputs), "integers", seed + 1)
    bias = filled((3 * groups,), "normal", seed + 2)
    y = reference.convolution(x, weight, bias, **options)
    last = reference.r32(filled(y.shape, "normal", seed + 9))
    slopes = reference.convolution_gradients(x, weight, bias, last, **options)
    order = (3, 1, 2, 0)
    arrays = [np.ascontiguousarray(x.transpose(order)), weight, bias]
    options |= {"layout": "CHWB"}
    way, last = f"{framework} int16", last.transpose(order).ravel()
    results, gradients = ask(way, "convolution.convolution", options, arrays, last)
    assert_same(results, [y.transpose(order)], "result")
    assert_same(gradients, [slopes[0].transpose(order), *slopes[1:]], "gradient")


def compare_pool(ask, name: str, kernel, stride, padding, fill: str, seed: int) -> None:
    case = Case(f"pooling.{name}", window(kernel, stride, padding), lambda *_: [rounded(2, 5, 6, 3)])
    compare(ask, "pytorch eager", case, SIZES, (fill,) * 6, seed)
