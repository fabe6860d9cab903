"""The models' results agree, and the loss does not."""

from collections.abc import Iterator

import numpy as np

from repro.port.agreement import MARGIN, ROUNDING
from repro.port.causes.case import ARRAYS, LOSS, Case, Rule, round_number, rule

NEAR = MARGIN * 64 * ROUNDING
"""The relative distance at which a float32 loss follows from a formula."""

SHARES = (0.1, 0.05, 0.2)
"""The usual ones of label smoothing."""
Formula = tuple[str, float]
"""Its name, and the loss that it makes."""


@rule(ARRAYS, "write the loss with one reduction on both sides; per-sample losses show which")
def another_reduction(case: Case) -> str | None:
    """The loss of each side follows from the same results and targets by a formula of its own: mean or sum, of all or of those that a mask keeps, smoothed or not."""
    if case.quantity != LOSS or case.losses is None or case.logits is None:
        return None
    known = [_formulas(case, side) for side in (0, 1)]
    fitting = [{name for name, value in of if _near(loss, value)} for of, loss in zip(known, case.losses, strict=True)]
    smooth = [_smoothing(case, side) for side in (0, 1)]
    words = []
    for side in (0, 1):
        alone = [name for name, _ in known[side] if name in fitting[side] - fitting[1 - side]]
        words.append(alone[0] if alone else smooth[side])
    if words[0] and words[1] and words[0] != words[1]:
        return f"the loss is {case.in_words(words[0], words[1])}, of equal results of the models"
    return None


@rule(ARRAYS, "look for a reduction, a mask or a number of devices that one side has and the other has not")
def scaled_loss(case: Case) -> str | None:
    """The losses differ by a whole factor, such as a number of samples."""
    if case.quantity != LOSS or case.losses is None or not all(case.losses):
        return None
    ratio = case.losses[1] / case.losses[0]
    whole = ratio if ratio > 1 else 1 / ratio
    if round(whole) < 2 or abs(whole - round(whole)) > NEAR * whole:
        return None
    larger, sizes = ("B" if ratio > 1 else "A"), _sizes(case)
    named = f", {sizes[round(whole)]}" if round(whole) in sizes else ""
    return f"the loss of {larger} is {round(whole)} times that of the other side{named}"


@rule(ARRAYS, "put the term into both losses, or give both optimizers a weight decay that is a part of the gradient")
def decay_in_the_loss(case: Case) -> str | None:
    """The losses differ by a multiple of the sum of squares of the weights, by a factor that somebody would have typed."""
    if case.quantity != LOSS or case.losses is None:
        return None
    weights = [np.asarray(array, np.float64) for array in case.sides[0].initial.values()]
    difference = case.losses[0] - case.losses[1]
    for words, some in (("weights", weights), ("matrices", [array for array in weights if array.ndim > 1])):
        total = float(sum((array**2).sum() for array in some))
        for name, part in ((f"the squares of all {words}", total), (f"half of the squares of all {words}", total / 2)):
            factor = round_number(abs(difference) / part, 1, 1e-4) if part else None
            if factor is not None and abs(difference) > 100 * NEAR * abs(case.losses[0]):
                side = "A" if difference > 0 else "B"
                return f"the loss of {side} has {factor:g} times {name} in it, that of the other side has not"
    return None


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


def _sizes(case: Case) -> dict[int, str]:
    """Numbers that a mean divides by."""
    assert case.logits is not None
    shape = case.logits[0].shape
    sizes = {int(np.prod(shape)): "the number of all numbers that the model returns"}
    sizes |= (
        {int(np.prod(shape[:-1])): "the number of predictions"} | {shape[0]: "the number of samples"} if shape else {}
    )
    return sizes


def _formulas(case: Case, side: int) -> Iterator[Formula] | list[Formula]:
    """Losses that are usual, of the logits or predictions and what the step was given."""
    formulas: list[Formula] = []
    for each, mask in _each(case, side):
        name, losses = each
        formulas += [(f"the mean of {name}", float(losses.mean())), (f"the sum of {name}", float(losses.sum()))]
        if losses.ndim:
            formulas.append((f"the sum of {name} over the number of samples", float(losses.sum() / len(losses))))
        if mask is not None and 0 < mask.sum() < mask.size:
            kept = losses * mask
            formulas += [
                (f"the mean of {name} over what the mask keeps", float(kept.sum() / mask.sum())),
                (f"the mean of {name} over all, with 0 for what the mask leaves out", float(kept.sum() / mask.size)),
                (f"the sum of {name} that the mask keeps", float(kept.sum())),
            ]
    return formulas


def _each(case: Case, side: int) -> Iterator[tuple[tuple[str, np.ndarray], np.ndarray | None]]:
    """The loss of each sample, for each array that may be the targets, with each that may be a mask."""
    logits = np.asarray(case.logits[side], np.float64)  # type: ignore[index]
    given = [*case.inputs[side], *case.inputs[1 - side]]
    for targets in given:
        losses = []
        classes = _classes(targets, logits)
        if classes is not None:
            plain, uniform = _cross_entropy(logits, classes), -_log_shares(logits).mean(-1)
            losses.append(("the cross entropy", plain))
            smoothed = [(share, (1 - share) * plain + share * uniform) for share in SHARES]
            losses += [(f"the cross entropy with labels smoothed by {share:g}", loss) for share, loss in smoothed]
        if targets.dtype.kind == "f" and targets.size == logits.size:
            error = (logits - targets.reshape(logits.shape)) ** 2
            losses += [("the squared error", error), ("half of the squared error", error / 2)]
        for name, loss in losses:
            masks = [one.reshape(loss.shape) for one in given if one.size == loss.size and _is_mask(one)]
            ignored = [targets != -100] if targets.dtype.kind in "iu" and (targets == -100).any() else []
            for mask in [None, *(np.asarray(mask, np.float64) for mask in masks + ignored)]:
                yield (name, loss), mask


def _classes(targets: np.ndarray, logits: np.ndarray) -> np.ndarray | None:
    """The class of each prediction, of numbers or one-hot; None where an array has none."""
    if targets.shape == logits.shape and _is_mask(targets) and (targets.sum(-1) == 1).all():
        return np.asarray(targets.argmax(-1))
    alike = targets.dtype.kind in "iu" and targets.shape == logits.shape[:-1]
    return targets if alike and bool((targets < logits.shape[-1]).all()) else None


def _is_mask(array: np.ndarray) -> bool:
    return bool(np.isin(array, (0, 1)).all())


def _log_shares(logits: np.ndarray) -> np.ndarray:
    moved = logits - logits.max(-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(-1, keepdims=True))


def _cross_entropy(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    classes = np.where(targets >= 0, targets, 0).astype(np.int64)
    return -np.take_along_axis(_log_shares(logits), classes[..., None], -1)[..., 0]


def _smoothing(case: Case, side: int) -> str:
    """Label smoothing whose share is a number that somebody would have typed; empty without."""
    assert case.losses is not None
    logits = np.asarray(case.logits[side], np.float64)  # type: ignore[index]
    for targets in [*case.inputs[side], *case.inputs[1 - side]]:
        classes = _classes(targets, logits)
        if classes is None:
            continue
        plain = float(_cross_entropy(logits, classes).mean())
        uniform = float(-_log_shares(logits).mean())
        count = logits.shape[-1]
        share = (case.losses[side] - plain) / (uniform - plain) if uniform != plain else 0.0
        for value, words in (
            (share, ""),
            (share * (count - 1) / count, f" of which each of the other {count - 1} classes has a part"),
        ):
            near = round_number(value, 2, 1e-4)
            if near is not None and 0 < near < 1:
                return f"the mean of the cross entropy with labels smoothed by {near:g}{words}"
    return ""


RULES: tuple[Rule, ...] = (another_reduction, scaled_loss, decay_in_the_loss)
