"""Running averages, as of batch normalization, differ after the first step."""

import numpy as np

from repro.port.agreement import MARGIN, ROUNDING
from repro.port.causes.case import ARRAYS, BUFFERS, Case, Rule, round_number, rule
from repro.port.forward import Layer

NEAR = MARGIN * 128 * ROUNDING


@rule(
    ARRAYS,
    "PyTorch's momentum m is the share of the new value, that of Flax, Haiku and Keras of the old one: write 1 - m",
)
def momentum_of_averages(case: Case) -> str | None:
    """Both averages lie on the line from the old value to the batch's, at other places of it."""
    for name, before, a, b in case.buffers:
        new = _of_batch(case, name)
        if new is None:
            continue
        ours, theirs = _share(before, new, a), _share(before, new, b)
        if ours is not None and theirs is not None and not _close(ours, theirs):
            turned = ": one momentum is 1 minus the other" if _close(ours + theirs, 1.0) else ""
            words = case.in_words(_typed(ours), _typed(theirs))
            return f"the share of the batch's value in the running average `{name}` is {words}{turned}"
    return None


@rule(
    ARRAYS, "PyTorch averages the variance over n - 1, Flax and Keras over n: scale the running variance by n / (n - 1)"
)
def biased_variance(case: Case) -> str | None:
    """The running variance takes the batch's variance over n on one side, and over n - 1 on the other."""
    for name, before, a, b in case.buffers:
        inputs = _inputs(case, name)
        if inputs is None or "var" not in name.lower():
            continue
        counts = [float(np.prod(side.shape)) / before.size for side in inputs]
        new = _variance(inputs[0], before.size)
        if new is None or counts[0] < 2:
            continue
        factor = counts[0] / (counts[0] - 1)
        for biased, unbiased, which in ((a, b, ("n", "n - 1")), (b, a, ("n - 1", "n"))):
            share = _share(before, new, biased)
            if (
                share is not None
                and not _alike(biased, unbiased)
                and _alike(unbiased, before + share * (factor * new - before))
            ):
                return f"the running variance `{name}` is averaged over {case.in_words(*which)}, n = {counts[0]:.0f}"
    return None


def _layer(case: Case, name: str) -> Layer | None:
    owner = name.rpartition(".")[0]
    return next((layer for layer in case.forward.layers if layer.a.name == owner), None) if case.forward else None


def _inputs(case: Case, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    layer = _layer(case, name)
    if case.quantity != BUFFERS or layer is None or not layer.a.inputs or not layer.b.inputs:
        return None
    return next(iter(layer.a.inputs.values())), next(iter(layer.b.inputs.values()))


def _of_batch(case: Case, name: str) -> np.ndarray | None:
    """The mean or variance of the batch in each channel, of A's input."""
    inputs, size = _inputs(case, name), next((before.size for part, before, _, _ in case.buffers if part == name), 0)
    if inputs is None:
        return None
    if "var" in name.lower():
        return _variance(inputs[0], size)
    array = _by_channel(inputs[0], size)
    return None if array is None else array.mean(1)


def _by_channel(array: np.ndarray, size: int) -> np.ndarray | None:
    """The numbers of each channel: float64[channels, n]. The second axis has the channels, or the last one."""
    axis = next((axis for axis in (1, array.ndim - 1) if array.ndim > axis and array.shape[axis] == size), None)
    return None if axis is None else np.moveaxis(np.asarray(array, np.float64), axis, 0).reshape(size, -1)


def _variance(array: np.ndarray, size: int) -> np.ndarray | None:
    channels = _by_channel(array, size)
    return None if channels is None else channels.var(1)


def _share(before: np.ndarray, new: np.ndarray, after: np.ndarray) -> float | None:
    """The share of the new value in an average; None where it is no such average. The variance may be over n - 1."""
    old, now = (np.asarray(array, np.float64) for array in (before, after))
    way = new - old
    if not way.any():
        return None
    share = float(way @ (now - old) / (way @ way))
    return (
        share
        if _alike(now, old + share * way) or np.linalg.norm(now - old - share * way) < 0.02 * np.linalg.norm(now - old)
        else None
    )


def _alike(a: np.ndarray, b: np.ndarray) -> bool:
    return float(np.abs(np.asarray(a, np.float64) - b).max()) <= NEAR * float(np.abs(b).max())


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * max(abs(a), abs(b))


def _typed(share: float) -> str:
    near = round_number(share, 2, 0.02)
    return f"{near if near is not None else share:.3g}"


RULES: tuple[Rule, ...] = (biased_variance, momentum_of_averages)
