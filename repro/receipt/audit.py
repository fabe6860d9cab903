"""Audits: segments of a training that are done again on this machine, and compared with its record.

A segment is resumed from its checkpoint by a command of the auditor's, with the numerics of the receipt. Every step of it, and
the next checkpoint, must be those of the record.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from repro.compare import alignment, comparison, files, incidental
from repro.compare.comparison import Comparison
from repro.compare.difference import Difference, first_difference
from repro.compare.rerun_command import COMPUTED, is_narrowable
from repro.receipt.runs import Closer, Runs
from repro.receipt.segments import Segment
from repro.record import contents
from repro.record.checkpoints import CHECKPOINTS, CheckpointFile
from repro.record.lines import Process
from repro.record.record import KEPT, Record
from repro.text import counted

Verdict = Literal["same", "differs", "inconclusive"]
AT_THE_END = "nothing is left to do after its checkpoint; the step is compared with the segment before"
NOT_PORTABLE = "the training had native numerics, whose bits another machine need not give: a difference proves nothing"


@dataclass
class Outcome:
    """A segment that was done again."""

    segment: Segment
    verdict: Verdict
    says: str
    seconds: float = 0.0
    compared: Comparison | None = None
    """The first difference of a step."""
    traced: Path | None = None
    """The record of a further run, with the operations of the step that differs."""


@dataclass
class Auditor(Runs):
    """Runs segments of a training again, and compares them with its record."""

    outcomes: list[Outcome] = field(default_factory=list)

    def audit(self, segment: Segment) -> Outcome:
        """Does a segment again. ReproError where it cannot be started."""
        began = time.perf_counter()
        outcome = self._attempt(segment, segment.after)
        if isinstance(outcome, int):
            outcome = self._attempt(segment, outcome)
        assert isinstance(outcome, Outcome)
        outcome.seconds = time.perf_counter() - began
        if outcome.compared and outcome.compared.found:
            self._look_closer(outcome, outcome.compared, outcome.compared.found)
        if outcome.verdict == "differs" and self.portable is None:
            outcome.verdict, outcome.says = "inconclusive", f"{outcome.says}; {NOT_PORTABLE}"
        self.outcomes.append(outcome)
        return outcome

    def _folder(self, segment: Segment, suffix: str = "") -> Path:
        return self.folder / f"{segment.after + 1}-{segment.last}{suffix}"

    def _attempt(self, segment: Segment, after: int) -> Outcome | int:
        """Does a segment again, or says after which earlier step it goes on, where it was not given enough time for that.

        `after`: the step after which it is thought to go on. A thread may have written its checkpoint some steps late.
        """
        again, failed = self.again(segment, after, self._folder(segment))
        return Outcome(segment, "inconclusive", failed) if failed else self._compared(segment, after, again)

    def _look_closer(self, outcome: Outcome, compared: Comparison, difference: Difference) -> None:
        """Does a segment once more, to have the operations of the step that differs, and arrays if the record has them."""
        pair, segment = difference.pair, outcome.segment
        if pair is None or not difference.step:
            return
        traced = difference.channel in COMPUTED and is_narrowable(pair.b)
        closer = Closer(difference.step - pair.offset if traced else None, (self.record.path / KEPT).is_dir())
        if closer.narrow is None and not closer.keep:
            return
        folder = self._folder(segment, f"-step-{difference.step}")
        record, failed = self.again(segment, segment.after, folder, closer)
        if failed is None:
            outcome.traced = record.path if traced else None
            seen = replace(compared.b, path=record.path)
            outcome.compared = replace(comparison.known(compared.a, seen, difference), why=None)

    def _compared(self, segment: Segment, after: int, again: Record) -> Outcome | int:
        """The outcome of a segment, by what its steps, its checkpoint and its outputs are; or where it goes on, if early."""
        if not again.processes and segment.last == self.record.steps and segment.steps == 1:
            return self._files(segment, again, AT_THE_END)
        if len(again.processes) != len(self.record.processes):
            count = f"ranks that took steps: {len(again.processes)}, recorded: {len(self.record.processes)}; audit with as many"
            return Outcome(segment, "inconclusive", count)
        until = self.until(segment)
        begun = [self._begun(segment, *both) for both in zip(self.record.processes, again.processes, strict=True)]
        sides = [
            _sides(until, ours, theirs, after)
            for ours, theirs, after in zip(self.record.processes, again.processes, begun, strict=True)
        ]
        a, b = (_of_steps(one, [side[n] for side in sides]) for n, one in enumerate((self.record, again)))
        difference = first_difference(a, b, resumed=segment.start is not None)
        if difference:
            compared = replace(comparison.known(a, b, difference), why=None)  # its rules know honest trainings alone
            step = f"at step {difference.step}, " if difference.step else ""
            says = f"{step}in the {difference.channel}" + (f" (`{difference.names[0]}`)" if difference.names else "")
            return Outcome(segment, "differs", says, compared=compared)
        taken = min(theirs.last + _offset(theirs, at) for (_, theirs), at in zip(sides, begun, strict=True))
        if taken < until and min(begun) < after:
            return min(begun)
        if taken < until:
            return Outcome(segment, "differs", f"the command ended after step {taken}, and step {until} is recorded")
        return self._files(segment, again, counted(segment.steps, "step"), max(begun))

    def _begun(self, segment: Segment, ours: Process, theirs: Process) -> int:
        """The step after which a process goes on: of the checkpoint, or one before, where a thread wrote it.

        It may be the one after, where a program writes its checkpoint before it calls `repro.watch` for the step. So the
        step after the last one of a segment is done again and compared as well.
        """
        if segment.start is None:
            return 0
        fitting = alignment.last_fitting(ours, theirs, segment.after + 1, segment.after)
        return segment.after if fitting is None else fitting

    def _files(self, segment: Segment, again: Record, steps: str, begun: int = 0) -> Outcome:
        """The outcome of a segment whose steps are equal, by the next checkpoint, and by the outputs at the end."""
        made = _copies(again, segment.last - (0 if again.processes and again.processes[0].begun else begun))
        compared = files.Files()
        for name in sorted(segment.end.written) if segment.end else []:
            theirs = made.get(name)
            ours = segment.end.files[name] if segment.end else None
            if theirs is None or ours is None:
                if files.steady(name):
                    compared.differing[name] = f"`{name}` was not written"
                else:
                    compared.aside[name] = files.ONE_RUN
            elif ours.sha256 == theirs.sha256:
                compared.equal.append(name)
            else:
                files.add(compared, name, _keys(self.record, name, ours), _keys(again, name, theirs))
        last = segment.last == self.record.steps
        if last:
            whole = first_difference(_files_of(self.record), _files_of(again), resumed=segment.start is not None)
            if whole:
                compared.differing["outputs"] = whole.inside or f"`{whole.names[0]}` differs"
        says = next(iter(compared.differing.values()), None)
        if says:
            return Outcome(segment, "differs", f"all steps are equal, but {says}")
        known = [*compared.equal, *compared.but_for]
        held = ["the next checkpoint"] if any(_holds_model(again, name, made[name]) for name in known) else []
        held += ["the outputs"] if last and self.receipt.files else []
        return Outcome(segment, "same", "; ".join([", ".join([steps, *held]), *_notes(compared)]))


def _sides(last: int, ours: Process, theirs: Process, after: int) -> tuple[Process, Process]:
    """Both processes up to a step, so that the second goes on where it is known to."""
    whole = replace(ours, steps={step: hashes for step, hashes in ours.steps.items() if step <= last})
    rest = {step: hashes for step, hashes in theirs.steps.items() if step + _offset(theirs, after) <= last}
    return whole, replace(theirs, steps=rest)


def _offset(process: Process, after: int) -> int:
    """The number to add to a step of a process that goes on, to have that of the whole; 0 where it counts on by itself."""
    return 0 if process.begun else after


def _of_steps(record: Record, processes: list[Process]) -> Record:
    return replace(record.without_files(), processes=processes, metrics=[])


def _files_of(record: Record) -> Record:
    """The record of the files alone."""
    return replace(record, processes=[], metrics=[])


def _notes(compared: files.Files) -> list[str]:
    """How many files are not equal as a whole, or not compared."""
    alike = [f"{counted(len(compared.but_for), 'file')} equal but for times and the like"] if compared.but_for else []
    name, why = next(iter(compared.aside.items()), ("", ""))
    return alike + ([f"{counted(len(compared.aside), 'file')} not compared, such as `{name}` ({why})"] if name else [])


def _keys(record: Record, name: str, file: CheckpointFile) -> dict[str, str] | None:
    return contents.read(record.path / CHECKPOINTS / file.copy, name)


def _holds_model(record: Record, name: str, file: CheckpointFile) -> bool:
    return incidental.holds_results(name, _keys(record, name, file))


def _copies(record: Record, last: int) -> dict[str, CheckpointFile]:
    """The copy of each file that a run wrote nearest to a step of its own."""
    changes = record.content.checkpoints
    copies: dict[str, CheckpointFile] = {}
    for change in sorted(changes if isinstance(changes, list) else [], key=lambda one: -abs(one.step - last)):
        copies |= {name: file for name, file in change.files.items() if file is not None}
    return copies
