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

NO_FILE = "--output names no file that the command wrote"
TWO_DIFFER = "two baseline runs differ"
NO_STEP_OF_THE_STOPPED = "the weights that the resumed run starts from are those of no step of the stopped run: the checkpoint does not hold them, or they are changed when it is read"
MEMORY_DECIDES = "only the byte that fills fresh memory was changed, so memory that nothing has initialized decides, as that of torch.empty or numpy.empty; initialize it"
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


class Resumed(Steps):
    """Every step of a run that was stopped and resumed, with that of a fully hashed baseline."""

    def obstacle(self, trial: Trial) -> str | None:
        whole, resumed = record_of(self.baseline), record_of(trial)
        if not resumed.steps:
            return "the --resume command took no step: if the command was nearly done when it was stopped, let it take more"
        both = list(zip(whole.processes, resumed.processes, strict=False))
        alike = all(a.of(STARTS).get(0) == b.of(STARTS).get(0) for a, b in both)
        if alike and resumed.steps >= whole.steps and not any(align(a, b, resumed=True).after for a, b in both):
            return f"the --resume command did not go on: it took all {resumed.steps} steps from the beginning"
        return None

    def difference(self, trial: Trial) -> Difference | None:
        return first_difference(record_of(self.baseline), record_of(trial), resumed=True)

    def meaning(self, trial: Trial, difference: Difference) -> str:
        return "; ".join([str(reasons.reason(difference)), *self.notes])

    def sameness(self, trials: Sequence[Trial]) -> str:
        whole, resumed = record_of(self.baseline), record_of(trials[0])
        after = max((pair.offset for pair in pairs(whole, resumed, resumed=True)), default=0)
        return f"went on after step {after} of {whole.steps}{without_effect(whole, resumed, True)}"


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
}
"""By what a question compares."""


def record_of(trial: Trial) -> Record:
    """The record of a run that has one."""
    assert trial.record is not None, trial.change
    return trial.record
