"""A layer, or what lies between two, gives another result of equal inputs."""

import math
from collections.abc import Iterator

import numpy as np

from repro.port.causes.case import ARRAYS, FORWARD, Case, Rule, round_number, rule
from repro.port.causes.formulas import (
    NEAREST,
    Formula,
    agreed,
    follows,
    last_channels,
    numbers,
    own,
    passed,
    results,
    sources,
    told_apart,
)
from repro.port.functions import FUNCTIONS

SHIFTS = ("bias", "beta", "offset")
"""What libraries call the vector that a normalization adds."""
EPSILONS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-12)
"""The usual ones of normalization."""


@rule(
    ARRAYS,
    "give the normalization one epsilon, in one place: most libraries add it to the variance, inside of the root",
)
def normalization(case: Case) -> str | None:
    """Each side's result is a normalization of its own kind: epsilon inside or outside of the root, variance over n or n - 1, by the mean or not."""
    calls = passed(case)
    if case.place is None or case.place.within is None:
        return None
    weights = [*own(case, case.place.within.a).items()]
    scale = next((array for name, array in weights if array.ndim == 1 and name not in SHIFTS), None)
    bias = next((array for name, array in weights if array.ndim == 1 and name in SHIFTS), None)
    if scale is None or any(array.ndim > 1 for _, array in weights):
        return None
    for values in [each for x in agreed(case) for each in (x, last_channels(case, x))]:
        if values.shape[-1] == scale.size:
            both = told_apart(
                case, _normalized(values, scale, bias, [*numbers(calls, "eps", "epsilon"), *EPSILONS], case)
            )
            if both:
                return f"`{case.place.module}` normalizes {case.in_words(*both)}"
    return None


def _normalized(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None, epsilons: list[float], case: Case
) -> Iterator[Formula]:
    shift = np.zeros_like(scale) if bias is None else bias
    kinds = {"each row": (-1,), "each channel of the batch": tuple(range(x.ndim - 1))}
    stored = _stored(case, scale.size)
    for epsilon in dict.fromkeys(epsilons):
        for named, axes in kinds.items():
            mean, count = x.mean(axes, keepdims=True), math.prod(x.shape[axis] for axis in axes)
            for variance, of in (
                (x.var(axes, keepdims=True), "n"),
                (x.var(axes, keepdims=True, ddof=int(count > 1)), "n - 1"),
            ):
                tail = f"the variance over {of}, epsilon {epsilon:g}"
                yield f"{named}, {tail} inside of the root", (x - mean) / np.sqrt(variance + epsilon) * scale + shift
                yield f"{named}, {tail} outside of the root", (x - mean) / (np.sqrt(variance) + epsilon) * scale + shift
            square = (x**2).mean(axes, keepdims=True)
            yield (
                f"{named}, the mean square, epsilon {epsilon:g} inside of the root",
                x / np.sqrt(square + epsilon) * scale + shift,
            )
            yield (
                f"{named}, the mean square, epsilon {epsilon:g} outside of the root",
                x / (np.sqrt(square) + epsilon) * scale + shift,
            )
        for mean, variance in stored:
            yield (
                f"by the running averages, epsilon {epsilon:g}",
                (x - mean) / np.sqrt(variance + epsilon) * scale + shift,
            )


def _stored(case: Case, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The running mean and variance of the layer, if it has them."""
    layer = case.place.within if case.place else None
    pairs = []
    for call in (layer.a, layer.b) if layer else ():
        held = {name.lower(): array for name, array in call.buffers.items() if array.shape == (size,)}
        mean, variance = (
            next((array for name, array in held.items() if word in name), None) for word in ("mean", "var")
        )
        if mean is not None and variance is not None:
            pairs.append((mean, variance))
    return pairs[:1]


@rule(
    ARRAYS,
    "name the function, and its approximation, on both sides: `gelu` is by erf in PyTorch and Keras, by tanh in JAX",
)
def activation(case: Case) -> str | None:
    """Each side's result is a function of the same numbers, one by one, and they are two functions."""
    for x in [*agreed(case), *_dense(case)]:
        both = told_apart(case, ((words, function(x)) for words, function in FUNCTIONS.items()))
        if both:
            return f"the activation is {case.in_words(*both)}"
    return None


def _dense(case: Case) -> list[np.ndarray]:
    """The result of a dense layer before an activation that it may hold."""
    layer = case.place.within if case.place else None
    weights = [*own(case, layer.a).values()] if layer else []
    kernels = [array for array in weights if array.ndim == 2]
    if len(kernels) != 1:
        return []
    kernel = kernels[0].T if case.sides[0].framework.startswith("PyTorch") else kernels[0]
    bias = next((array for array in weights if array.ndim == 1), np.zeros(kernel.shape[1]))
    return [x @ kernel + bias for x in agreed(case)[:1] if x.shape[-1] == kernel.shape[0]]


@rule(
    ARRAYS, "divide by the share that is kept while training, as PyTorch, Flax and Keras do, and do nothing afterwards"
)
def scale_of_dropout(case: Case) -> str | None:
    """Both sides drop the same numbers, and scale the rest by factors that differ."""
    both = results(case)
    for x in agreed(case) if both else ():
        if both is None or any(array.size != x.size for array in both):
            continue
        parts = [_dropped(x, array) for array in both]
        if all(parts) and parts[0][0] is not None and not np.isclose(parts[0][1], parts[1][1], rtol=1e-3):  # type: ignore[index]
            masks = [part[0] for part in parts if part]
            if np.array_equal(masks[0], masks[1]):
                factors = [f"times {part[1]:.4g}" for part in parts if part]
                return f"of {masks[0].mean():.0%} that both drop, the rest is {case.in_words(*factors)}"
    return None


@rule(ARRAYS, "no remedy is needed to train; to compare, set the rate to 0, or read the mask from a file")
def other_numbers_dropped(case: Case) -> str | None:
    """Both sides drop numbers, and not the same ones; or one side drops some, and the other side none."""
    both = results(case)
    for _, x in sources(case) if both else ():
        if both is None or any(array.size != x.size for array in both):
            continue
        parts = [_dropped(x, array) for array in both]
        masks = [part[0] for part in parts if part]
        if len(masks) == 2 and not np.array_equal(masks[0], masks[1]):
            return f"dropout leaves out other numbers: {masks[0].mean():.0%} of them in A, {masks[1].mean():.0%} in B"
        side = 0 if parts[0] else 1
        if len(masks) == 1 and follows(both[1 - side], x, NEAREST):
            return f"dropout leaves out {masks[0].mean():.0%} of the numbers in {'AB'[side]}, and none in {'BA'[side]}"
    return None


def _dropped(x: np.ndarray, result: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The mask of what was dropped, and the factor of the rest; None where a result is nothing of the kind."""
    before, after = x.reshape(-1), np.asarray(result, np.float64).reshape(-1)
    seen = before != 0
    dropped = (after == 0) & seen
    if np.array_equal(dropped, before < 0):
        return None  # a ReLU
    kept = seen & ~dropped
    if not dropped.any() or kept.sum() < 4:
        return None
    factors = after[kept] / before[kept]
    return (dropped[seen], float(np.median(factors))) if np.allclose(factors, np.median(factors), rtol=1e-3) else None


@rule(
    ARRAYS,
    "bring the axes of the image into one order before it is made flat, or permute the rows of the dense layer's weights",
)
def order_of_flattening(case: Case) -> str | None:
    """The same numbers come to a dense layer in another order, and its weights do not follow."""
    layer = case.place.within if case.place and case.quantity == FORWARD else None
    if layer is None or not layer.reordered or not _dense(case):
        return None
    return f"each sample comes to `{layer.a.name}` with the same numbers in another order, as channels first or last make it"


@rule(ARRAYS, "PyTorch's dense weights are [out, in], those of the other libraries [in, out]: transpose once")
def transposed_weights(case: Case) -> str | None:
    """Each side's result is a product with the weights, of which one side has them transposed."""
    layer = case.place.within if case.place else None
    kernels = [array for array in own(case, layer.a).values() if array.ndim == 2] if layer else []
    if len(kernels) != 1 or kernels[0].shape[0] != kernels[0].shape[1] or layer is None:
        return None
    bias = next((array for array in own(case, layer.a).values() if array.ndim == 1), np.zeros(len(kernels[0])))
    for x in agreed(case)[:1]:
        if x.shape[-1] == len(kernels[0]):
            kernel = kernels[0].T if case.sides[0].framework.startswith("PyTorch") else kernels[0]
            both = told_apart(case, [("as they are", x @ kernel + bias), ("transposed", x @ kernel.T + bias)])
            if both:
                return f"the weights of `{layer.a.name}` are taken {case.in_words(*both)}"
    return None


@rule(
    ARRAYS,
    "add it on both sides: a residual, a position embedding or a bias that one side has and the other has not",
)
def missing_sum(case: Case) -> str | None:
    """One side's result is the other's and an array that both have: a sum that one side leaves out."""
    both = results(case)
    if both is None or both[0].shape != both[1].shape:
        return None
    a, b = (np.asarray(array, np.float64) for array in both)
    limit = NEAREST * float(np.linalg.norm(a - b))
    for words, x in sources(case):
        if x.shape == a.shape and limit:
            for sign, side in ((1, "B"), (-1, "A")):
                if np.linalg.norm(b - a - sign * x) <= limit:
                    what = f"what agreed before{words.rstrip(',')}"
                    return f"{side} adds {what}, and the other side does not: a residual, or another sum"
    for axis in {1, a.ndim - 1} if a.ndim > 1 else ():
        units = np.moveaxis(b - a, axis, -1).reshape(-1, a.shape[axis])
        if limit and len(units) > 1 and np.linalg.norm(units - units.mean(0)) <= limit:
            return f"B is A and a vector of {len(units[0])} numbers, the same for each sample: a bias that only one side has"
    return None


@rule(ARRAYS, "look for a factor that one side has and the other has not, such as the root of a width")
def scaled_result(case: Case) -> str | None:
    """One side's result is a multiple of the other's."""
    both = results(case)
    if both is None or both[0].shape != both[1].shape or not both[0].any():
        return None
    a, b = (np.asarray(array, np.float64).reshape(-1) for array in both)
    factor = float(a @ b / (a @ a))
    near = round_number(factor, 3, 1e-5) or factor
    alike = np.linalg.norm(b - factor * a) <= NEAREST / 10 * np.linalg.norm(b)
    return f"the result of B is {near:.6g} times that of A" if alike else None


RULES: tuple[Rule, ...] = (
    transposed_weights,
    order_of_flattening,
    normalization,
    scale_of_dropout,
    other_numbers_dropped,
    missing_sum,
    scaled_result,
    activation,
)
