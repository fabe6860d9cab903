"""Judgment of runs that were stopped and resumed.

They are compared with the baseline, or, where two baseline runs differ, with the steps that the stopped one took itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import UNSET, structs

from repro.compare import metrics, reasons
from repro.compare.alignment import align
from repro.compare.difference import Difference, first_difference, without_effect
from repro.compare.pairs import Pair, pairs
from repro.record.lines import SCALARS, STARTS, Process
from repro.record.record import OUTPUTS, Record
from repro.text import counted
from repro.verify.checkpoints import LACKING
from repro.verify.coverage import uncovered
from repro.verify.judgment import WITHOUT, StepJudgment, record_of
from repro.verify.stops import gone_on
from repro.verify.trial import Trial

TWO_DIFFER = "two baseline runs differ"
NO_STEP_OF_THE_STOPPED = "the weights that the resumed run starts from match no step of the stopped run: the checkpoint does not hold them, or they are changed when it is read"
TIMES = ("resumed for the first time: ", "resumed for the second time, the first was right: ")
NO_STEP_TAKEN = (
    "the --resume command took no step: if the command was nearly done when it was stopped, let it take more"
)


class Resumed(StepJudgment):
    """Every step of a run that was stopped and resumed, once or more, with that of a fully hashed baseline."""

    lenient = True

    def sides(self, trial: Trial) -> list[tuple[Record, Record]]:
        """The baseline as far as each resumed process went, and the process."""
        whole, parts = record_of(self.baseline), _resumed(trial)
        ends = [_until(whole, part, before) for part, before in zip(parts[:-1], trial.parts, strict=False)]
        return list(zip([*ends, whole], parts, strict=True))

    def records(self, trial: Trial) -> tuple[Record, Record]:
        sides = self.sides(trial)
        return next((side for side in sides if self.compare(*side)), sides[-1])

    def obstacle(self, trial: Trial) -> str | None:
        whole = record_of(self.baseline)
        if not record_of(trial).steps:
            return NO_STEP_TAKEN
        difference = first_difference(whole, trial.parts[0], False) if trial.parts else None
        if difference and difference.step and not difference.lengths:
            return f"the run that was stopped differs from the baseline before that (step {difference.step}, {difference.channel}), though nothing was changed: chance decides; run it again (--ask restart)"
        anew = next((part for part in _resumed(trial) if _began_anew(whole, part, part is trial.record)), None)
        if anew is None:
            return None
        return f"the --resume command did not go on: it took all {anew.steps} steps from the beginning"

    def difference(self, trial: Trial) -> Difference | None:
        return next(filter(None, (self.compare(*side) for side in self.sides(trial))), None)

    def compare(self, a: Record, b: Record) -> Difference | None:
        """The first difference of a process that went on."""
        return first_difference(a, b, resumed=True)

    def meaning(self, trial: Trial, difference: Difference, shown: str | None = None) -> str:
        label = f"{trial.change.label}: " if len(self.question.possible_changes) > 1 else ""
        sides = self.sides(trial)
        number = next(number for number, side in enumerate(sides) if self.compare(*side))
        time = TIMES[number] if len(sides) > 1 else ""
        return label + time + "; ".join([shown or self.reason(difference), *self.notes])

    def reason(self, difference: Difference) -> str:
        """The reason that a resumed process differs, by what the hashes show."""
        return str(reasons.reason(difference))

    def sameness(self, trials: Sequence[Trial]) -> str:
        whole = record_of(self.baseline)
        sides = [[pairs(*side, resumed=True) for side in self.sides(trial)] for trial in trials]
        offsets = [[max((pair.offset for pair in part), default=0) for part in run] for run in sides]
        twice = self.question.twice or any(len(run) > 1 for run in sides)
        covered = uncovered(whole, _all(sides), twice, _within(trials))
        outputs = self.outputs(trials)
        equal = f"; {outputs}" if outputs else WITHOUT
        return f"{gone_on(offsets)} of {whole.steps}{equal}{without_effect(whole, record_of(trials[0]), True)}{covered}{self._measured(trials)}"

    def _measured(self, trials: Sequence[Trial]) -> str:
        """A metric of a resumed run that differs, though no step does."""
        whole = record_of(self.baseline)
        return next(filter(None, (metrics.resumed_note(whole, record_of(trial)) for trial in trials)), "")


def lacks_checkpoint(trial: Trial, whole: Record) -> bool:
    """True if a run that was stopped could not continue, because there was nothing to continue from."""
    if trial.error is not None or trial.record is None:
        return bool(trial.parts) and bool(LACKING.search(trial.error or ""))
    return any(_began_anew(whole, part, part is trial.record) for part in _resumed(trial))


def _began_anew(whole: Record, part: Record, last: bool) -> bool:
    """True if a resumed process took all steps from the beginning; `last`: no other one continued from it."""
    both = list(zip(whole.processes, part.processes, strict=False))
    alike = all(_starts(a) == _starts(b) for a, b in both)
    after = max((align(a, b, resumed=last).after for a, b in both), default=0)
    return alike and not after and (part.steps >= whole.steps or not last)


def _starts(process: Process) -> list[str]:
    """The initial weights, whatever they are called."""
    return list(process.of(STARTS).get(0, {}).values())


def _within(trials: Sequence[Trial]) -> bool:
    """True if one was stopped between two backward passes of a step."""
    return any(trial.stopped_within for trial in trials)


def _all(sides: Sequence[Sequence[Sequence[Pair]]]) -> list[Pair]:
    """The pairs of all runs, all parts and all processes."""
    return [pair for run in sides for part in run for pair in part]


def _resumed(trial: Trial) -> list[Record]:
    """The records of the processes that went on from another one."""
    return [*trial.parts[1:], record_of(trial)]


def _until(whole: Record, part: Record, before: Record) -> Record:
    """The whole run up to where a resumed part of another one was stopped; `before` is what the part went on from.

    What is written until then is part of it, too, and may be incomplete in the other one: outputs are not compared.
    """
    processes = []
    for a, b, first in zip(whole.processes, part.processes, before.processes, strict=False):
        after = align(a, b).after or first.last  # weights of no step: it began before the first was stopped
        processes.append(replace(a, steps={step: hashes for step, hashes in a.steps.items() if step <= after + b.last}))
    return replace(
        whole, processes=processes, content=structs.replace(whole.content, outputs=part.outputs, written=UNSET)
    )


@dataclass
class OwnSteps(Resumed):
    """A comparison with the stopped run's own steps after its checkpoint, if two baseline runs differ.

    What is restored, and what follows from that alone, must be equal; what chance may decide is not an answer.
    """

    divergence: Difference | None = None
    """The first difference of two baseline runs."""
    decided: bool = False
    """True if these differ by what a checkpoint can hold, and by nothing else."""

    def sides(self, trial: Trial) -> list[tuple[Record, Record]]:
        """Pairs each process that was stopped with the one that continued from it."""
        return list(zip(trial.parts, [*trial.parts[1:], record_of(trial)], strict=True))

    def compared(self, trials: Sequence[Trial]) -> list[Trial]:
        return [*trials]

    def obstacle(self, trial: Trial) -> str | None:
        if not record_of(trial).steps:
            return NO_STEP_TAKEN
        difference = self.difference(trial)
        if difference and self._is_decided(difference):
            return None
        if not all(_shared(*side) for side in self.sides(trial)):
            return f"{TWO_DIFFER}, and the stopped run and the resumed one have no step that both took"
        if difference:
            return f"{TWO_DIFFER}, and what is restored is equal as far as it is seen: {self._equal(difference)}; {difference.channel} of step {difference.step} may differ by chance"
        return None

    def reason(self, difference: Difference) -> str:
        if difference.pair and not difference.pair.offset:
            return NO_STEP_OF_THE_STOPPED
        return super().reason(difference)

    def sameness(self, trials: Sequence[Trial]) -> str:
        shared = [[_shared(*side) for side in self.sides(trial)] for trial in trials]
        count = counted(sum(len(steps) for run in shared for steps in run), "step")
        offsets = [[steps[0] - 1 for steps in run] for run in shared]
        sides = [[pairs(*side, resumed=True) for side in self.sides(trial)] for trial in trials]
        twice = self.question.twice or any(len(run) > 1 for run in sides)
        covered = uncovered(record_of(self.baseline), _all(sides), twice, _within(trials))
        return f"{gone_on(offsets)}; {count} after it that the stopped run took, too, equal in both; {TWO_DIFFER}, so later ones say nothing{covered}"

    def compare(self, a: Record, b: Record) -> Difference | None:
        """The first difference of the steps that both took."""
        if not any(pair.steps() or pair.differing(pair.offset, STARTS) for pair in pairs(a, b, resumed=True)):
            return None
        difference = super().compare(a, b)
        if difference is None or difference.lengths or difference.channel == OUTPUTS:
            return None
        if difference.pair:
            difference.pair = replace(difference.pair, called=("the stopped run", "the resumed run"))
        return difference

    def _is_decided(self, difference: Difference) -> bool:
        """True if chance cannot be why they differ."""
        after = difference.pair.offset if difference.pair else 0
        if self.decided or difference.step == after:
            return True
        by_chance = self.divergence.channel if self.divergence else ""
        return difference.step == after + 1 and (
            difference.channel in ("generator", SCALARS) or (difference.channel == "batch" and by_chance != "batch")
        )

    def _equal(self, difference: Difference) -> str:
        """Lists what was restored, of what both saw."""
        if difference.pair is None:
            return "nothing"
        after = difference.pair.offset
        seen = [
            ("weights", after, STARTS),
            ("the optimizer's state", after, "optimizer"),
            ("generators", after + 1, "generator"),
            ("the first batch", after + 1, "batch"),
            ("learning rates and schedules", after + 1, SCALARS),
        ]
        equal = [
            name
            for name, step, channel in seen
            if difference.pair.hashes(step, channel) and not difference.pair.differing(step, channel)
        ]
        return ", ".join(equal) or "nothing"


def _shared(stopped: Record, rest: Record) -> list[int]:
    """The steps that both took."""
    both = pairs(stopped, rest, resumed=True)
    return max((pair.steps() for pair in both if pair.offset), key=len, default=[])
