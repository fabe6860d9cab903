"""Judgment of the runs of a question.

Each class compares a run with the baseline in one way, and says what sameness rests on, or what a difference means.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from repro.compare import incomplete, reasons
from repro.compare.alignment import align
from repro.compare.difference import Difference, first_difference, without_effect
from repro.compare.facts import besides_the_container
from repro.compare.pairs import pairs
from repro.record.lines import STARTS, processes
from repro.record.record import OUTPUTS, Record
from repro.text import counted, listed
from repro.verify.command_runs import Trial
from repro.verify.questions import Question
from repro.verify.stops import gone_on

NO_FILE = "--output names no file that the command wrote"
TWO_DIFFER = "two baseline runs differ"
NO_STEP_OF_THE_STOPPED = "the weights that the resumed run starts from are those of no step of the stopped run: the checkpoint does not hold them, or they are changed when it is read"
MEMORY_DECIDES = "only the byte that fills fresh memory was changed, so memory that nothing has initialized decides, as that of torch.empty or numpy.empty; initialize it"
TIMES = ("resumed for the first time: ", "resumed for the second time, the first was right: ")
PRINTS_NOTHING = "the command prints nothing"


@dataclass
class Steps:
    """Every hashed step, and the outputs."""

    question: Question
    baseline: Trial
    """The run that others are compared with."""
    repeat: Trial
    """The same once more, with the same bits."""
    notes: Sequence[str] = ()
    """What is to be said about runs that wrote to one place."""
    trials: Sequence[Trial] = ()
    """The runs of the question that came to their end."""

    def record(self, trial: Trial) -> Record:
        """The record that a run is compared with."""
        return record_of(self.baseline)

    def obstacle(self, trial: Trial) -> str | None:
        """Why a run cannot be compared."""
        if trial.change.reversed_listings and not trial.reversed_listings:
            lost = incomplete.not_loaded(record_of(trial))
            return (
                lost or "no Python process listed a folder with two names or more, and only such listings are reversed"
            )
        return None

    def difference(self, trial: Trial) -> Difference | None:
        """The first difference of a run that can be compared."""
        return first_difference(record_of(self.baseline), record_of(trial), False)

    def other(self, trial: Trial) -> Record | None:
        """The record in which a run differs; None where it was not observed."""
        return trial.record

    def unseen(self, trials: Sequence[Trial]) -> str | None:
        """Why runs without a difference are not called the same."""
        return incomplete.unseen(*(trial.record for trial in (self.baseline, *trials) if trial.record))

    def meaning(self, trial: Trial, difference: Difference) -> str:
        """Why a run differs."""
        label = f"{trial.change.label}: " if len(self.question.possible_changes) > 1 else ""
        contained = trial.change.contained
        facts = besides_the_container(record_of(self.baseline).facts, record_of(trial).facts) if contained else ""
        return label + self.question.meaning + facts + self._outside()

    def _outside(self) -> str:
        """What may differ though numerics are portable."""
        if self.question.promised("portable") is None or self.baseline.command.portable is None:
            return ""
        return "; portable numerics cover PyTorch's operations alone: look at what was let through, at NumPy, Python's math and compiled extensions"

    def sameness(self, trials: Sequence[Trial]) -> str:
        """What an answer that all is the same rests on."""
        if self.question.sameness:
            return self.question.sameness
        if trials[0].change.reversed_listings:
            return f"{counted(len(trials[0].reversed_listings), 'folder')} listed in the reverse order"
        record = record_of(trials[0])
        steps = [counted(record.steps, "step")] if record.steps else []
        outputs = [f"outputs: {len(record.outputs)}"] if record.outputs else []
        other = without_effect(record_of(self.baseline), record, False)
        return f"{len(trials) + 1} runs, {' and '.join(steps + outputs)}{other}"


class Outputs(Steps):
    """Outputs, of a run that is not observed, or else its printed text, where two baseline runs print the same."""

    def obstacle(self, trial: Trial) -> str | None:
        ours, theirs = self.baseline.stdout, self.repeat.stdout
        if self.baseline.hashes or (ours and ours == theirs):
            return None
        printed = "what the command prints is another text in each run" if ours or theirs else PRINTS_NOTHING
        return f"{self._without_outputs()}, and {printed}"

    def _without_outputs(self) -> str:
        if self.baseline.left_out:
            return "the outputs differ from run to run"
        return NO_FILE if self.baseline.command.patterns else "there is no --output"

    def difference(self, trial: Trial) -> Difference | None:
        ours, theirs = self.baseline.hashes, trial.hashes
        names = [name for name in ours if ours[name] != theirs.get(name)]
        if not ours and self.baseline.stdout != trial.stdout:
            names = ["stdout"]
        return Difference(None, OUTPUTS, names) if names else None

    def unseen(self, trials: Sequence[Trial]) -> str | None:
        return incomplete.not_loaded(record_of(self.baseline)) or super().unseen(trials)

    def sameness(self, trials: Sequence[Trial]) -> str:
        (trial,) = trials
        observed = min(self.baseline.seconds, self.repeat.seconds)
        what = "outputs" if trial.hashes else "text on stdout"
        return f"the same {what}; {observed:.1f} s observed, {trial.seconds:.1f} s not"


class Varied(Steps):
    """Every hashed step, and the outputs that both wrote: an option may have more or fewer of them written."""

    def obstacle(self, trial: Trial) -> str | None:
        ours, theirs = self.baseline.hashes.keys(), trial.hashes.keys()
        if not record_of(trial).steps and not ours & theirs:
            return "no step was seen, and no output that both runs wrote"
        trial.leave_out([*theirs - ours])
        trial.incomparable = bool(ours - theirs)
        return None

    def difference(self, trial: Trial) -> Difference | None:
        found = super().difference(trial)
        if found is None or found.channel != OUTPUTS:
            return found
        found.names = [name for name in found.names if name in trial.hashes]
        return found if found.names else None

    def meaning(self, trial: Trial, difference: Difference) -> str:
        cause = super().meaning(trial, difference)
        if self.question.control or difference.channel not in ("batch", "generator") or difference.pair is None:
            return cause
        pair, step = difference.pair, difference.step or 0
        drawn = [name for name in pair.differing(step, "generator") if name in pair.a.moving() | pair.b.moving()]
        remedy = f", and it draws from {listed(drawn)}, or seeds it: let it use a generator of its own"
        return cause + remedy if drawn else cause

    def sameness(self, trials: Sequence[Trial]) -> str:
        ours = self.baseline.hashes.keys()
        alone = {name for trial in trials for name in [*trial.left_out, *ours - trial.hashes.keys()]}
        alone -= {*self.baseline.left_out}
        more = f"; {counted(len(alone), 'output')} not compared, as only some runs wrote them" if alone else ""
        return super().sameness(trials) + more


class Filled(Steps):
    """Every hashed step and the outputs, of runs whose fresh memory is filled: with one byte, with it again, with another."""

    def meaning(self, trial: Trial, difference: Difference) -> str:
        if len(self.trials) < len(self.question.changes):
            return "only fresh memory was filled: what nothing has initialized decides (a guess)"
        one, again, other = map(record_of, self.trials)
        if first_difference(one, again, False):
            return "two runs whose memory is filled alike differ, so something else decides, and not in each run"
        if first_difference(one, other, False):
            return MEMORY_DECIDES
        return (
            "whatever fills fresh memory, the bits are other ones than without: where memory lies may decide (a guess)"
        )


class Slowed(Steps):
    """Every hashed step and the outputs, of runs in which something beside the first thread was slowed."""

    def obstacle(self, trial: Trial) -> str | None:
        alone = "nothing was slowed: no thread of Python, no worker and no rank runs beside the command's first thread"
        return None if trial.slowed else incomplete.not_loaded(record_of(trial)) or alone

    def sameness(self, trials: Sequence[Trial]) -> str:
        slowed = sorted({name for trial in trials for name in trial.slowed})
        return f"{super().sameness(trials)}; slowed: {', '.join(slowed)}"


class Resumed(Steps):
    """Every step of a run that was stopped and resumed, once or more, with that of a fully hashed baseline."""

    def obstacle(self, trial: Trial) -> str | None:
        whole = record_of(self.baseline)
        if not record_of(trial).steps:
            return "the --resume command took no step: if the command was nearly done when it was stopped, let it take more"
        for part in _resumed(trial):
            both = list(zip(whole.processes, part.processes, strict=False))
            alike = all(a.of(STARTS).get(0) == b.of(STARTS).get(0) for a, b in both)
            to_the_end = part.steps >= whole.steps or part is not trial.record
            if alike and to_the_end and not any(align(a, b, resumed=part is trial.record).after for a, b in both):
                return f"the --resume command did not go on: it took all {part.steps} steps from the beginning"
        return None

    def difference(self, trial: Trial) -> Difference | None:
        found = (first_difference(whole, part, resumed=True) for whole, part in self._sides(trial))
        return next(filter(None, found), None)

    def other(self, trial: Trial) -> Record | None:
        sides = self._sides(trial)
        return next((part for whole, part in sides if first_difference(whole, part, resumed=True)), trial.record)

    def _sides(self, trial: Trial) -> list[tuple[Record, Record]]:
        """Each resumed process, and the baseline as far as it went."""
        whole, parts = record_of(self.baseline), _resumed(trial)
        ends = [_until(whole, part, before) for part, before in zip(parts[:-1], trial.parts, strict=False)]
        return list(zip([*ends, whole], parts, strict=True))

    def meaning(self, trial: Trial, difference: Difference) -> str:
        label = f"{trial.change.label}: " if len(self.question.possible_changes) > 1 else ""
        parts, other = _resumed(trial), self.other(trial)
        number = next(number for number, part in enumerate(parts) if part is other)
        once = TIMES[number] if len(parts) > 1 else ""
        return label + once + "; ".join([str(reasons.reason(difference)), *self.notes])

    def sameness(self, trials: Sequence[Trial]) -> str:
        whole = record_of(self.baseline)
        sides = [[pairs(side, part, resumed=True) for side, part in self._sides(trial)] for trial in trials]
        offsets = [[max((pair.offset for pair in part), default=0) for part in run] for run in sides]
        return gone_on(offsets, whole.steps) + without_effect(whole, record_of(trials[0]), True)


def _resumed(trial: Trial) -> list[Record]:
    """The records of the processes that went on from another one."""
    return [*trial.parts[1:], record_of(trial)]


def _until(whole: Record, part: Record, before: Record) -> Record:
    """The whole run up to where a resumed part of another one was stopped; `before` is what the part went on from."""
    processes = []
    for a, b, first in zip(whole.processes, part.processes, before.processes, strict=False):
        after = align(a, b).after or first.last  # weights of no step: it began before the first was stopped
        processes.append(replace(a, steps={step: hashes for step, hashes in a.steps.items() if step <= after + b.last}))
    return replace(whole, processes=processes)


@dataclass
class OwnSteps(Resumed):
    """Where two baseline runs differ: the steps that the stopped run itself took after its checkpoint.

    What is restored, and what follows from that alone, must be equal; what chance may decide is no answer.
    """

    divergence: Difference | None = None
    """The first difference of two baseline runs."""
    decided: bool = False
    """Whether these differ by what a checkpoint can hold, and by nothing else."""

    def record(self, trial: Trial) -> Record:
        """The stopped run, as far as it came."""
        path = trial.folder / "record"
        return Record(path, record_of(trial).content, [one for one in processes(path) if one.steps])

    def obstacle(self, trial: Trial) -> str | None:
        if not record_of(trial).steps:
            return "the --resume command took no step: if the command was nearly done when it was stopped, let it take more"
        found = self._found(trial)
        if found and self._is_decided(found):
            return None
        if not self._shared(trial):
            return f"{TWO_DIFFER}, and the stopped run and the resumed one have no step that both took"
        if found:
            return f"{TWO_DIFFER}, and what is restored is equal as far as it is seen: {self._equal(found)}; {found.channel} of step {found.step} may differ by chance"
        return None

    def difference(self, trial: Trial) -> Difference | None:
        return self._found(trial)

    def meaning(self, trial: Trial, difference: Difference) -> str:
        if difference.pair and not difference.pair.offset:
            return NO_STEP_OF_THE_STOPPED
        return super().meaning(trial, difference)

    def sameness(self, trials: Sequence[Trial]) -> str:
        shared = self._shared(trials[0])
        return f"went on after step {shared[0] - 1}; {counted(len(shared), 'step')} after it that the stopped run took, too, equal in both; {TWO_DIFFER}, so later ones say nothing"

    def _found(self, trial: Trial) -> Difference | None:
        """The first difference of the steps that both took."""
        stopped, rest = self.record(trial), record_of(trial)
        both = pairs(stopped, rest, resumed=True)
        if not any(pair.steps() or pair.differing(pair.offset, STARTS) for pair in both):
            return None
        found = first_difference(stopped, rest, resumed=True)
        if found is None or found.lengths or found.channel == OUTPUTS:
            return None
        if found.pair:
            found.pair = replace(found.pair, called=("the stopped run", "the resumed run"))
        return found

    def _shared(self, trial: Trial) -> list[int]:
        both = pairs(self.record(trial), record_of(trial), resumed=True)
        return max((pair.steps() for pair in both if pair.offset), key=len, default=[])

    def _is_decided(self, found: Difference) -> bool:
        """Whether chance cannot be why they differ."""
        after = found.pair.offset if found.pair else 0
        if self.decided or found.step == after:
            return True
        by_chance = self.divergence.channel if self.divergence else ""
        return found.step == after + 1 and (
            found.channel == "generator" or (found.channel == "batch" and by_chance != "batch")
        )

    def _equal(self, found: Difference) -> str:
        """What was restored, of what both saw."""
        if found.pair is None:
            return "nothing"
        after = found.pair.offset
        seen = [
            ("weights", after, STARTS),
            ("the optimizer's state", after, "optimizer"),
            ("generators", after + 1, "generator"),
            ("the first batch", after + 1, "batch"),
        ]
        equal = [
            name
            for name, step, channel in seen
            if found.pair.hashes(step, channel) and not found.pair.differing(step, channel)
        ]
        return ", ".join(equal) or "nothing"


JUDGMENTS: dict[str, type[Steps]] = {
    "steps": Steps,
    "outputs": Outputs,
    "resumed": Resumed,
    "varied": Varied,
    "filled": Filled,
    "slowed": Slowed,
}
"""By what a question compares."""


def record_of(trial: Trial) -> Record:
    """The record of a run that has one."""
    assert trial.record is not None, trial.change
    return trial.record
