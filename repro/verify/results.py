"""results.json: questions, runs and answers of one machine.

Of the reference trainers, or of a command of one's own: then a run's `task` is `command`, and its `numerics` what was typed.

Such a file is carried to other machines: besides its checksum and its types, every answer is checked against the
fingerprints that it rests on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from repro import structs
from repro.record.warnings import RecordWarning
from repro.structs import Checked, FileKind, Fingerprint, Flaw, Integer, Number, Struct, Time, converted
from repro.verify.experiment import Experiment
from repro.verify.planted import Controls
from repro.verify.questions import DIFFERS, SAME, UNANSWERED, AnswerWord, Evidence, Promise, kept
from repro.verify.timeline import TimelinePart

MOST_TABLES, MOST_TEXT = 50, 64 << 20  # in the answers of one file

COMMAND = "command"
DONE: Literal["done"] = "done"
FAILED: Literal["failed"] = "failed"
REFUSED: Literal["refused"] = "refused"  # this machine cannot run it

# --- the machine ----------------------------------------------------------------------------------------------------


class Cpu(Struct):
    """A CPU, as far as it says."""

    architecture: str | None = None
    vendor: str | None = None
    model: str | None = None
    instruction_set: str | None = None
    cores: Integer | None = None
    logical: Integer | None = None
    usable: Integer | None = None


class Gpu(Struct):
    """A GPU, as its driver describes it."""

    model: str | None = None
    driver: str | None = None
    mig: bool | None = None
    memory: Integer | None = None


class Machine(Struct):
    """Facts of a machine."""

    cpu: Cpu
    gpu: list[Gpu]
    platform: str
    name: str | None = None


# --- runs -----------------------------------------------------------------------------------------------------------


class MetricsRow(Struct, kw_only=True):
    """A line of metrics.jsonl."""

    epoch: Integer | UnsetType = UNSET
    step: Integer
    train_loss: float | UnsetType | None = UNSET
    test_loss: float | UnsetType | None = UNSET
    test_accuracy: Number | None
    train_seconds: Number | None
    test_seconds: Number | UnsetType | None = UNSET
    fingerprint: Fingerprint


class CommandFacts(Struct):
    """The facts of a command's record, as far as they are read."""

    versions: dict[str, Any]
    scripts: dict[str, str]
    portable_numerics: dict[str, str | None] | UnsetType | None = UNSET


class CommandExperiment(Struct):
    """The experiment of a command's run, as far as it is read."""

    facts: CommandFacts


class Run(Struct):
    """The result of one run."""

    task: str
    """The framework, or COMMAND."""
    numerics: str
    label: str
    command: str
    status: Literal["done", "failed", "refused"]
    steps: Integer
    seconds: Number
    error: str | None = None
    fingerprint: Fingerprint | None = None
    evaluation: str | None = None
    """The test loss, every bit of it, and the accuracy."""
    losses: list[Number] = []
    loss_steps: list[Integer] = []
    metrics: list[MetricsRow] = []
    parts: list[TimelinePart] | UnsetType = UNSET
    """The processes of a command's run over its steps: one, or more where it was stopped and resumed."""
    experiment: dict[str, Any] | None = None
    """The recorded facts, in any form; what is read of them is typed."""

    def as_run(self) -> "Run":
        """The run itself, which is all that is known of a reference trainer's."""
        return self

    def evidence(self, kind: Evidence) -> str | None:
        """The value that is compared with that of other runs; a record shows its fingerprint."""
        return self.evaluation if kind == "evaluation" else self.fingerprint

    @property
    def of_command(self) -> bool:
        """True for a run of a command of one's own."""
        return self.task == COMMAND

    @property
    def trained(self) -> Experiment | None:
        """The experiment of a reference trainer. Flaw where it is not of the form."""
        if self.experiment is None or self.of_command:
            return None
        return converted(self.experiment, Experiment)

    @property
    def scripts(self) -> dict[str, str]:
        """SHA-256 of each file that a command names. Flaw where the experiment is not of the form."""
        return self._facts.scripts if self._facts else {}

    @property
    def has_portable_numerics(self) -> bool:
        """True for a run of a command with portable numerics. Flaw if the experiment is malformed."""
        return bool(self._facts and self._facts.portable_numerics)

    @property
    def _facts(self) -> CommandFacts | None:
        if self.experiment is None or not self.of_command:
            return None
        return converted(self.experiment, CommandExperiment).facts


# --- answers --------------------------------------------------------------------------------------------------------


class GrowthPoint(Struct):
    """The distance between all weights after a step."""

    step: Integer
    relative: Number | None
    ulps: Integer | UnsetType | None = UNSET


class Cause(Struct):
    """A recorded fact in which two runs differ."""

    fact: str
    a: Any
    b: Any
    why: str | UnsetType = UNSET


class FirstDifference(Struct):
    """The first difference of two runs, as far as it is known."""

    elements: Integer | None = None
    size: Integer | None = None
    ulps: Integer | None = None
    relative: Number | None = None
    epoch: Integer | None = None
    step: Integer | None = None
    channel: str | UnsetType | None = UNSET
    last_equal_step: Integer | None = None
    tensor: str | None = None
    growth: list[GrowthPoint] = []
    causes: list[Cause] = []
    """The most likely cause first."""
    operation: str | None = None
    ranks: list[Integer] | UnsetType = UNSET
    run: str | UnsetType = UNSET
    """The name of the run that differs, where it is a command's."""


class Answer(Struct, kw_only=True):
    """The answer to a question, and what it rests on."""

    says: str | UnsetType = UNSET
    """The evidence in words, where fingerprints do not say all."""
    question: str
    title: str
    framework: str
    numerics: str
    promise: Promise
    answer: AnswerWord
    kept: bool | None
    control: bool
    evidence: Evidence
    reason: str | None
    runs: list[str]
    """The names of those that were compared."""
    difference: FirstDifference | None
    controls: Controls | UnsetType = UNSET


# --- the file -------------------------------------------------------------------------------------------------------


class Settings(Struct):
    """The questions that were asked, and of what."""

    steps: Integer | None
    questions: list[str]
    frameworks: list[str]
    numerics: list[str]
    overrides: list[str]


class Results(Checked, kw_only=True):
    """All that a file holds."""

    created: Time
    seconds: Number
    machine: Machine
    settings: Settings
    runs: dict[str, Run]
    answers: list[Answer]
    warnings: list[RecordWarning] | UnsetType = UNSET
    """Warnings about the baseline, though it is reproducible."""


def write(path: Path, content: Results) -> None:
    """Adds the checksum, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    structs.write(KIND, path, content)


def read(path: Path) -> Results:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    return structs.read(path, KIND)


def _contradictions(content: Results) -> Iterator[str]:
    """Yields what is too much to be shown, and what does not follow from fingerprints: a run's own, the answers."""
    yield from _too_much(content)
    for name, run in content.runs.items():
        yield from _contradictions_of_run(name, run)
    for answer in content.answers:
        what = f"{answer.question}, {answer.framework}, {answer.numerics}"
        missing = [name for name in answer.runs if name not in content.runs]
        if missing:
            yield f"the answer to {what} rests on a run that is missing ({missing[0]})"
        elif answer.answer not in _following(answer, content.runs):
            yield f"the answer to {what} is {answer.answer!r}, which does not follow from its runs"
        elif answer.kept != kept(answer.promise, answer.answer):
            yield f"the answer to {what} is {answer.answer!r}, promised {answer.promise!r}, kept {answer.kept}"
        if answer.controls and not answer.controls.is_counted:
            yield f"the faults that were planted for {what} are not as many as it says"


def _too_much(content: Results) -> Iterator[str]:
    """There is a table for each arithmetic, with a column for each framework, and an answer is shown with its runs."""
    for what in ("framework", "numerics"):
        number = len({getattr(answer, what) for answer in content.answers})
        if number > MOST_TABLES:
            yield f"its answers have {number} values of {what}, more than {MOST_TABLES}"
    sizes = {name: len(run.command) + len(run.label) + len(run.error or "") for name, run in content.runs.items()}
    shown = sum(sizes.get(name, 0) for answer in content.answers for name in answer.runs)
    if shown > MOST_TEXT:
        yield f"its answers show {shown} characters of their runs, more than {MOST_TEXT}"


def _contradictions_of_run(name: str, run: Run) -> Iterator[str]:
    done = run.status == DONE
    possible = {True, False} if done and run.of_command else {done}  # a command's run may not be observed
    if (run.fingerprint is not None) not in possible:
        yield f"run {name} is {run.status}, with the fingerprint {run.fingerprint}"
    if run.experiment and ("config" in run.experiment) == run.of_command:
        yield f"run {name} of {run.task} has the experiment of another kind of run"
    recorded = [row.fingerprint for row in run.metrics[-1:]]
    try:
        if (trained := run.trained) and trained.sha256.final_weights:
            recorded.append(trained.sha256.final_weights)
        _ = run.scripts
    except Flaw as flaw:
        yield f"the experiment of run {name}: {flaw}"
    if done and {*recorded} - {run.fingerprint}:
        yield f"run {name} has another fingerprint than its experiment.json or metrics.jsonl"
    if len(run.losses) != len(run.loss_steps):
        yield f"run {name} has {len(run.losses)} losses at {len(run.loss_steps)} steps"


def _following(answer: Answer, runs: dict[str, Run]) -> set[AnswerWord]:
    """The answers that the runs allow: none always; one more where there are two or more and all are done.

    Records that differ may end with equal weights; those that are the same may not end with others.
    """
    chosen = [runs[name] for name in set(answer.runs)]
    if answer.evidence == "record":
        unlike = len({run.fingerprint for run in chosen} - {None}) > 1
        return {*UNANSWERED, DIFFERS} if unlike else {*UNANSWERED, DIFFERS, SAME}
    evidence = [run.evidence(answer.evidence) for run in chosen]
    if len(evidence) < 2 or None in evidence:
        return {*UNANSWERED}
    return {*UNANSWERED, SAME if len(set(evidence)) == 1 else DIFFERS}


KIND = FileKind("verify", "results.json", 1, "answers", Results, _contradictions)
