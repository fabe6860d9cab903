"""Metrics of two runs side by side: the first value that differs.

Values belong together if they are of one source, name and place (epoch, step). What only one run has is no difference:
many programs log after some seconds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repro.record.metric_names import is_score
from repro.record.metric_values import AFTER, Metric
from repro.record.record import Record
from repro.text import counted, listed

METRICS = "metrics"
"""The channel, beside those of a step."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class MetricDifference:
    """A value of a metric that two runs do not share."""

    metric: Metric
    """The first run's."""
    other: str
    """The second run's value."""
    number: int = 1
    """The number of the value, of those of one place."""
    count: int = 1
    sure: bool = True
    """True if the two values belong together: their own line names the place, or there is no other value of the name."""

    def __str__(self) -> str:
        values = f"{self.metric.value} and {self.other}"
        nth = f" (value {self.number} of {self.count})" if self.count > 1 else ""
        return f"`{self.metric.name}` ({self.metric.source}){self.place}{nth}: {values}"

    @property
    def is_sure_score(self) -> bool:
        """True if a score differs, and not only what was logged at another moment."""
        return self.sure and is_score(self.metric.name)

    @property
    def names(self) -> tuple[str, str]:
        """The source and the name."""
        return self.metric.source, self.metric.name

    @property
    def place(self) -> str:
        """Where in the run it was logged."""
        at = self.metric.at
        return f" {at}" if at.startswith(AFTER) else f" at {at}" if at else ""


def differences(a: Record, b: Record, resumed: bool = False) -> Iterator[MetricDifference]:
    """The values that differ, in the order of `a`; of a resumed run those whose place is known, the last of each place."""
    ours, theirs = by_key(a.metrics), by_key(b.metrics)
    counts = [Counter((metric.source, metric.name) for metric in one.metrics) for one in (a, b)]
    several = max(len(a.processes), len(b.processes)) > 1  # whose lines come in any order
    for key, values in ours.items():
        others = theirs.get(key)
        placed = bool(key[2]) and not key[2].startswith(AFTER)
        if others is None or (resumed and not placed):
            continue
        sure = placed or all(count[key[:2]] == 1 for count in counts)
        if resumed:
            values, others = values[-1:], others[-1:]
        if len(values) != len(others):
            continue
        order: Iterable[tuple[Metric, Metric]] = zip(values, others, strict=True)
        if several:
            order = zip(sorted(values, key=_value), sorted(others, key=_value), strict=True)
        for number, (mine, other) in enumerate(order, 1):
            if mine.value != other.value:
                yield MetricDifference(mine, other.value, number, len(values), sure)
                break


def first(a: Record, b: Record, scores: bool = False) -> MetricDifference | None:
    """The first value that differs; `scores`: of scores whose values surely belong together."""
    return next((one for one in differences(a, b) if not scores or one.is_sure_score), None)


def compared(a: Record, b: Record) -> list[Metric]:
    """The values of `a` that belong to as many of `b`."""
    ours, theirs = by_key(a.metrics), by_key(b.metrics)
    return [one for key, values in ours.items() if len(theirs.get(key, ())) == len(values) for one in values]


def said(metrics: list[Metric]) -> list[str]:
    """Metrics counted: a list of one text, or of none."""
    names = {(metric.source, metric.name) for metric in metrics}
    if not names:
        return []
    return [f"metrics: {len(names)}" + (f" ({counted(len(metrics), 'value')})" if len(metrics) > len(names) else "")]


def resumed_note(whole: Record, rest: Record) -> str:
    """The end of a line about a resumed run with the right steps: a metric that differs, though they are equal."""
    names: dict[str, MetricDifference] = {}
    for one in differences(whole, rest, resumed=True):
        names.setdefault(one.metric.name, one)
    if not names:
        return ""
    differing = next(iter(names.values()))
    also = f"; so do {listed([*names][1:])}" if len(names) > 1 else ""
    return f"; all steps are equal, but a metric differs: {differing}{also}: it may be averaged since the start of a run, or hold what no step shows"


def by_key(metrics: Iterable[Metric]) -> dict[Key, list[Metric]]:
    """The values of each source, name and place."""
    result: dict[Key, list[Metric]] = {}
    for metric in metrics:
        result.setdefault((metric.source, metric.name, metric.at), []).append(metric)
    return result


def _value(metric: Metric) -> str:
    return metric.value
