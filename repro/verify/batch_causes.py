"""Tests of why an evaluation has other scores in other batches.

Both runs are made once more with a change that takes a cause away: if they agree then, and did not without it, that is the cause. Where
more than one of them is there, and none alone is enough, they are taken away together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from repro.compare.reasons.case import RUNS
from repro.inject.batches import KEPT, RUNNING
from repro.verify.batch_sizes import BatchSizes
from repro.verify.hypotheses import RunWith
from repro.verify.questions import BASELINE, Change
from repro.verify.trial import Trial


@dataclass(frozen=True)
class BatchCause:
    """A cause that a change takes away."""

    name: str
    cause: str
    remedy: str
    change: str
    """Of REPRO_CHANGES."""
    how: str
    """The change in words."""
    mark: str
    """What a run leaves in which there was something to change."""
    evidence = RUNS


CAUSES = (
    BatchCause(
        "samples left out",
        "the last, smaller batch is left out, so each batch size scores other samples",
        "leave no sample out of an evaluation (drop_last, drop_remainder)",
        "last_batch=kept",
        "the last batch kept",
        KEPT,
    ),
    BatchCause(
        "statistics of a batch",
        "a batch normalization takes the statistics of each batch, as in training",
        "set the network to evaluation mode (model.eval(), training=False)",
        "statistics=running",
        "running statistics",
        RUNNING,
    ),
)


def said(judgment: BatchSizes, trial: Trial, run: RunWith) -> str | None:
    """The causes that runs show, in words; None where they show none. `trial` has other batches, and other scores."""
    if judgment.agrees(trial):  # last digits alone: runs would agree as well whatever was taken away
        return None
    there: list[BatchCause] = []
    for cause in CAUSES:
        base = run(_with(BASELINE, [cause]))
        if base.error or cause.mark not in base.changed:
            continue
        there.append(cause)
        if _agree(judgment, trial, [cause], run):
            return _text(judgment, trial, [cause])
    return _text(judgment, trial, there) if len(there) > 1 and _agree(judgment, trial, there, run) else None


def _agree(judgment: BatchSizes, trial: Trial, causes: Sequence[BatchCause], run: RunWith) -> bool:
    """True if the scores of both batch sizes agree without these causes."""
    base, other = (run(_with(change, causes)) for change in (BASELINE, trial.change))
    if base.error or other.error:
        return False
    without = replace(judgment, baseline=base, repeat=base)
    return without.obstacle(other) is None and without.agrees(other)


def _with(change: Change, causes: Sequence[BatchCause]) -> Change:
    how = " and ".join(cause.how for cause in causes)
    changes = ("REPRO_CHANGES", ",".join(cause.change for cause in causes))
    return replace(change, label=f"{change.label}, {how}", environment=(*change.environment, changes))


def _text(judgment: BatchSizes, trial: Trial, causes: Sequence[BatchCause]) -> str:
    what = ", and ".join(cause.cause for cause in causes)
    how = " and ".join(cause.how for cause in causes)
    remedies = "; ".join(cause.remedy for cause in causes)
    return f"{trial.change.label}: {what}: with {how} both runs agree{judgment.measured(trial)}; {remedies}"
