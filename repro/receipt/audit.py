"""Audits: segments of a training that are done again on this machine, and compared with its record.

A segment is resumed from its checkpoint by a command of the auditor's, with the numerics of the receipt. Every step of it, and
the next checkpoint, must be those of the record.
"""

import glob
import json
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from repro.compare import alignment, comparison, files
from repro.compare.comparison import Comparison
from repro.compare.difference import Difference, first_difference
from repro.compare.rerun_command import COMPUTED, is_narrowable
from repro.containers import command_line
from repro.containers.image import Place as ImagePlace
from repro.containers.image import moved, runtime
from repro.machine import gpu
from repro.receipt.receipt import Receipt
from repro.receipt.restoring import Place, cleared
from repro.receipt.segments import Segment
from repro.record import contents, outputs
from repro.record.checkpoints import CHECKPOINTS, CheckpointFile
from repro.record.injection import Portable, unobserved
from repro.record.lines import STEPS, Process
from repro.record.new_lines import NewLines
from repro.record.process import describe_exit
from repro.record.record import Record
from repro.record.recording import Recording
from repro.text import counted
from repro.verify import surroundings

log = logging.getLogger(__name__)

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
class Auditor:
    """Does segments of a record's training again."""

    receipt: Receipt
    record: Record
    resume: Sequence[str]
    """The words of the command that goes on from a checkpoint."""
    folder: Path
    """The folder of the audit."""
    place: Path
    """The folder in which commands are started."""
    portable: Portable | None
    start: Sequence[str] | None = None
    """The words of the command that begins the training; None: those of the receipt."""
    image: str | None = None
    outcomes: list[Outcome] = field(default_factory=list)

    def command(self, segment: Segment) -> list[str]:
        """The words for a segment."""
        return list(self.resume if segment.start else self.start or self.receipt.parameters["command"])

    def check(self, segments: Sequence[Segment]) -> None:
        """Raises UsageError where a file of the user's is where one of the training would be put."""
        for segment in segments:
            Place(self.folder / "run", self.place).claim(self._names(segment))

    def _names(self, segment: Segment) -> set[str]:
        """The files that a segment reads and writes, as far as the record names them."""
        checkpoints = (one.files for one in (segment.start, segment.end) if one)
        return {*self.record.outputs}.union(*checkpoints)

    def audit(self, segment: Segment) -> Outcome:
        """Does a segment again. ReproError where it cannot be started."""
        began = time.perf_counter()
        outcome = self._attempt(segment, segment.after)
        if isinstance(outcome, int):
            outcome = self._attempt(segment, outcome)
        assert isinstance(outcome, Outcome)
        outcome.seconds = time.perf_counter() - began
        if outcome.compared and outcome.compared.found:
            outcome.traced = self._traced(segment, outcome.compared.found)
        if outcome.verdict == "differs" and self.portable is None:
            outcome.verdict, outcome.says = "inconclusive", f"{outcome.says}; {NOT_PORTABLE}"
        self.outcomes.append(outcome)
        return outcome

    def _attempt(self, segment: Segment, after: int) -> Outcome | int:
        """Does a segment again, or says after which earlier step it goes on, where it was not given enough time for that.

        `after`: the step after which it is thought to go on. A thread may have written its checkpoint some steps late.
        """
        again, failed = self._again(segment, after, self._folder(segment))
        return Outcome(segment, "inconclusive", failed) if failed else self._compared(segment, after, again)

    def _until(self, segment: Segment) -> int:
        """The last step that is done again: the one after the segment's last, of those that are recorded."""
        return min(
            (step for one in self.record.processes for step in one.steps if step > segment.last), default=segment.last
        )

    def _traced(self, segment: Segment, difference: Difference) -> Path | None:
        """The record of a segment with the operations of the step that differs; None where there can be none."""
        pair = difference.pair
        if pair is None or not difference.step or difference.channel not in COMPUTED or not is_narrowable(pair.b):
            return None
        folder = self._folder(segment, f"-operations-{difference.step}")
        record, failed = self._again(segment, segment.after, folder, difference.step - pair.offset)
        return None if failed else record.path

    def _folder(self, segment: Segment, suffix: str = "") -> Path:
        return self.folder / f"{segment.after + 1}-{segment.last}{suffix}"

    # --- running ----------------------------------------------------------------------------------------------------

    def _again(
        self, segment: Segment, after: int, folder: Path, narrow: int | None = None
    ) -> tuple[Record, str | None]:
        """The record of a segment that was done again, from its checkpoint, and why it ended early, if it failed."""
        shutil.rmtree(folder, ignore_errors=True)
        run = self.folder / "run"
        run.mkdir(parents=True)
        with cleared(Place(run, self.place), folder / "files") as place:
            place.claim(self._names(segment))
            if segment.start:
                place.restore(self.record.path, segment.start)
            try:
                return self._carried_out(segment, after, folder, run, place, narrow)
            finally:
                folder.mkdir(exist_ok=True)
                run.rename(folder / "run")

    def _carried_out(
        self, segment: Segment, after: int, folder: Path, run: Path, place: Place, narrow: int | None
    ) -> tuple[Record, str | None]:
        words = [outputs.in_run(word, run) for word in self.command(segment)]
        if self.image is not None:
            where = ImagePlace(self.place, run, (os.getuid(), os.getgid()), surroundings.deciding(), gpu.count() > 0)
            words = moved(words, self.image, where, runtime(self.image))
        whole = segment.last == self.record.steps and narrow is None
        written = [] if narrow or segment.end is None else sorted(segment.end.written)
        patterns = [glob.escape(str(place.path(name))) for name in written]
        wanted = {str(place.path(name)) for name in written if files.steady(name)}
        recording = Recording(
            words,
            folder / "record",
            list(self.record.outputs) if whole else (),
            run=run,
            variables=dict(os.environ) if command_line.find(words) else unobserved(os.environ),
            portable=self.portable,
            narrow=narrow,
            all_files=not self.record.outputs,
            checkpoints=patterns,
        )
        enough = None if whole else Enough(recording.folder, after, self._until(segment), wanted)
        ended = recording.carry_out(enough.is_over if enough else None)
        record = recording.finish(ended.code)
        failed = ended.code != 0 and not ended.stopped
        why = f"the command {describe_exit(ended.code)}: {ended.error}".removesuffix(": ") if failed else None
        if recording.computed and not recording.computed.on:
            why = str(recording.computed)
        return record, why

    # --- comparing --------------------------------------------------------------------------------------------------

    def _compared(self, segment: Segment, after: int, again: Record) -> Outcome | int:
        """The outcome of a segment, by what its steps, its checkpoint and its outputs are; or where it goes on, if early."""
        if not again.processes and segment.last == self.record.steps and segment.steps == 1:
            return self._files(segment, again, AT_THE_END)
        if len(again.processes) != len(self.record.processes):
            count = f"{len(again.processes)} processes took steps, and {len(self.record.processes)} are recorded"
            return Outcome(segment, "inconclusive", count)
        until = self._until(segment)
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
        return self._files(segment, again, counted(segment.steps, "step"))

    def _begun(self, segment: Segment, ours: Process, theirs: Process) -> int:
        """The step after which a process goes on: of the checkpoint, or one before, where a thread wrote it.

        It may be the one after, where a program writes its checkpoint before it calls `repro.watch` for the step. So the
        step after the last one of a segment is done again and compared as well.
        """
        if segment.start is None:
            return 0
        fitting = alignment.last_fitting(ours, theirs, segment.after + 1, segment.after)
        return segment.after if fitting is None else fitting

    def _files(self, segment: Segment, again: Record, steps: str) -> Outcome:
        """The outcome of a segment whose steps are equal, by the next checkpoint, and by the outputs at the end."""
        compared, made = files.Files(), _copies(again)
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
        held = ["the next checkpoint"] if segment.end and [*compared.equal, *compared.but_for] else []
        held += ["the outputs"] if last and self.receipt.files else []
        return Outcome(segment, "same", "; ".join([", ".join([steps, *held]), *_notes(compared)]))


@dataclass
class Enough:
    """Stops a command once it has taken the steps of a segment, and written the next checkpoint."""

    folder: Path
    after: int
    """The step after which it goes on."""
    until: int
    files: set[str]
    """The files of the checkpoint, but for those whose names are other ones in each run."""

    def is_over(self, process: subprocess.Popen[bytes]) -> bool:
        """Waits for that: True; False where the command ends before."""
        lines = NewLines(self.folder / STEPS)
        while process.poll() is None:
            step = lines.highest_step()
            if step + (self.after if lines.first <= 1 else 0) >= self.until and self._is_written():
                return True
            time.sleep(0.01)
        return False

    def _is_written(self) -> bool:
        seen = b"".join(path.read_bytes() for path in (self.folder / CHECKPOINTS).glob("*.jsonl"))
        return all(json.dumps(file).encode() in seen for file in self.files)


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


def _copies(record: Record) -> dict[str, CheckpointFile]:
    """The first copy of each file that a run wrote after it began."""
    changes = record.content.checkpoints
    copies: dict[str, CheckpointFile] = {}
    for change in changes if isinstance(changes, list) else []:
        copies = {name: file for name, file in change.files.items() if file is not None} | copies
    return copies
