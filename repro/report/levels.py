"""Levels: how far it was shown that a training gives the same bits again.

A level is reached if all that it asks was answered *same*, and if all levels below it are reached. A question that was not
asked, or has no answer, reaches nothing, and one that differs holds its level back.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeVar

import msgspec

from repro.frameworks import FRAMEWORKS
from repro.report.level_questions import AUDIT, HIGHEST, LEVELS, Level
from repro.structs import Struct
from repro.text import counted
from repro.trainers.verify.recorded import deciding
from repro.verify import machines
from repro.verify.audits import Audit
from repro.verify.machines import MachineResults
from repro.verify.questions import CANNOT_TELL, DIFFERS, NOT_ASKED, SAME, AnswerWord, shown
from repro.verify.results import COMMAND, DONE, Answer, Machine, Results, Run

BASELINES = ("as configured", "as it stands")  # the label of the run that nothing was changed for
VERDICTS: dict[str, AnswerWord] = {"same": SAME, "differs": DIFFERS, "inconclusive": CANNOT_TELL}
T = TypeVar("T")
NEVER_OF_ONE = (machines.QUESTION, AUDIT)
"""Questions that no results file answers alone; in one, it is an option of --vary by that name."""
SOME_RUNS = ("engines", machines.QUESTION)
"""Questions that are answered by some of their runs: one container is another one already."""
BY_ITSELF = "the auditor is who signed the receipt"
UNSIGNED = "the receipt or the audit is not signed"


class Asked(Struct):
    """A question that was asked for a level, and its answer."""

    question: str
    title: str
    answer: AnswerWord
    machine: str
    """The machine in a line; of an audit, the auditor's."""
    reason: str | None = None
    """The reason that there is no answer, or what is missing among its runs."""
    control: bool = False
    """True if it must differ."""


class LevelRow(Struct):
    """A level of one training."""

    number: int
    name: str
    reached: bool
    answer: AnswerWord
    """The answer of its questions together, whatever the levels below say."""
    decisive: list[str]
    """The names of the questions that decide the answer, or the reason."""
    asked: list[Asked] = []

    @property
    def says(self) -> str:
        """The answer in words."""
        return f"{shown(self.answer)}: {', '.join(self.decisive)}"


class Levels(Struct):
    """The levels of one training: a command, or a reference trainer in one arithmetic."""

    framework: str
    """The name of a reference trainer, or `command`."""
    numerics: str
    """The arithmetic of a reference trainer, or what was typed."""
    fingerprint: str | None
    """The fingerprint of the unchanged run; None if it was not observed."""
    level: int
    """The highest level that is reached; 0 if none is."""
    rows: list[LevelRow]
    date: str
    """The time of the newest results file."""
    versions: dict[str, str]
    """The version of Python and of each package, as the unchanged run reported them."""
    commit: str | None
    dirty: bool | None
    """True if files differed from the commit, or were not in it."""

    @property
    def name(self) -> str:
        """The name of the level; of level 0, why there is none."""
        if self.level:
            return self.rows[self.level - 1].name
        return "not reproducible" if self.differs else "not verified"

    @property
    def differs(self) -> bool:
        """True if it does not even give the same bits again."""
        return self.rows[0].answer == DIFFERS

    @property
    def says(self) -> str:
        """The level in one line, and what the next one lacks."""
        reached = f"Level {self.level} of {HIGHEST}: {self.name}"
        missing = next((row for row in self.rows if not row.reached), None)
        return f"{reached}. Not level {missing.number}, {missing.name} ({missing.says})" if missing else reached

    @property
    def frameworks(self) -> list[str]:
        """Each framework and its version, as `PyTorch 2.15.0`."""
        titles = {one.packages[0]: one.title for one in FRAMEWORKS.values()}
        return [f"{titles[name]} {version}" for name, version in self.versions.items() if name in titles]


def levels(contents: Iterable[Results], audits: Iterable[Audit] = ()) -> list[Levels]:
    """The levels of each training in results files, the newest file first; an audit counts by its fingerprint.

    Files of one command, commit and fingerprint are one training: of two answers to a question, the worse one counts.
    """
    known = machines.distinct(machines.unique(contents))
    trainings: dict[tuple[object, ...], _Training] = {}
    for machine in known:
        for content in machine.results:
            for new, answers in _columns(content):
                key = new.key or (new.framework, new.numerics, content.seal, id(content))
                training = trainings.setdefault(key, new)
                training.machines.append(machine.name)
                training.dates.append(content.created)
                training.gpu |= bool(machine.machine.gpu)
                where = machines.summary(machine.machine)
                training.asked += [_asked(answer, where, answer.control) for answer in answers]
    across = _across(known)
    return [training.levels(across, list(audits)) for training in trainings.values()]


Column = tuple[str, str]
"""A framework, or COMMAND, and its numerics."""
Across = dict[Column, list[tuple[Asked, list[Run]]]]
"""The question across machines, and the runs that it rests on, whose labels begin with a machine."""


def _columns(content: Results) -> Iterator[tuple["_Training", list[Answer]]]:
    """Each training of a results file, and its answers."""
    baselines = {(run.task, run.numerics): run for run in content.runs.values() if _is_baseline(run)}
    columns: dict[Column, list[Answer]] = {}
    for answer in content.answers:
        answers = columns.setdefault((answer.framework, answer.numerics), [])
        answers += [answer] if answer.question not in NEVER_OF_ONE else []
    for column, answers in columns.items():
        if column[0] == COMMAND or column[0] in FRAMEWORKS:
            yield _Training(*column, baselines.get(column)), answers


def _across(known: Sequence[MachineResults]) -> Across:
    across: Across = {}
    for a, b in combinations(known, 2):
        if _lasting(a.machine) != _lasting(b.machine):
            for answer, runs in machines.answers([a, b], deciding):
                asked = _asked(answer, f"{machines.summary(a.machine)}; {machines.summary(b.machine)}")
                across.setdefault((answer.framework, answer.numerics), []).append((asked, runs))
    return across


@dataclass
class _Training:
    """What results files say of one training."""

    framework: str
    numerics: str
    baseline: Run | None
    """The unchanged run."""
    machines: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    gpu: bool = False
    """True if one of its machines has a GPU."""
    asked: list[Asked] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...] | None:
        """Equal keys mean one training; None without a fingerprint, as then nothing shows that two are one."""
        if self.baseline is None or self.baseline.fingerprint is None:
            return None
        scripts = tuple(sorted(self.baseline.scripts.items()))
        return self.framework, self.numerics, self.baseline.fingerprint, self._source("commit", str), scripts

    def levels(self, across: Across, audits: Sequence[Audit]) -> Levels:
        """The levels, by its own answers, those across machines, and the audits."""
        self.asked += [asked for asked, runs in across.get((self.framework, self.numerics), []) if self._is_among(runs)]
        self.asked += self._audited(audits)
        rows: list[LevelRow] = []
        for level in LEVELS:
            row = self._row(level)
            row.reached = row.answer == SAME and all(below.reached for below in rows)
            rows.append(row)
        return Levels(
            framework=self.framework,
            numerics=self.numerics,
            fingerprint=self.baseline.fingerprint if self.baseline else None,
            level=sum(row.reached for row in rows),
            rows=rows,
            date=max(self.dates),
            versions=self._versions(),
            commit=self._source("commit", str),
            dirty=self._source("dirty", bool),
        )

    def _is_among(self, runs: Sequence[Run]) -> bool:
        """True if the unchanged run of one of its machines is among runs that were compared across machines."""
        labels = {f"{machine}: {label}" for machine in self.machines for label in BASELINES}
        own = self.baseline and self.baseline.fingerprint
        return any(run.fingerprint == own for run in runs if run.label in labels)

    def _audited(self, audits: Sequence[Audit]) -> Iterator[Asked]:
        fingerprint = self.baseline and self.baseline.fingerprint
        for audit in audits:
            if fingerprint is None or audit.fingerprint != fingerprint:
                continue
            answer, reason = VERDICTS[audit.verdict], None
            if answer == SAME and not audit.by_another:
                answer, reason = NOT_ASKED, BY_ITSELF if audit.auditor and audit.signer else UNSIGNED
            title = f"Receipt {audit.receipt.sha256[:8]}, {counted(len(audit.segments), 'segment')} done again"
            yield Asked(AUDIT, title, answer, machines.summary(audit.machine), reason)

    def _row(self, level: Level) -> LevelRow:
        needed = level.needed(self.framework, self.gpu)
        names = dict.fromkeys((*needed, *level.also))
        own = [one for one in self.asked if one.question in names or (level.number == 1 and one.control)]
        words = {name: level.counted(one.answer for one in own if one.question == name) for name in names}
        answer, decisive = _together(level, needed, words)
        idle = [one.question for one in own if one.control and one.answer == SAME]
        if idle and answer == SAME:
            answer, decisive = CANNOT_TELL, [f"the control {idle[0]} has no effect, so equal bits show nothing"]
        return LevelRow(level.number, level.name, False, answer, decisive, own)

    # --- what the unchanged run recorded ----------------------------------------------------------------------------

    @property
    def _facts(self) -> dict[str, Any]:
        experiment = (self.baseline and self.baseline.experiment) or {}
        facts = experiment.get("facts") if self.framework == COMMAND else experiment
        return facts if isinstance(facts, dict) else {}

    def _source(self, name: str, kind: type[T]) -> T | None:
        source = self._facts.get("source")
        value = source.get(name) if isinstance(source, dict) else None
        return value if isinstance(value, kind) else None

    def _versions(self) -> dict[str, str]:
        recorded = self._facts.get("versions")
        known = recorded.items() if isinstance(recorded, dict) else ()
        versions = {name: version for name, version in known if isinstance(version, str)}
        if self.baseline and self.baseline.trained and self.baseline.trained.framework.version:
            versions[FRAMEWORKS[self.framework].packages[0]] = self.baseline.trained.framework.version
        return versions


def _together(level: Level, needed: Sequence[str], words: dict[str, AnswerWord]) -> tuple[AnswerWord, list[str]]:
    """The answer of a level's questions together, and the questions that decide it."""

    def having(word: AnswerWord, names: Iterable[str] = needed) -> list[str]:
        return [name for name in names if words[name] == word]

    if having(DIFFERS, words):
        return DIFFERS, having(DIFFERS, words)
    if level.one_suffices and having(SAME):
        return SAME, having(SAME)
    if having(CANNOT_TELL):
        return CANNOT_TELL, having(CANNOT_TELL)
    if having(NOT_ASKED):
        return NOT_ASKED, having(NOT_ASKED)
    return SAME, having(SAME, words)


def _asked(answer: Answer, machine: str, control: bool = False) -> Asked:
    """A question and its answer; one that rests on a part of its runs is inconclusive, but for containers and machines."""
    word, reason = answer.answer, answer.reason or None
    if word == SAME and reason and answer.question not in SOME_RUNS:
        word = CANNOT_TELL
    return Asked(answer.question, answer.title, word, machine, reason, control)


def _is_baseline(run: Run) -> bool:
    return run.status == DONE and run.label in BASELINES


def _lasting(machine: Machine) -> tuple[object, ...]:
    """What distinguishes two machines, and does not change on one, as its name, kernel, drivers and share of cores do."""
    library = machine.platform.partition("-with-")[2]  # a container's, where it is another than the host's
    cpu = msgspec.structs.replace(machine.cpu, usable=None)
    return msgspec.structs.astuple(cpu), tuple(gpu.model for gpu in machine.gpu), library
