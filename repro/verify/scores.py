"""Metrics that differ between two baseline runs, though nothing was changed.

After equal steps a score that differs is an answer to `restart`; any other metric may be a time under another name. All are
left out of the other answers.
"""

from dataclasses import dataclass

from repro.compare.difference import Difference
from repro.compare.metrics import METRICS, MetricDifference, differences
from repro.record.record import Record
from repro.text import counted, listed


@dataclass(frozen=True)
class Unsteady:
    """The metrics that are left out."""

    differing: tuple[MetricDifference, ...]
    """The first value that differs of each."""
    steps: int
    """The number of steps, all of them equal."""

    @property
    def names(self) -> set[tuple[str, str]]:
        """The sources and names of the metrics."""
        return {one.names for one in self.differing}

    @property
    def score(self) -> Difference | None:
        """The first score among them, after equal steps."""
        first = next((one for one in self.differing if one.is_sure_score), None)
        if first is None or not self.steps:
            return None
        return Difference(None, METRICS, [first.metric.name], equal_before=self.steps, measured=first)

    @property
    def note(self) -> str:
        """The metrics in words."""
        first = self.differing[0]
        though = f", though all {counted(self.steps, 'step')} are equal" if self.steps else ""
        others = listed(list(dict.fromkeys(name for _, name in sorted(self.names) if name != first.metric.name)))
        more = f" (so do {others})" if others else ""
        return f"a metric differs from run to run{though}: {first}{more}; the other questions ignore it"


def unsteady(a: Record, b: Record) -> Unsteady | None:
    """The metrics of two baseline runs that are left out, if there are any; scores decide where no step was seen."""
    differing = [one for one in differences(a, b) if a.steps or not one.is_sure_score]
    names = {one.names for one in differing}
    rest = [metric for metric in a.metrics if (metric.source, metric.name) not in names]
    if not differing or not (a.steps or a.outputs or rest):
        return None
    return Unsteady(tuple(differing), a.steps)


def is_doubtful(difference: Difference) -> bool:
    """True if a metric differs that may have been logged at another moment: one more run tells."""
    return difference.measured is not None and bool(difference.equal_before or not difference.measured.sure)


def varying(a: Record | None, b: Record | None) -> set[tuple[str, str]]:
    """The metrics that differ between two runs with one change, by source and name."""
    return {one.names for one in differences(a, b)} if a and b else set()
