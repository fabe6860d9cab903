"""What the runs of a question say: whether they can be compared with the plain ones, are the same, and why not."""

from dataclasses import dataclass, field

from repro.compare import reasons
from repro.compare.difference import Difference, first_difference, offset, pairs, without_effect
from repro.record.record import OUTPUTS, STARTS, Record
from repro.verify.command_runs import Trial
from repro.verify.questions import Question

COURSES = ("resume", "kill")


@dataclass
class Grounds:
    """What every answer rests on: two plain runs that are the same."""

    plain: Trial
    again: Trial
    whole: Trial
    """A plain run of which every step was hashed, for what is resumed."""
    places: list[str] = field(default_factory=list)
    """What is to be said about runs that wrote to one place."""

    def compared(self, question: Question, trial: Trial) -> tuple[str | None, Difference | None]:
        """Why a run cannot be compared with the command as it stands, or where they part, or neither."""
        if question.name == "observed":
            return self._unobserved(trial)
        if question.name == "file_order" and not trial.reversed_listings:
            return "no Python process listed a folder with two names or more, and only such listings are reversed", None
        if question.name not in COURSES:
            return None, first_difference(record_of(self.plain), record_of(trial), False)
        whole, rest = record_of(self.whole), record_of(trial)
        obstacle = _not_resumed(whole, rest)
        return obstacle, None if obstacle else first_difference(whole, rest, resumed=True)

    def _unobserved(self, trial: Trial) -> tuple[str | None, Difference | None]:
        """Outputs are compared, or else what the command prints, where two plain runs print the same."""
        if self.plain.hashes:
            names = [name for name in self.plain.hashes if self.plain.hashes[name] != trial.hashes.get(name)]
            return None, Difference(None, OUTPUTS, names) if names else None
        if not self.plain.stdout or self.plain.stdout != self.again.stdout:
            return "there is no --output, and what the command prints is another text in each run", None
        return None, Difference(None, OUTPUTS, ["stdout"]) if self.plain.stdout != trial.stdout else None

    def why(self, question: Question, trial: Trial, found: Difference) -> str:
        """Why a run differs."""
        label = f"{trial.change.label}: " if len(question.changes) > 1 else ""
        if question.name == "observed":
            return "the observer changes what the command writes; please report it"
        if question.name in COURSES:
            return "; ".join([str(reasons.reason(found)), *self.places])
        if question.name == "container":
            return question.cause + reasons.beside_the_container(record_of(self.plain), record_of(trial))
        return label + question.cause

    def same(self, question: Question, trials: list[Trial]) -> str:
        """What an answer that all is the same rests on."""
        if question.name == "seed":
            return "another seed changes nothing: the command does not use the option, or nothing depends on it"
        if question.name == "observed":
            observed = min(self.plain.seconds, self.again.seconds)
            what = "outputs" if trials[0].hashes else "text on stdout"
            return f"the same {what}; {observed:.1f} s observed, {trials[0].seconds:.1f} s not"
        if question.name in COURSES:
            whole, rest = record_of(self.whole), record_of(trials[0])
            after = max((pair.offset for pair in pairs(whole, rest, resumed=True)), default=0)
            on = f"went on after step {after} of {whole.steps}"
            return on + without_effect(whole, rest, True)
        if question.name == "file_order":
            return f"{len(trials[0].reversed_listings)} folders listed in the reverse order"
        return self.evidence(*trials)

    def evidence(self, *trials: Trial) -> str:
        """How much was compared."""
        record = record_of(trials[0])
        parts = [f"{record.steps} steps"] * bool(record.steps)
        parts += [f"outputs: {len(record.outputs)}"] * bool(record.outputs)
        other = without_effect(record_of(self.again), record, False)
        return f"{len(trials) + 1} runs, {' and '.join(parts)}{other}"


def record_of(trial: Trial) -> Record:
    """The record of a run that has one."""
    assert trial.record is not None, trial.change
    return trial.record


def _not_resumed(whole: Record, resumed: Record) -> str | None:
    """Why a run cannot be called resumed."""
    if not resumed.steps:
        return "the --resume command took no step: if the command was nearly done when it was stopped, let it take more"
    both = list(zip(whole.processes, resumed.processes, strict=False))
    alike = all(a.of(STARTS).get(0) == b.of(STARTS).get(0) for a, b in both)
    if alike and resumed.steps >= whole.steps and not any(offset(a, b, resumed=True) for a, b in both):
        return f"the --resume command did not go on: it took all {resumed.steps} steps from the beginning"
    return None
