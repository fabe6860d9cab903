"""The question `alone`: is one of several trainings of a command the same as alone?

A sweep trains several times in one process. What a training leaves behind, such as the state of a generator or a setting,
is what the next one begins with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from repro.compare.difference import Difference, first_difference
from repro.compare.names import number_of
from repro.compare.pairs import Pair
from repro.record.lines import SCALARS, STARTS
from repro.record.record import Record
from repro.text import counted, listed
from repro.verify import trainings
from repro.verify.alone_parts import Parts, parts
from repro.verify.judgment import StepJudgment, record_of
from repro.verify.trainings import Training
from repro.verify.trial import Trial

NO_STEP = "no step of the --alone command was seen"
SEVERAL = "several processes of the --alone command train: compare trainings of one process"
SETTING = "a setting of the process that an earlier training changed decides, such as the default dtype, the mode, or the number of threads (a guess)"
KEPT = "what an earlier training left decides: a model that is used again, a key that went on, or a generator that cannot be seen (a guess)"


class Alone(StepJudgment):
    """The steps, outputs and metrics of one training of a command, and those of the command that does it alone."""

    def obstacle(self, trial: Trial) -> str | None:
        alone = _first_rank(record_of(trial))
        trial.incomparable = True  # the command ends with the weights of another training
        if not alone.steps:
            return NO_STEP
        if len(alone.processes) > 1:
            return SEVERAL
        count, number = len(self._trainings(alone)), self.baseline.command.trial
        if number is not None and number >= count:
            return f"--trial {number}: {counted(count, 'training')} of the command, counted from 0, can be told apart"
        return None

    def difference(self, trial: Trial) -> Difference | None:
        ours, theirs = self.records(trial)
        difference = first_difference(ours, theirs, False)
        if difference is None and not self._ran_twice:
            difference = self._parts(trial).difference()
        if difference and difference.pair is None:
            difference.equal_before = theirs.steps
        return difference

    def records(self, trial: Trial) -> tuple[Record, Record]:
        if self._ran_twice:
            ours, theirs = (replace(_first_rank(record_of(one)), metrics=[]) for one in (self.baseline, trial))
            return ours.without_files(), theirs.without_files()
        parts = self._parts(trial)
        return parts.ours, parts.theirs

    @property
    def _ran_twice(self) -> bool:
        """True if the command that does it alone is compared with itself."""
        return self.baseline.change.course == "alone"

    def _parts(self, trial: Trial) -> Parts:
        alone = _first_rank(record_of(trial))
        return parts(self._trainings(alone), self._index(alone), alone, (self.baseline.folder, trial.folder))

    def cause(self, trial: Trial, difference: Difference) -> str:
        alone = _first_rank(record_of(trial))
        number = self._index(alone)
        earlier = self._trainings(alone)[:number]
        return f"training {number} of the command differs from the one alone: {_why(difference, earlier)}"

    def sameness(self, trials: Sequence[Trial]) -> str:
        alone = _first_rank(record_of(trials[0]))
        training, number, count = self._training(alone), self._index(alone), len(self._trainings(alone))
        steps = f"steps {training.first} to {training.last} of the command"
        of_rank = "" if len(record_of(trials[0]).processes) == 1 else f"; of rank {alone.processes[0].rank} alone"
        return f"training {number} of {count}, {steps}, is the one alone{self._parts(trials[0])}{of_rank}"

    def _trainings(self, alone: Record) -> list[Training]:
        return trainings.of_command(_first_rank(record_of(self.baseline)), alone)

    def _index(self, alone: Record) -> int:
        number = self.baseline.command.trial
        return len(self._trainings(alone)) - 1 if number is None else number

    def _training(self, alone: Record) -> Training:
        return self._trainings(alone)[self._index(alone)]


def _first_rank(record: Record) -> Record:
    """The record of the first rank's processes, where all have a rank."""
    ranks = [process.rank for process in record.processes if process.rank is not None]
    if len(ranks) != len(record.processes) or not ranks:
        return record
    return replace(record, processes=[process for process in record.processes if process.rank == min(ranks)])


def _why(difference: Difference, earlier: Sequence[Training]) -> str:
    """What an earlier training left, as far as the hashes show it."""
    pair = difference.pair
    if pair is None:
        what = str(difference.measured) if difference.measured else difference.inside
        return f"all {counted(difference.equal_before or 0, 'step')} are the same, but {what}"
    if difference.lengths:
        ours, theirs = difference.lengths
        return f"it takes {counted(ours, 'step')}, alone {theirs}; all that both took are the same"
    if difference.channel == STARTS and (number := _ends_with(pair, difference.names, earlier)) is not None:
        return f"it starts from the weights that training {number} ended with, so one model is used again; make a new one for each"
    if difference.channel == SCALARS:
        return _numbers(pair, difference)
    drawn = _generators(pair, difference)
    if drawn and difference.channel in (STARTS, "batch"):
        return f"{listed(drawn)} differs at its first step: what ran before in the process drew from it; set the seed where each training begins (a guess)"
    if drawn:
        return f"{listed(drawn)} differs at its first step, though the weights and the batch are the same: what ran before in the process drew from it, or this training draws otherwise, as dropout does in another mode (a guess)"
    if difference.channel == "batch":
        return "the generators are the same and the batch is not, so the data, or an iterator, is as an earlier training left it (a guess)"
    return KEPT if difference.channel == STARTS else SETTING


def _ends_with(pair: Pair, names: Iterable[str], earlier: Sequence[Training]) -> int | None:
    """The latest training whose last weights the weights with these names are; None where there is none."""
    starts = pair.a.steps[0][STARTS]
    codes = {starts[name] for name in names if name in starts}
    fitting = (number for number, one in reversed([*enumerate(earlier)]) if codes and codes <= {*one.ends.values()})
    return next(fitting, None)


def _generators(pair: Pair, difference: Difference) -> list[str]:
    """The generators that differ at the first step; where the weights and batches of that are the same, those that are drawn from."""
    first = min((step for step in pair.steps() if step), default=1)
    differing = pair.differing(first, "generator")
    moving = pair.a.moving() | pair.b.moving()
    return differing if difference.channel == STARTS else [name for name in differing if name in moving]


def _numbers(pair: Pair, difference: Difference) -> str:
    """The first number that differs, in words."""
    name, step = difference.names[0], difference.step or 0
    both = pair.hashes(step, SCALARS)
    assert both is not None
    ours, theirs = (
        process.texts.get(of.get(name, ""), "missing") for process, of in zip((pair.a, pair.b), both, strict=True)
    )
    option = name.partition(".")[2] if number_of(name) else name
    return f"`{option}` is {ours}, alone {theirs}: an earlier training changed a setting, or the command alone has other options"
