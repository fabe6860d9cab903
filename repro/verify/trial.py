"""A command, and the result of one of its runs."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import UNSET

from repro.compare.difference import Difference
from repro.compare.pairs import pairs
from repro.record.injection import Portable
from repro.record.lines import Process
from repro.record.portable import Computed
from repro.record.record import Record, fingerprint
from repro.text import RUN, slug
from repro.verify import surroundings
from repro.verify.questions import Change
from repro.verify.results import COMMAND, DONE, FAILED, Run
from repro.verify.timeline import TimelinePart, parts
from repro.verify.vary import with_option


@dataclass
class Command:
    """The command that questions are about, and what the user says of it."""

    words: Sequence[str]
    resume: Sequence[str] | None = None
    seed_option: str | None = None
    patterns: Sequence[str] = ()
    every: int = 1
    image: str | None = None
    """A Docker image, or a SIF."""
    keep: bool = False
    """True if runs keep the arrays that are hashed."""
    portable: Portable | None = None
    """The options of portable numerics, if it is run with them."""
    alone: Sequence[str] | None = None
    """A command that does one of its trainings alone."""
    trial: int | None = None
    """Which of its trainings that is, from 0; None for the last."""

    @property
    def compares_all_files(self) -> bool:
        """True if all files in the run's own folder are compared, as no output is named."""
        return not self.patterns and any(RUN in word for word in [*self.words, *(self.resume or ())])

    @property
    def typed(self) -> str:
        """The words, as somebody types them who wants the same without `verify`."""
        return self.with_portable(self.words)

    def with_portable(self, words: Sequence[str]) -> str:
        """Words of this command as a line of a shell."""
        return shlex.join([*(self.portable.words if self.portable else []), *words])

    def changed(self, change: Change) -> list[str]:
        """The words with another seed, or another value of an option, where a change has one."""
        words = list((self.alone or ()) if change.course == "alone" else self.words)
        if change.seed:
            assert self.seed_option is not None
            words = with_option(words, self.seed_option, change.seed)
        return with_option(words, *change.option) if change.option else words


@dataclass
class Trial:
    """The result of one run."""

    change: Change
    command: Command
    folder: Path
    seconds: float = 0.0
    record: Record | None = None
    """None where it was not observed, or failed; of a command that was resumed, of its last process."""
    parts: list[Record] = field(default_factory=list)
    """The records of those that were stopped, and resumed by the next."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each output file."""
    files: Record | None = None
    """The record with its files, also where it was not observed."""
    error: str | None = None
    computed: Computed | None = None
    """The portable operations."""
    wrote: set[str] = field(default_factory=set)
    """Files that its processes wrote below the folder that the command was started in, as far as they are known."""
    changed_files: bool = False
    """True if files changed there, whoever wrote them."""
    left_out: list[str] = field(default_factory=list)
    """Output files that are not compared: they differ from run to run, or only one of two runs wrote them."""
    incomparable: bool = False
    """True if it lacks outputs or weights of the baseline, so that its fingerprint is one of others."""
    named: list[Process] | None = None
    """The processes of a resumed run, with the names that the whole one's arrays have."""
    divergence: Difference | None = None
    """The first difference from the baseline, where the run was stopped at it."""
    listed: list[str] = field(default_factory=list)
    """Folders whose names were given in reverse order."""
    slowed: list[str] = field(default_factory=list)
    """Kinds of what was slowed: threads, processes, ranks."""
    changed: list[str] = field(default_factory=list)
    """What a change found to change, by its marks: as the shared generators that threads drew from."""
    left: list[str] = field(default_factory=list)
    """Files that it left in caches, where it found them empty."""
    faked: bool = False
    """True if the program faketime gave it another clock."""
    stopped_with: set[str] = field(default_factory=set)
    """The files that it had written when it was stopped."""
    fails: str | None = None
    """The error of a run with a planted fault: it is no failure of the command."""
    stopped_within: bool = False
    """True if it was stopped between two backward passes of a step."""

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """The variables that are changed."""
        return surroundings.REAL_STAT if self.faked else self.change.environment

    @property
    def faketime(self) -> list[str]:
        """The program that runs the command with another clock."""
        return [surroundings.FAKETIME, "-f", self.change.clock] if self.faked and self.change.clock else []

    @property
    def fingerprint(self) -> str | None:
        """The record's; None without one, or where it is one of other files or weights."""
        return self.record.content.fingerprint if self.record and not self.incomparable else None

    def name_as(self, whole: Record) -> None:
        """Computes the fingerprint under the whole run's names, if both end with as many weights."""
        if self.record is None:
            return
        self.named = [pair.b for pair in pairs(whole, self.record, resumed=True)]
        ends = ([process.weights.keys() for process in one] for one in (whole.processes, self.named))
        self.incomparable = next(ends) != next(ends)
        self._compute_fingerprint()

    def _compute_fingerprint(self) -> None:
        if self.record:
            processes = self.record.processes if self.named is None else self.named
            self.record.content.fingerprint = fingerprint(processes, self.record.outputs)

    def leave_out(self, names: Sequence[str]) -> None:
        """Takes files out of what is compared; the record on disk keeps them."""
        self.left_out += names
        for name in names:
            self.hashes.pop(name, None)
        for record in filter(None, (self.record, self.files)):
            for name in names:
                record.outputs.pop(name, None)
                record.written.pop(name, None)
        self._compute_fingerprint()

    def leave_out_metrics(self, names: Collection[tuple[str, str]]) -> None:
        """Takes metrics out of what is compared, by source and name."""
        if self.record and names:
            self.record.metrics = [one for one in self.record.metrics if (one.source, one.name) not in names]

    def as_run(self) -> Run:
        """The run as results.json has it."""
        begun = self.change.course in ("straight", "alone")
        words = self.command.changed(self.change) if begun else self.command.resume or []
        words = [*self.faketime, *words]
        fault = [f"REPRO_PLANT={shlex.quote(self.change.fault)}"] if self.change.fault else []
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return Run(
            task=COMMAND,
            numerics=self.command.typed,
            label=self.change.label,
            command=" ".join([*fault, *variables, self.command.with_portable(words)]),
            status=FAILED if self.error else DONE,
            steps=self.record.steps if self.record else 0,
            seconds=self.seconds,
            error=self.error,
            fingerprint=self.fingerprint,
            parts=self.timeline or UNSET,
            experiment={"facts": {"versions": {}, "scripts": {}} | self.record.facts} if self.record else None,
        )

    @cached_property
    def timeline(self) -> list[TimelinePart]:
        """Its processes over the steps."""
        return parts(self.folder, self.wrote) if self.change.observed else []

    @property
    def stdout(self) -> bytes:
        """The output of the command."""
        return (self.folder / "stdout").read_bytes()


def run_name(change: Change) -> str:
    """The name of a run in results.json."""
    return f"{COMMAND}/{slug(change.label)}"
