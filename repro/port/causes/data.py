"""The batch differs."""

import numpy as np

from repro.port.agreement import MARGIN, ROUNDING, apart
from repro.port.causes.case import ARRAYS, BATCH, Case, Rule, round_number, rule


@rule(ARRAYS, "give both loaders one order: write the permutation down once, and let both read it")
def order_of_samples(case: Case) -> str | None:
    """Both batches hold the same samples, in another order."""
    for a, b in _of_one_shape(case):
        rows = [[row.tobytes() for row in np.ascontiguousarray(side.reshape(len(side), -1))] for side in (a, b)]
        if len({*rows[0]}) > 1 and sorted(rows[0]) == sorted(rows[1]):
            return f"both batches hold the same {len(a)} samples, in another order"
        shared = len({*rows[0]} & {*rows[1]})
        if 1 < shared < len(a) and a.dtype.kind == "f":
            return f"{shared} of the {len(a)} samples of A are in the batch of B, too: the data is gone through in another order"
    return None


@rule(ARRAYS, "normalize in one place, with the same mean and deviation, and in the same units")
def scaled_batch(case: Case) -> str | None:
    """One batch is the other one, scaled and shifted, as a whole or by channels."""
    for a, b in _of_one_shape(case):
        if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu" or not np.ptp(a) or not np.ptp(b):
            continue
        whole = _line(a.ravel(), b.ravel())
        if whole:
            return (
                f"the batch of B is that of A times {_short(whole[0])} plus {_short(whole[1])}: another normalization"
            )
        for axis in range(1, a.ndim):
            size = a.shape[axis]
            if 1 < size <= 16:
                lines = [_line(*(np.take(side, place, axis).ravel() for side in (a, b))) for place in range(size)]
                if all(lines):
                    factors = ", ".join(_short(line[0]) for line in lines if line)
                    return (
                        f"each channel of the batch of B is that of A times {factors}, shifted: another normalization"
                    )
    return None


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """Factor and summand that make y of x, if a line through two of its points makes all of it, within rounding."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    low, high = int(x.argmin()), int(x.argmax())
    if x[low] == x[high] or x.size < 3:
        return None
    factor = (y[high] - y[low]) / (x[high] - x[low])
    shift = y[low] - factor * x[low]
    limit = MARGIN * 8 * ROUNDING * max(1.0, abs(shift) / max(float(np.abs(y).max()), 1e-30))
    return (float(factor), float(shift)) if factor and apart(y, factor * x + shift, limit).agrees else None


def _short(number: float) -> str:
    near = round_number(number, 3, 1e-5)
    return f"{near if near is not None else number:.6g}"


def _of_one_shape(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a, b) for a, b in case.batch if a.shape == b.shape and a.ndim] if case.quantity == BATCH else []


RULES: tuple[Rule, ...] = (order_of_samples, scaled_batch)
