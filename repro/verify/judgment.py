"""Judgment of the runs of a question.

Each class compares a run with the baseline in one way, and says what sameness rests on, or what a difference means.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from repro.compare import files, incomplete, metrics, reasons
from repro.compare.difference import Difference, first_difference, of_files, without_effect
from repro.compare.facts import besides_the_container
from repro.compare.metrics import MetricDifference
from repro.record.record import OUTPUTS, Record
from repro.text import RUN, counted, listed
from repro.verify.questions import Question
from repro.verify.trial import Trial

NO_FILE = "--output names no file that the command wrote"
MEMORY_DECIDES = "only the byte that fills fresh memory was changed, so memory that nothing has initialized decides, such as that of torch.empty or numpy.empty; initialize it"
PYTHONS_CLOCK = "; the time that Python reports was changed; with the program faketime, that of C and C++ is, too"
EXPLAINED_BY_CONTENT = (
    ": what differs may hold the changed value itself, or follow from it after the last step (a guess)"
)
NOTHING_COMMON = "no step was seen, and no output or metric that both runs have"
WITHOUT = ", without an output"
PRINTS_NOTHING = "the command prints nothing"


@dataclass
class StepJudgment:
    """Every hashed step, and the outputs."""

    question: Question
    baseline: Trial
    """The run that others are compared with."""
    repeat: Trial
    """The run once more, with the same bits."""
    notes: Sequence[str] = ()
    """Warnings about runs that wrote to one place."""
    trials: Sequence[Trial] = ()
    """The runs of the question that came to their end."""
    lenient: ClassVar[bool] = False
    """True if runs may write checkpoints at other steps, and other logs."""

    def records(self, trial: Trial) -> tuple[Record, Record]:
        """The two records in which a run differs; that of the baseline twice where it was not observed."""
        base = record_of(self.baseline)
        return base, trial.record or base

    def compared(self, trials: Sequence[Trial]) -> list[Trial]:
        """The runs that the answer rests on."""
        return [self.baseline, *trials]

    def obstacle(self, trial: Trial) -> str | None:
        """The reason that a run cannot be compared."""
        return None

    def difference(self, trial: Trial) -> Difference | None:
        """The first difference of a run that can be compared."""
        return trial.divergence or first_difference(record_of(self.baseline), record_of(trial), False, self.lenient)

    def unseen(self, trials: Sequence[Trial]) -> str | None:
        """The reason not to call runs without a difference the same."""
        base = record_of(self.baseline)
        records = [trial.record for trial in trials if trial.record]
        if any(not _common(base, record) for record in records):
            return NOTHING_COMMON
        return incomplete.unseen(base, *records)

    def meaning(self, trial: Trial, difference: Difference, shown: str | None = None) -> str:
        """The reason that a run differs; `shown` is the result of one more run about it."""
        return shown or self.cause(trial, difference)

    def cause(self, trial: Trial, difference: Difference) -> str:
        """The reason that a run differs, by the question and by what the hashes show."""
        label = f"{trial.change.label}: " if len(self.question.possible_changes) > 1 else ""
        contained = trial.change.runtime == "image"
        facts = besides_the_container(record_of(self.baseline).facts, record_of(trial).facts) if contained else ""
        inside = f"; {difference.inside}" if difference.inside else ""
        return label + self._what_it_means(difference) + inside + facts + self._outside()

    def _what_it_means(self, difference: Difference) -> str:
        """The question's own words; where all steps are the same, nothing that explains how a step could differ."""
        meaning = self.question.meaning
        if difference.measured and not self.question.control:
            return measured_meaning(meaning, difference)
        if self.question.control or difference.channel != OUTPUTS or difference.equal_before is None:
            return meaning
        changed, explained, _ = meaning.partition(": ")
        guess = EXPLAINED_BY_CONTENT if explained or self.question.compared == "varied" else ""
        return f"{changed}; all {counted(difference.equal_before, 'step')} are the same{guess}"

    def _outside(self) -> str:
        """A note on what may differ though numerics are portable."""
        if self.question.promised("portable") is None or self.baseline.command.portable is None:
            return ""
        return "; portable numerics cover PyTorch's operations alone: look at operations that ran natively, at NumPy, Python's math and compiled extensions"

    def sameness(self, trials: Sequence[Trial]) -> str:
        """The evidence of an answer that all is the same."""
        if self.question.sameness:
            return self.question.sameness
        record = record_of(trials[0])
        steps = [counted(record.steps, "step")] if record.steps else []
        outputs = self.outputs(trials)
        other = without_effect(record_of(self.baseline), record, False)
        seen = [*steps, *([outputs] if outputs else [])]
        values = metrics.said(metrics.compared(record_of(self.baseline), record))
        what = ", ".join([" and ".join(seen) or "no step", *values])
        return f"{len(trials) + 1} runs, {what}{'' if outputs or values else WITHOUT}{other}"

    def outputs(self, trials: Sequence[Trial]) -> str | None:
        """How many outputs are equal, and how many are not compared; None without any."""
        return files.described(record_of(self.baseline), record_of(trials[0]), self.lenient)


class Outputs(StepJudgment):
    """Outputs, of a run that is not observed, or else its printed text, where two baseline runs print the same."""

    def obstacle(self, trial: Trial) -> str | None:
        ours, theirs = self.baseline.stdout, self.repeat.stdout
        if self.baseline.hashes or self._has_files(trial) or (ours and ours == theirs):
            return None
        printed = "the command prints a different text in each run" if ours or theirs else PRINTS_NOTHING
        return f"{self._without_outputs()}, and {printed}"

    def _without_outputs(self) -> str:
        if self.baseline.left_out:
            return "the outputs differ from run to run"
        if self.baseline.command.compares_all_files:
            return f"no file in {RUN} holds a result"
        return NO_FILE if self.baseline.command.patterns else "there is no --output"

    def difference(self, trial: Trial) -> Difference | None:
        ours, theirs = self.baseline.hashes, trial.hashes
        names = [name for name in ours if ours[name] != theirs.get(name)]
        if not ours and self._has_files(trial):
            assert self.baseline.files and trial.files
            return of_files(self.baseline.files, trial.files)
        if not ours and self.baseline.stdout != trial.stdout:
            names = ["stdout"]
        return Difference(None, OUTPUTS, names) if names else None

    def _has_files(self, trial: Trial) -> bool:
        """True if there are files in the run's own folder that hold results."""
        ours, theirs = self.baseline.files, trial.files
        return ours is not None and theirs is not None and files.have_results(ours, theirs)

    def unseen(self, trials: Sequence[Trial]) -> str | None:
        return incomplete.not_loaded(record_of(self.baseline)) or super().unseen(trials)

    def sameness(self, trials: Sequence[Trial]) -> str:
        (trial,) = trials
        observed = min(self.baseline.seconds, self.repeat.seconds)
        what = "outputs" if trial.hashes or self._has_files(trial) else "text on stdout"
        return f"the same {what}; {observed:.1f} s observed, {trial.seconds:.1f} s not"


@dataclass
class Varied(StepJudgment):
    """Every hashed step, and the outputs that both wrote: an option may have more or fewer of them written.

    After equal steps no metric decides: the option may say over how many of them it is averaged.
    """

    measured: dict[str, MetricDifference] = field(default_factory=dict)
    """By label of a run: the first metric that differs, though all steps are equal."""

    lenient = True

    def obstacle(self, trial: Trial) -> str | None:
        ours, theirs = self.baseline.hashes.keys(), trial.hashes.keys()
        if not _common(record_of(self.baseline), record_of(trial)):
            return NOTHING_COMMON
        trial.leave_out([*theirs - ours])
        trial.incomparable = bool(ours - theirs)
        return None

    def difference(self, trial: Trial) -> Difference | None:
        difference = super().difference(trial)
        if difference and difference.measured and difference.equal_before:  # the option may decide what is averaged
            self.measured[trial.change.label] = difference.measured
            a, b = (replace(one, metrics=[]) for one in self.records(trial))
            difference = first_difference(a, b, False)
        if difference is None or difference.channel != OUTPUTS:
            return difference
        compared = trial.hashes.keys() & self.baseline.hashes.keys() | record_of(self.baseline).written.keys()
        difference.names = [name for name in difference.names if name in compared]
        return difference if difference.names else None

    def cause(self, trial: Trial, difference: Difference) -> str:
        cause = super().cause(trial, difference)
        if self.question.control or difference.pair is None:
            return cause
        if difference.channel not in ("batch", "generator"):
            why = reasons.reason(difference)
            return cause if why.guess else f"{cause}; {why}"
        pair, step = difference.pair, difference.step or 0
        drawn = [name for name in pair.differing(step, "generator") if name in pair.a.moving() | pair.b.moving()]
        remedy = f", and it draws from {listed(drawn)}, or seeds it: let it use its own generator"
        return cause + remedy if drawn else cause

    def sameness(self, trials: Sequence[Trial]) -> str:
        ours = self.baseline.hashes.keys()
        alone = {name for trial in trials for name in [*trial.left_out, *ours - trial.hashes.keys()]}
        alone -= {*self.baseline.left_out}
        more = f"; {counted(len(alone), 'output')} not compared, as only some runs wrote them" if alone else ""
        noted = "".join(
            f"; but a metric differs, {label}: {one}; the option may change what it is averaged over"
            for label, one in self.measured.items()
        )
        return super().sameness(trials) + more + noted


class Filled(StepJudgment):
    """Every hashed step and the outputs, of runs whose fresh memory is filled with one byte, and with another."""

    def cause(self, trial: Trial, difference: Difference) -> str:
        if len(self.trials) < 2:
            return "only fresh memory was filled: what nothing has initialized decides (a guess)"
        if first_difference(record_of(self.trials[0]), record_of(self.trials[1]), False):
            return MEMORY_DECIDES
        return "whatever fills fresh memory, the bits differ from those without: where memory lies may decide (a guess)"


class Slowed(StepJudgment):
    """Every hashed step and the outputs, of runs in which something beside the first thread was slowed."""

    def obstacle(self, trial: Trial) -> str | None:
        alone = "nothing was slowed: no thread of Python, no worker and no rank runs beside the command's first thread"
        return None if trial.slowed else incomplete.not_loaded(record_of(trial)) or alone

    def sameness(self, trials: Sequence[Trial]) -> str:
        slowed = sorted({name for trial in trials for name in trial.slowed})
        return f"{super().sameness(trials)}; slowed: {', '.join(slowed)}"


class Listed(StepJudgment):
    """Every hashed step and the outputs, of a run in which folders were listed in reverse order."""

    def obstacle(self, trial: Trial) -> str | None:
        alone = "no Python process listed a folder with two names or more, and only such listings are reversed"
        return None if trial.listed else incomplete.not_loaded(record_of(trial)) or alone

    def sameness(self, trials: Sequence[Trial]) -> str:
        return f"{counted(len(trials[0].listed), 'folder')} listed in reverse order"


class Clocked(StepJudgment):
    """Every hashed step and the outputs, of runs with another clock."""

    def obstacle(self, trial: Trial) -> str | None:
        return None if trial.faked else incomplete.not_loaded(record_of(trial))

    def sameness(self, trials: Sequence[Trial]) -> str:
        python = "" if all(trial.faked for trial in trials) else PYTHONS_CLOCK
        return super().sameness(trials) + python


class Cold(StepJudgment):
    """Every hashed step and the outputs, of a run with emptied caches, and of one with what that one left in them."""

    def cause(self, trial: Trial, difference: Difference) -> str:
        left = next((one.left for one in self.trials if one.left), [])
        return super().cause(trial, difference) + (f"; it left {listed(left)}" if left else "")

    def sameness(self, trials: Sequence[Trial]) -> str:
        left = sorted({name for trial in trials for name in trial.left})
        return super().sameness(trials) + (
            f"; left in caches: {listed(left)}" if left else "; nothing was left in caches"
        )


def measured_meaning(meaning: str, difference: Difference) -> str:
    """What was changed, and the metric that differs; a question's explanation of how a step could differ only without steps."""
    if difference.equal_before is None:
        return f"{meaning}; {difference.measured}" if meaning else str(difference.measured)
    return f"{meaning.partition(': ')[0]}; {difference.measured}; all {counted(difference.equal_before, 'step')} are the same"


def _common(a: Record, b: Record) -> bool:
    """True if two records have something that can be compared."""
    return bool(a.steps or b.steps or a.files & b.files or metrics.compared(a, b))


def record_of(trial: Trial) -> Record:
    """The record of a run that has one."""
    assert trial.record is not None, trial.change
    return trial.record
