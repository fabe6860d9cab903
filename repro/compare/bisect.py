"""The fact that makes the difference of two records, for `compare --bisect`.

A's command runs again with some of the differing facts as in B, up to the step where the two diverge, until the smallest
set is known with which it differs from A.
"""

import contextlib
import glob
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.compare import environments, variables
from repro.compare.difference import Difference
from repro.compare.differing import ASKED, Differing, check_asked
from repro.compare.live import Live
from repro.compare.rerun_command import check_trusted, trained
from repro.compare.settable import COMMIT, NUMERICS, PACKAGE, VARIABLE, Fact
from repro.compare.smallest import smallest
from repro.errors import ReproError, UsageError
from repro.record.injection import unobserved
from repro.record.process import describe_exit
from repro.record.record import OUTPUTS, Record
from repro.record.recording import Recording
from repro.text import RUN, counted

log = logging.getLogger(__name__)

AGAIN = 2  # further runs with the smallest set, and without it
Lines = list[tuple[str, str]]
"""Lines of output, each with its label."""


@dataclass(frozen=True)
class RunResult:
    """The result of one run, up to the step of interest."""

    differs: bool
    """True if it is known to differ from A."""
    as_b: bool = False
    """True if it equals B."""
    failed: str | None = None

    @property
    def result(self) -> str:
        """The result in words: the run whose bits it has, or why it has no result."""
        if self.failed:
            return f"fails: {self.failed}"
        return "B's bits" if self.as_b else "other bits" if self.differs else "A's bits"


def bisected(a: Record, b: Record, difference: Difference, trusted: bool = False) -> Lines:
    """Finds the facts that make the difference. UsageError if that cannot be asked, ReproError if runs fail."""
    if difference.pair and difference.pair.offset:
        raise UsageError(
            f"{ASKED}: B goes on where A was stopped, so it is not A's command with a change; bisect two runs from the beginning"
        )
    if difference.channel == OUTPUTS and any(name.startswith(RUN) for name in a.outputs):
        raise UsageError(
            f"{ASKED}: only outputs differ, in folders of the runs of verify; record the command with --output FILE"
        )
    check_asked(a, b)
    with tempfile.TemporaryDirectory(prefix="repro-bisect-") as scratch:
        differing = Differing(a, b, Path(scratch))
        check_trusted(differing.reruns, trusted)
        try:
            differing.find()
            return Bisection(differing, difference)()
        finally:
            differing.close()


@dataclass
class Bisection:
    """The search, and the runs that it has made."""

    known: Differing
    found: Difference
    runs: int = 0

    def __post_init__(self) -> None:
        self.a, self.b, self.facts = self.known.a, self.known.b, self.known.facts
        self.environments = environments.Environments(self.known.scratch)
        self.until = self.found.step if self.found.step is not None and self.found.step <= self.a.steps else None

    def __call__(self) -> Lines:
        """Makes the runs."""
        if not self.facts:
            return [("made by", f"nothing that a run can set{self._left()}")]
        for fact in self.facts:
            log.info("  %s", fact)
        until = f", each until step {self.until}" if self.until else ""
        log.info(
            "about %d runs of A's command with some of these as in B%s", 2 * AGAIN + 3 + 2 * len(self.facts), until
        )
        self._check_ends()
        made = smallest(self.facts, lambda facts: self._run(facts).differs)
        again = [(self._run(made), self._run([])) for _ in range(AGAIN)]
        if any(base.differs or not other.differs for other, base in again):
            return [("made by", "chance: run again with the same facts, the command gives other bits")]
        return self._lines(made, again[0][0])

    # --- runs -------------------------------------------------------------------------------------------------------

    def _check_ends(self) -> None:
        """Raises ReproError if A's command no longer gives A's bits, or does so with all facts as in B, too."""
        base = self._run([])
        if base.failed or base.differs:
            dirty = "; files of it were not as in its commit" if _is_dirty(self.a) else ""
            why = f"it fails: {base.failed}" if base.failed else "by chance, or by what no record shows"
            raise ReproError(
                f"{ASKED}: {self.a.path}, run again, does not give the bits that were recorded: {why}{dirty}; ask repro verify"
            )
        whole = self._run(self.facts)
        if whole.failed:
            raise ReproError(f"{ASKED}: A's command with all of these as in B fails: {whole.failed}")
        if not whole.differs:
            raise ReproError(
                f"{ASKED}: A's command with all of these as in B gives A's bits: something else makes the difference{self._left()}"
            )

    def _run(self, chosen: Sequence[Fact], commit: str | None = None) -> RunResult:
        """A's command with the chosen facts as in B; `commit`: another one than those of the two."""
        self.runs += 1
        names = ", ".join(fact.called for fact in chosen) or "nothing"
        folder = self.known.scratch / f"run-{self.runs}"
        try:
            outcome = self._outcome(folder, chosen, commit)
        except ReproError as error:
            outcome = RunResult(False, failed=str(error).removeprefix(f"{ASKED}: "))
        at = f" at {commit[:12]}" if commit else ""
        log.info("run %d, with %s as in B%s: %s", self.runs, names, at, outcome.result)
        return outcome

    def _outcome(self, folder: Path, chosen: Sequence[Fact], commit: str | None) -> RunResult:
        folder.mkdir()
        values = {(fact.kind, fact.name): fact.b if fact in chosen else fact.a for fact in self.facts}
        command = list(self.b.content.command) if [*chosen] == self.facts else self.known.words.of(chosen)
        place = self.known.reruns[0].folder
        if self.known.repository:
            place = self.known.repository.place(commit or values[COMMIT, ""])
            command = [self.known.repository.moved(word, place) for word in command]
        with contextlib.chdir(place):
            recording = Recording(
                self._with_packages(command, values),
                folder / "record",
                [glob.escape(name) for name in self.a.outputs] if self.found.channel == OUTPUTS else [],
                self.a.content.every,
                variables=self._variables(values),
                portable=values.get((NUMERICS, ""), self.known.reruns[0].portable),
            )
            live = Live(self.a, recording.folder, False, until=self.until)
            ended = recording.carry_out(live.is_over)
            if ended.code and not ended.stopped:
                raise ReproError(ended.error or describe_exit(ended.code))
            return self._compared(recording, live, ended.code)

    def _variables(self, values: dict[tuple[str, str], Any]) -> dict[str, str]:
        chosen = {name: text for (kind, name), text in values.items() if kind == VARIABLE}
        recorded = {name: text for name, text in (self.known.reruns[0].variables | chosen).items() if text is not None}
        return unobserved(variables.without(os.environ) | recorded)

    def _with_packages(self, command: list[str], values: dict[tuple[str, str], Any]) -> list[str]:
        """The command with a Python that has the packages of the set."""
        python = environments.python_of(command, Path.cwd()) if self.known.pins is not None else None
        if python is None or self.known.pins is None:
            return command
        chosen = {name: line for (kind, name), line in values.items() if kind == PACKAGE}
        pins = {name: line for name, line in (self.known.pins | chosen).items() if line is not None}
        return (
            command if pins == self.known.installed[python] else [self.environments.python(python, pins), *command[1:]]
        )

    def _compared(self, recording: Recording, live: Live, code: int) -> RunResult:
        if self.found.channel == OUTPUTS:
            ours, names = recording.finish(code).outputs, self.found.names
            as_a, as_b = (all(ours.get(name) == one.outputs.get(name) for name in names) for one in (self.a, self.b))
            return RunResult(not as_a, as_b)
        processes = trained(recording.folder)
        until = self.until or self.a.steps + 1
        last = max((process.last for process in processes), default=0)
        ends_sooner = not live.over and last < min(until, self.a.steps)
        differs = ends_sooner or _is_within(live.first_difference(processes), until)
        beside = Live(self.b, recording.folder, False).first_difference(processes)
        as_b = last >= min(until, self.b.steps) and not _is_within(beside, until)
        return RunResult(differs, as_b)

    # --- what is said -----------------------------------------------------------------------------------------------

    def _lines(self, made: list[Fact], again: RunResult) -> Lines:
        """The smallest set, and what it rests on."""
        rest = [fact for fact in self.facts if fact not in made]
        bits = "B's bits" if again.as_b else "bits that are neither A's nor B's"
        until = f" until step {self.until}" if self.until else ""
        alone = "this alone" if len(made) == 1 else "these alone"
        says = f"with {alone} as in B, A's command gives {bits}{until}, in each of {AGAIN + 1} runs"
        says += "; none of them can be left out" if len(made) > 1 else ""
        if rest:
            says += f"; with all else as in B: {self._run(rest).result}"
        commit = next((fact for fact in made if fact.kind == COMMIT), None)
        lines = [*(("made by", str(fact)) for fact in made), ("shown", says)]
        return lines + ([("commit", self._first_commit(commit, made))] if commit else [])

    def _first_commit(self, fact: Fact, made: list[Fact]) -> str:
        """The commit, of those between the two, with which the difference begins."""
        assert self.known.repository
        between, with_b = self.known.repository.between(fact.a, fact.b), True
        if not between:
            between, with_b = self.known.repository.between(fact.b, fact.a), False
        if not between:
            return "the two are on different branches"
        low, high = 0, len(between) - 1
        while low < high:
            middle = (low + high) // 2
            title, outcome = self.known.repository.title(between[middle]), self._run(made, between[middle])
            if outcome.failed:
                return f"between the two, at {title}, the command fails: {outcome.failed}"
            low, high = (low, middle) if outcome.differs == with_b else (middle + 1, high)
        return f"{self.known.repository.title(between[low])}, of {counted(len(between), 'commit')} between the two"

    def _left(self) -> str:
        return f"; not set here: {', '.join(self.known.not_set)}" if self.known.not_set else ""


def _is_within(difference: Difference | None, until: int) -> bool:
    return difference is not None and (difference.step or 0) <= until


def _is_dirty(record: Record) -> bool:
    source = record.facts.get("source")
    return isinstance(source, dict) and bool(source.get("dirty"))
