"""Runs of segments: from a checkpoint, by a command of the auditor's, with the numerics of the receipt."""

import glob
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.compare import files
from repro.containers import command_line
from repro.containers.image import Place as ImagePlace
from repro.containers.image import moved, runtime
from repro.machine import gpu
from repro.receipt.receipt import Receipt
from repro.receipt.restoring import Place, cleared
from repro.receipt.segments import Segment
from repro.record import outputs
from repro.record.checkpoints import CHECKPOINTS
from repro.record.injection import Portable, unobserved
from repro.record.lines import STEPS
from repro.record.new_lines import NewLines
from repro.record.process import describe_exit
from repro.record.record import Record
from repro.record.recording import Recording
from repro.verify import surroundings


@dataclass(frozen=True)
class Closer:
    """What a further run of a segment is to keep."""

    narrow: int | None
    """The step of which each operation is written down."""
    keep: bool
    """True for all arrays."""


@dataclass
class Runs:
    """Runs segments of a record's training again."""

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

    def until(self, segment: Segment) -> int:
        """The last step that is done again: the one after the segment's last, of those that are recorded."""
        return min(
            (step for one in self.record.processes for step in one.steps if step > segment.last), default=segment.last
        )

    def again(
        self, segment: Segment, after: int, folder: Path, closer: Closer | None = None
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
                return self._carried_out(segment, after, folder, run, place, closer)
            finally:
                folder.mkdir(exist_ok=True)
                run.rename(folder / "run")

    def _carried_out(
        self, segment: Segment, after: int, folder: Path, run: Path, place: Place, closer: Closer | None
    ) -> tuple[Record, str | None]:
        words = [outputs.in_run(word, run) for word in self.command(segment)]
        if self.image is not None:
            where = ImagePlace(self.place, run, (os.getuid(), os.getgid()), surroundings.deciding(), gpu.count() > 0)
            words = moved(words, self.image, where, runtime(self.image))
        whole = segment.last == self.record.steps and closer is None
        written = [] if closer or segment.end is None else sorted(segment.end.written)
        patterns = [glob.escape(str(place.path(name))) for name in written]
        wanted = {str(place.path(name)) for name in written if files.steady(name)}
        recording = Recording(
            words,
            folder / "record",
            list(self.record.outputs) if whole else (),
            run=run,
            variables=dict(os.environ) if command_line.find(words) else unobserved(os.environ),
            portable=self.portable,
            narrow=closer.narrow if closer else None,
            keep=closer.keep if closer else False,
            all_files=not self.record.outputs,
            checkpoints=patterns,
        )
        enough = None if whole else Enough(recording.folder, after, self.until(segment), wanted)
        ended = recording.carry_out(enough.is_over if enough else None)
        record = recording.finish(ended.code)
        failed = ended.code != 0 and not ended.stopped
        why = f"the command {describe_exit(ended.code)}: {ended.error}".removesuffix(": ") if failed else None
        if recording.computed and not recording.computed.on:
            why = str(recording.computed)
        return record, why


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
