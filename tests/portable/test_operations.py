"""The operations of portable numerics in each framework against reference.py, with ==, after rounding and before it."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repro.errors import UsageError
from repro.portable import reference, tables
from repro.portable.constants import SUM_BITS
from repro.portable.operations import grids
from support.runs import some
from support.workers import WAYS, ask

FILLS = (
    "normal", "huge", "small", "tiny", "denormal", "zero", "equal", "negative zero", "integers", "infinite", "nan",
    "mixed", "smallest", "limit",
)  # fmt: skip
__all__ = ["ask"]  # a fixture
Made = Callable[[str, int], np.ndarray | None]
Sizes = tuple[int, int, int, int]
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
        case "denormal":
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
    """As operations give them: no denormals, of which JAX and TensorFlow make zeros, and PyTorch does not."""
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


@dataclass(frozen=True)
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
# fmt: off
CASES = {
    "linear": Case("linear.linear", {}, lambda n, t, c, k: [number(n, t, c), number(k, c), number(k)]),
    "linear, one row": Case("linear.linear", {}, lambda n, t, c, k: [number(1, c), number(k, c), none]),
    "embedding": Case("linear.embedding", {}, lambda n, t, c, k: [index(k, n, t), number(k, c)]),
    "convolution": Case("convolution.convolution", geometry(),
        lambda n, t, c, k: [number(1, t + 2, 4, c), number(k, 3, 2, c), number(k)]),
    "convolution, odd": Case("convolution.convolution", ODD,
        lambda n, t, c, k: [number(n, t + 3, 7, 2 * c), number(2 * k, 2, 3, c), none]),
    "max_pool": Case("pooling.max_pool", window((3, 3), (2, 2), (1, 1)), lambda n, t, c, k: [rounded(n, t + 1, 6, c)]),
    "average_pool": Case("pooling.average_pool", window((3, 2), (1, 2), (1, 0)),
        lambda n, t, c, k: [number(n, t + 1, 6, c)]),
    "mean": Case("pooling.mean", {"axes": (1, 2)}, lambda n, t, c, k: [number(n, t, k, c)]),
    "add": Case("pointwise.add", {}, lambda n, t, c, k: [number(n, c), number(n, c)]),
    "relu": Case("pointwise.relu", {}, lambda n, t, c, k: [rounded(n, t, c)]),
    **{name: Case("pointwise.activation", {"name": name}, lambda n, t, c, k: [number(n, t, c)])
       for name in tables.ACTIVATIONS},
    "affine": Case("pointwise.affine", {}, lambda n, t, c, k: [rounded(n, t, c), rounded(c), rounded(c)]),
    "affine, no shift": Case("pointwise.affine", {}, lambda n, t, c, k: [rounded(n, c), rounded(c), none]),
    "rotate": Case("pointwise.rotate", {"base": 10000.0}, lambda n, t, c, k: [rounded(n, k, t, 2 * c)]),
    "dropout": Case("pointwise.dropout", {"rate": 0.25, "rows": False},
        lambda n, t, c, k: [number(n, t, c), index(2**62), index(2**31)]),
    "dropout of rows": Case("pointwise.dropout", {"rate": 0.5, "rows": True},
        lambda n, t, c, k: [number(n, t, 2, c), index(2**62), index(2**31)]),
    "layer norm": Case("normalization.normalize", along((-1,), 1e-5, True, False),
        lambda n, t, c, k: [number(n, t, c)]),
    "RMS norm": Case("normalization.normalize", along((-1,), 1e-6, False, False), lambda n, t, c, k: [number(n, t, c)]),
    "batch norm": Case("normalization.normalize", along((0, 1), 1e-5, True, True),
        lambda n, t, c, k: [number(n, t, c)]),
    "no eps": Case("normalization.normalize", along((1,), 0.0, False, True), lambda n, t, c, k: [rounded(n, t, c)]),
    "normalize_by": Case("normalization.normalize_by", {"eps": 1e-5},
        lambda n, t, c, k: [number(n, t, c), number(c), positive(c)]),
    "attention, causal": Case("attention.attention", {"causal": True, "scale": None},
        lambda n, t, c, k: [number(n, t, c), number(n, t + 1, c), number(n, t + 1, k), none]),
    "attention, mask": Case("attention.attention", {"causal": False, "scale": 0.3},
        lambda n, t, c, k: [number(n, t, c), number(n, k, c), number(n, k, c), mask(t, k)]),
    "attention, both": Case("attention.attention", {"causal": True, "scale": None},
        lambda n, t, c, k: [number(n, t, c), number(n, k, c), number(n, k, c), mask(n, t, k)]),
    "softmax": Case("attention.softmax", {}, lambda n, t, c, k: [number(n, t, c)]),
    "cross_entropy": Case("losses.cross_entropy", {"smoothing": 0.0}, lambda n, t, c, k: [number(t, c), index(c, t)]),
    "smoothing": Case("losses.cross_entropy", {"smoothing": 0.1}, lambda n, t, c, k: [number(t, c), index(c, t)]),
    "mse": Case("losses.mse", {}, lambda n, t, c, k: [number(t, c), number(t, c)]),
    "moving": Case("normalization.moving", {"momentum": 0.001, "factor": 16 / 15},
        lambda n, t, c, k: [rounded(c), positive(c)]),
    "sgd": Case("optimizers.sgd", {"decay": 0.0, "beta": BETA1, "nesterov": False},
        lambda n, t, c, k: [rounded(c, k)] * 3 + STEP),
    "sgd, nesterov": Case("optimizers.sgd", {"decay": DECAY, "beta": BETA1, "nesterov": True},
        lambda n, t, c, k: [rounded(c, k)] * 3 + STEP),
    "adam": Case("optimizers.adam", ADAM | {"decay": DECAY},
        lambda n, t, c, k: [rounded(c, k)] * 3 + [positive(c, k), corrections] + STEP),
    "adamw": Case("optimizers.adam", ADAM | {"decay": DECAY, "decoupled": True},
        lambda n, t, c, k: [rounded(c, k)] * 3 + [positive(c, k), corrections] + STEP),
    "adadelta": Case("optimizers.adadelta", {"decay": DECAY, "rho": BETA1, "eps": 1e-6},
        lambda n, t, c, k: [rounded(c, k)] * 2 + [positive(c, k)] * 2 + STEP),
    "clip": Case("worker.clip", {"limit": 1.0}, lambda n, t, c, k: [rounded(c, k), rounded(t), rounded(n, 1, c)]),
}
# fmt: on


# --- asking the frameworks, and the judge ---------------------------------------------------------------------------


def judged(case: Case, arrays: list[Any], gradient: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """The judge's results and gradients."""
    name = case.operation.split(".")[1]
    with np.errstate(all="ignore"):
        if name == "clip":
            clipped, norm = reference.clip(arrays, **case.options)
            return [*clipped, norm], []
        found = getattr(reference, name)(*arrays, **case.options)
        results = [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]
        if not hasattr(reference, f"{name}_gradients"):
            return results, []
        last = np.resize(gradient, results[0].shape)
        gradients = getattr(reference, f"{name}_gradients")(*arrays, last, **case.options)
    return results, [None if each is None else np.asarray(each) for each in gradients]


def is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype == np.float32


def assert_same(found: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    """Equal bits, where every NaN is one and -0 is 0: neither reaches the state."""
    for i, (f, e) in enumerate(zip(found, expected, strict=True)):
        assert (f.dtype, f.shape) == (e.dtype, e.shape), f"{what} {i}"
        assert np.array_equal(f, e, equal_nan=True), (
            f"{what} {i}: {np.argwhere((f != e) & ~(np.isnan(f) & np.isnan(e)))}"
        )


FRAMEWORKS = ("pytorch", "jax", "tensorflow")
fills, seeds = st.sampled_from(FILLS), st.integers(0, 2**32 - 1)


def settled(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def compared(ask, way: str, case: Case, sizes: Sizes, kinds: tuple[str, ...], seed: int) -> None:
    seed += zlib.crc32(case.operation.encode())
    arrays = [made(kinds[i % 5], seed + i) for i, made in enumerate(case.arrays(*sizes))]
    gradient = np.roll(reference.r32(filled((37,), kinds[5], seed + 9)), seed)
    results, gradients = ask(way, case.operation, case.options, arrays, gradient)
    expected, slopes = judged(case, arrays, gradient)
    if way.startswith("jax"):  # where there is no gradient, it has zeros
        slopes = [np.zeros_like(a) if s is None and is_float(a) else s for s, a in zip(slopes, arrays, strict=False)]
    assert_same(results, expected, "result")
    assert_same(gradients, [slope for slope in slopes if slope is not None], "gradient")


@pytest.mark.parametrize("name", CASES)
@given(st.tuples(*[st.integers(1, 5)] * 4), st.tuples(*[fills] * 6), seeds)
@settled(30)
def test_pytorch(ask, name: str, sizes: Sizes, kinds: tuple[str, ...], seed: int) -> None:
    """Of any size, a batch of one among them."""
    compared(ask, "pytorch eager", CASES[name], sizes, kinds, seed)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", some(WAYS[1:], "pytorch loops", "jax compiled", "tensorflow compiled"))
@given(st.tuples(*[fills] * 6), seeds)
@settled(30)
def test_the_others(ask, way: str, name: str, kinds: tuple[str, ...], seed: int) -> None:
    """Of one size, for which they compile once."""
    compared(ask, way, CASES[name], SIZES, kinds, seed)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("linear", "convolution", "attention"))])
@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch"))
@given(st.tuples(*[fills] * 6), seeds)
@settled(30)
def test_products_of_int8(ask, framework: str, name: str, kinds: tuple[str, ...], seed: int) -> None:
    compared(ask, f"{framework} int8", CASES[name], SIZES, kinds, seed)


LARGE = {
    "linear": Case("linear.linear", {}, lambda *_: [number(4, 5, 32), number(64, 32), rounded(64)]),
    "a long one": Case("linear.linear", {}, lambda *_: [number(34, 320), number(32, 320), none]),
    "convolution": Case("convolution.convolution", geometry(padding=(1, 0)),
        lambda *_: [number(3, 6, 5, 6), number(4, 3, 2, 6), rounded(4)]),
    "convolution, stride": Case("convolution.convolution", geometry((2, 3), (1, 1)),
        lambda *_: [number(2, 7, 8, 4), number(6, 3, 2, 4), rounded(6)]),
    "convolution, odd": CASES["convolution, odd"],
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(st.tuples(*[fills] * 6), seeds)
@settled(20)
def test_products_of_int16(ask, framework: str, name: str, kinds: tuple[str, ...], seed: int) -> None:
    """And loops in float64 for what int16 is not fit for."""
    compared(ask, f"{framework} int16", LARGE[name], SIZES, kinds, seed)


pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


geometries = given(
    pairs, pairs, st.tuples(st.integers(0, 3), st.integers(0, 3)), pairs, st.sampled_from([1, 2, 3]), seeds
)


@geometries
@settled(60)
def test_any_convolution(ask, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    for way in ("pytorch eager", "pytorch int8"):
        convolved(ask, way, kernel, stride, padding, dilation, groups, seed)


@geometries
@settled(20)
def test_any_convolution_in_loops(ask, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    convolved(ask, "pytorch loops", kernel, stride, padding, dilation, groups, seed)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@given(
    st.tuples(*[pairs] * 2), pairs, st.sampled_from([(1, 1), (3, 1), (20, 2)]), st.sampled_from([8, 16, 24, 32]), seeds
)
@settled(6)
def test_convolutions_with_the_batch_last(
    ask, framework: str, shapes, padding, channels, batch: int, seed: int
) -> None:
    """Of pairs of channels, or of pixels where there is one; of more than 15, whose sum int32 does not hold."""
    (kernel, dilation), (inputs, groups) = shapes, channels
    options = geometry((1, 1), (padding[0] - 1, padding[1] - 1), dilation, groups)
    x = filled((batch, 8, 9, inputs * groups), "normal", seed)
    weight = filled((3 * groups, *kernel, inputs), "integers", seed + 1)
    bias = filled((3 * groups,), "normal", seed + 2)
    y = reference.convolution(x, weight, bias, **options)
    last = reference.r32(filled(y.shape, "normal", seed + 9))
    expected = reference.convolution_gradients(x, weight, bias, last, **options)
    order = (3, 1, 2, 0)
    arrays = [np.ascontiguousarray(x.transpose(order)), weight, bias]
    options |= {"layout": "CHWB"}
    way, last = f"{framework} int16", last.transpose(order).ravel()
    results, gradients = ask(way, "convolution.convolution", options, arrays, last)
    assert_same(results, [y.transpose(order)], "result")
    assert_same(gradients, [expected[0].transpose(order), *expected[1:]], "gradient")


def convolved(ask, way: str, kernel, stride, padding, dilation, groups: int, seed: int) -> None:
    def arrays(*sizes: int) -> list[Made]:
        return [number(2, 7, 8, 2 * groups), number(3 * groups, *kernel, 2), number(3 * groups)]

    case = Case("convolution.convolution", geometry(stride, padding, dilation, groups), arrays)
    compared(ask, way, case, SIZES, ("normal",) * 6, seed)


@pytest.mark.parametrize("name", ["max_pool", "average_pool"])
@given(pairs, pairs, st.data(), st.sampled_from(["normal", "integers", "nan", "infinite"]), seeds)
@settled(40)
def test_any_pool(ask, name: str, kernel, stride, data, fill: str, seed: int) -> None:
    padding = tuple(data.draw(st.integers(0, length - 1)) for length in kernel)
    case = Case(f"pooling.{name}", window(kernel, stride, padding), lambda *_: [rounded(2, 5, 6, 3)])
    compared(ask, "pytorch eager", case, SIZES, (fill,) * 6, seed)


# --- before rounding ------------------------------------------------------------------------------------------------
# float32 hides what differs in float64 in all but one of 2^29 numbers.


def unrounded(case: Case, arrays: list[Any], gradient: np.ndarray) -> list[np.ndarray]:
    """What the judge rounds to float32, before."""
    found: list[np.ndarray] = []
    rounding = reference.r32

    def recording(x):
        found.append(np.asarray(x, np.float64))
        return rounding(x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "r32", recording)
        judged(case, arrays, gradient)
    return found


def numbers(x: np.ndarray) -> bytes:
    """The numbers that an array holds, in whatever shape."""
    return np.sort(x.ravel() + 0.0).tobytes()


PLAIN = st.sampled_from(["normal", "mixed", "integers", "tiny", "huge"])
MANY = (23, 17, 12, 8)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("relu", "linear, one row", "no eps")])
@pytest.mark.parametrize("way", some(WAYS, "pytorch eager", "pytorch loops", "jax compiled", "tensorflow graph"))
@given(st.tuples(*[PLAIN] * 6), seeds)
@settled(4)
def test_before_rounding(ask, way: str, name: str, kinds: tuple[str, ...], seed: int) -> None:
    case = CASES[name]
    arrays = [made(kinds[i % 5], seed + i) for i, made in enumerate(case.arrays(*MANY))]
    arrays = [reference.r32(each) if is_float(each) else each for each in arrays]
    gradient = reference.r32(filled((1001,), kinds[5], seed + 9))
    (first, *_), gradients = judged(case, arrays, gradient)
    given = [*arrays, np.resize(gradient, first.shape)] if gradients else arrays
    found, _ = ask(way, case.operation, case.options, given, unrounded=True)
    expected = {numbers(each) for each in unrounded(case, arrays, gradient)}
    for i, each in enumerate(found):
        assert each.dtype == np.float64
        assert numbers(each) in expected, f"what is rounded as number {i} of {len(found)}, {each.shape}, differs"


# --- what needs a case of its own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", some(WAYS, "pytorch eager", "pytorch loops"))
def test_scores_far_below_zero_count_beside_a_mask(ask, way: str) -> None:
    query, key, value = (np.array(x, np.float32)[None] for x in ([[-(2**20)]], [[4], [4], [1]], [[1], [2], [3]]))
    seen = np.array([[True, True, False]])
    options = {"causal": False, "scale": 1.0}
    (found,), _ = ask(way, "attention.attention", options, [query, key, value, seen])
    assert found == 1.5


@pytest.mark.parametrize("way", some(WAYS, "pytorch eager", "pytorch loops", "jax compiled"))
def test_philox(ask, way: str) -> None:
    """The known answers of Random123, tests/kat_vectors, of philox4x32 with 10 rounds."""
    counters = [[0] * 4, [2**32 - 1] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]]
    keys = [[0] * 2, [2**32 - 1] * 2, [0xA4093822, 0x299F31D0]]
    known = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    assert [list(reference.philox(*both)) for both in zip(counters, keys, strict=True)] == known
    (found,), _ = ask(way, "worker.philox", {}, [np.array(counters), np.array(keys)])
    assert found.tolist() == known


def test_a_sum_that_is_too_long_is_refused() -> None:
    grids.check_length(2**27)
    with pytest.raises(UsageError, match="a sum of 134217729 numbers is too long to be exact: 134217728 are the most"):
        grids.check_length(2**27 + 1)
    grids.check_length(2**29, SUM_BITS)
    with pytest.raises(UsageError, match="a sum of 536870913 numbers is too long"):
        grids.check_length(2**29 + 1, SUM_BITS)
