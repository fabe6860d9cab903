"""Points at which a command is stopped.

They are shares of the steps of the baseline. An early one leaves the borders of epochs to come before the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from repro.verify.questions import Change, Question


@dataclass(frozen=True)
class Stop:
    """A point, in steps from where the command began or went on."""

    step: int
    window: int | None = None
    """The step from which on it is stopped sooner, if a checkpoint is written between two backward passes of one."""


def with_stops(question: Question, count: int | None) -> Question:
    """The question with `count` runs for each of its own, stopped at different points; as it is where that is None.

    The first is stopped as soon as there is something to resume from, the others after equal shares of the steps; the
    second right after an epoch has begun, where that is seen; the third within an accumulation window, where there are any,
    as the one run of `kill` is.
    """
    if count is None or count == 1 or not question.resumes:
        return question
    changes = [_at(change, number, count) for change in question.changes for number in range(count)]
    return replace(question, changes=tuple(changes))


def _at(change: Change, number: int, count: int) -> Change:
    """A change begun earlier or later. What is stopped more than once is stopped at points of what is left."""
    begin = number / count
    more = tuple(begin + (1 - begin) * (stop - change.stops[0]) for stop in change.stops[1:])
    window = (number - 1) / count if number == 2 else None
    return replace(
        change, label=f"{change.label} {number + 1}", stops=(begin, *more), at_border=number == 1, window=window
    )


def targets(change: Change, steps: int, borders: Sequence[int] = (), windows: bool = False) -> list[Stop]:
    """The points at which a command of a number of steps is stopped.

    `borders`: the first steps of epochs, as far as they are seen; `windows`: whether a step has several backward passes.
    """
    points = [max(1, int(steps * stop)) for stop in change.stops]
    if change.at_border and borders:
        moved = min(borders, key=lambda border: abs(border - points[0])) - points[0]
        points = [min(point + moved, steps) for point in points]
    stops = [Stop(max(1, point - before)) for before, point in zip([0, *points], points, strict=False)]
    if change.window is not None and windows:
        stops[0] = replace(stops[0], window=max(1, int(steps * change.window)))
    return stops


def gone_on(offsets: Sequence[Sequence[int]]) -> str:
    """After which steps runs went on, each once or several times."""
    return f"went on after step {', '.join(' and '.join(map(str, run)) for run in offsets)}"
