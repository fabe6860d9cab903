"""The question `batch`: does an evaluation give the same scores and the same results for each sample in other batches?

Steps are not compared, as batches differ on purpose. Metrics and rows of result files in `{run}` are, up to their order.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from repro.compare.difference import Difference
from repro.compare.metrics import METRICS, MetricDifference
from repro.record.metric_names import may_be_score
from repro.record.metric_values import Metric
from repro.record.record import OUTPUTS, Record
from repro.text import RUN, counted, listed
from repro.verify import rows
from repro.verify.judgment import StepJudgment, record_of
from repro.verify.rows import Rows
from repro.verify.trial import Trial

NOTHING = "no metric and no result file in {run} has as many values in both runs"
Named = tuple[str, str]
SUMS = 1e-3
"""The largest relative difference of a score that other sums may make."""
ROUNDED = "as sums in another order give (a guess)"
BEYOND = (
    "each batch may have its own statistics (a normalization in training mode) or padding, the last one may be left out "
    "or count as much as a full one, or a last digit decides about a sample (a guess)"
)


@dataclass
class BatchSizes(StepJudgment):
    """Metrics and rows of result files, up to order."""

    def obstacle(self, trial: Trial) -> str | None:
        return None if any(True for _ in self._metrics(trial)) or any(True for _ in self._files(trial)) else NOTHING

    def difference(self, trial: Trial) -> Difference | None:
        for (_, name), ours, theirs in self._metrics(trial):
            values, others = (Counter(metric.value for metric in side) for side in (ours, theirs))
            if values != others:
                mine = next(metric for metric in ours if metric.value in values - others)
                measured = MetricDifference(mine, next(iter(others - values)))
                return Difference(None, METRICS, [name], measured=measured)
        names = [name for name, ours, theirs in self._files(trial) if ours != theirs]
        return Difference(None, OUTPUTS, [f"{RUN}/{name}" for name in names]) if names else None

    def unseen(self, _trials: Sequence[Trial]) -> str | None:
        return None

    def cause(self, trial: Trial, difference: Difference) -> str:
        said = [f"{difference.measured}, {_size(difference.measured)}"] if difference.measured else []
        said += [
            f"{(ours - theirs).total()} of {ours.total()} rows of `{RUN}/{name}` differ"
            for name, ours, theirs in self._files(trial)
            if ours != theirs
        ]
        return "; ".join([f"{trial.change.label}: {self.question.meaning}", *said])

    def agrees(self, trial: Trial) -> bool:
        """True if nothing differs by more than sums in another order give."""
        pairs = (
            pair
            for _, ours, theirs in self._metrics(trial)
            for pair in zip(_ordered(ours), _ordered(theirs), strict=True)
        )
        return all(_is_rounded(*pair) for pair in pairs) and all(
            ours == theirs for _, ours, theirs in self._files(trial)
        )

    def measured(self, trial: Trial) -> str:
        """The first score that differs, and is no rounding, after a comma; empty where there is none."""
        difference = self.difference(trial)
        return f", without it {difference.measured}" if difference and difference.measured else ""

    def sameness(self, trials: Sequence[Trial]) -> str:
        if self.question.sameness:
            return self.question.sameness
        names = {name for trial in trials for name, *_ in self._metrics(trial)}
        files = {name: ours.total() for trial in trials for name, ours, _ in self._files(trial)}
        what = [f"metrics: {len(names)}"] if names else []
        what += [f"{counted(total, 'row')} of `{RUN}/{name}`" for name, total in files.items()]
        uneven = sorted({name for trial in trials for name in self._uneven(trial)})
        more = f"; not compared, as the number of values is another one: {listed(uneven)}" if uneven else ""
        return f"{len(trials) + 1} runs, up to order: {', '.join(what)}; steps are not compared{more}"

    def _metrics(self, trial: Trial) -> Iterator[tuple[Named, list[Metric], list[Metric]]]:
        """The scores of which both runs have as many values."""
        theirs = _by_name(record_of(trial))
        for name, values in _by_name(record_of(self.baseline)).items():
            if len(values) == len(theirs.get(name, ())):
                yield name, values, theirs[name]

    def _files(self, trial: Trial) -> Iterator[tuple[str, Rows, Rows]]:
        """The files of which both runs have as many rows, and two baseline runs the same."""
        ours, again, theirs = (rows.of_folder(one.folder / "run") for one in (self.baseline, self.repeat, trial))
        for name, of_baseline in ours.items():
            if of_baseline == again.get(name) and of_baseline.total() == theirs.get(name, Rows()).total():
                yield name, of_baseline, theirs[name]

    def _uneven(self, trial: Trial) -> Iterator[str]:
        """The scores and files of which both runs have some, but not as many."""
        theirs = _by_name(record_of(trial))
        for key, values in _by_name(record_of(self.baseline)).items():
            if key in theirs and len(theirs[key]) != len(values):
                yield key[1]
        ours, others = (rows.of_folder(one.folder / "run") for one in (self.baseline, trial))
        yield from (name for name in ours if name in others and ours[name].total() != others[name].total())


def _by_name(record: Record) -> dict[Named, list[Metric]]:
    result: dict[Named, list[Metric]] = {}
    for metric in record.metrics:
        if may_be_score(metric.name):
            result.setdefault((metric.source, metric.name), []).append(metric)
    return result


def _size(measured: MetricDifference) -> str:
    """What a difference of this size may come from."""
    return ROUNDED if _is_rounded(float(measured.metric.value), float(measured.other)) else BEYOND


def _ordered(metrics: list[Metric]) -> list[float]:
    return sorted(float(metric.value) for metric in metrics)


def _is_rounded(ours: float, theirs: float) -> bool:
    return ours == theirs or abs(ours - theirs) <= SUMS * max(abs(ours), abs(theirs))
