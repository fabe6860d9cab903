"""Comparison of a run with a record while it goes on.

Each step is held against the recorded one as soon as it is written down. What one of the two lacks is no difference yet,
as it may still be written: only a value that both have ends a run early, or a step beyond the last one that was recorded.
"""

import contextlib
import subprocess
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from repro.compare.alignment import align
from repro.compare.difference import DRAWN, Difference, first_difference
from repro.compare.pairs import CALLED, Pair
from repro.errors import ReproError, UsageError
from repro.record.lines import STEPS, Process, in_order, take
from repro.record.new_lines import new_lines
from repro.record.record import KEPT, Record
from repro.record.typed_lines import Step
from repro.structs import Flaw
from repro.text import printable

OFTEN = 1.1  # growth of a run, since a difference without effect, at which all of it is compared again
HELD = 2  # steps whose arrays stay

Sides = list[tuple[Process, Process]]


@dataclass
class Live:
    """A run beside the record that it should be equal to."""

    recorded: Record
    folder: Path
    """The run's, which its processes write into."""
    resumed: bool | None = None
    """True if the run was resumed; None as in pairs()."""
    keep: bool = False
    """True if the run keeps its arrays: those of equal steps are removed, except the last ones."""
    until: int | None = None
    """The step of the record after which nothing is of interest."""
    processes: dict[Path, Process] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    """The step of the recorded process after which each process goes on."""
    held: dict[str, deque[set[str]]] = field(default_factory=dict)
    """The arrays of the last steps of each process."""
    compared: tuple[int, int] = (0, 0)
    """The numbers of processes and of steps when all of them were compared last."""
    over: bool = False
    """True once there is a reason to stop the run."""

    def is_over(self, process: subprocess.Popen[bytes]) -> bool:
        """Waits until the run differs, or has come far enough: True; False where it ends before.

        What cannot be read is left to those who read the record.
        """
        with contextlib.suppress(Flaw, OSError, ReproError):
            self.over = any(self._is_over(lines) for lines in new_lines(process, self.folder / STEPS))
        return self.over

    def first_difference(self, processes: Iterable[Process] | None = None) -> Difference | None:
        """The first difference so far; `processes`: those of the run, where they have been read anew."""
        sides = self._sides(self.processes.values() if processes is None else processes)
        self.compared = len(sides), sum(len(theirs.steps) for _, theirs in sides)
        content = self.recorded.without_files().content
        a = Record(self.recorded.path, content, [ours for ours, _ in sides])
        b = begun(Record(self.folder, content, [theirs for _, theirs in sides]))
        try:
            difference = first_difference(a, b, self.resumed)
        except UsageError:  # no step that both have hashed
            difference = None
        if difference is None:
            return next((beyond for side in sides if (beyond := self._beyond(*side))), None)
        if difference.pair:
            difference.pair = replace(difference.pair, b=replace(difference.pair.b, sampled=False))
        return difference

    def _is_over(self, lines: list[tuple[Path, bytes]]) -> bool:
        steps = [added for file, line in lines if (added := self._add(file, line))]
        sides = self._sides(self.processes.values())
        recorded = {theirs.name: ours for ours, theirs in sides}
        for process, step in steps:
            codes = {code for names in process.steps[step].values() for code in names.values()}
            self.held.setdefault(process.name, deque()).append(codes)
        suspicious = len(sides) > self.compared[0] or any(
            self._is_suspicious(recorded[process.name], process, step)
            for process, step in steps
            if process.name in recorded
        )
        if suspicious:
            if sum(len(theirs.steps) for _, theirs in sides) < OFTEN * self.compared[1]:
                return False
            if self.first_difference():
                return True
        if self.keep:
            self._forget()
        return self.until is not None and self._all_at(self.until, sides)

    def _add(self, file: Path, line: bytes) -> tuple[Process, int] | None:
        """Takes a line; the process and the step that it is of."""
        process = self.processes.setdefault(file, Process(printable(file.stem)))
        taken = take(process, line)
        return (process, taken.step) if isinstance(taken, Step) else None

    def _sides(self, processes: Iterable[Process]) -> Sides:
        """Pairs the processes of the record with those of the run, once the same number of them take steps."""
        ours, theirs = self.recorded.processes, in_order(process for process in processes if process.steps)
        wanted, seen = (Counter(process.label for process in side) for side in (ours, theirs))
        both = ([one for one in side if wanted[one.label] == seen[one.label]] for side in (ours, theirs))
        return list(zip(*both, strict=True))

    def _offset(self, ours: Process, theirs: Process) -> int:
        if theirs.name not in self.offsets:
            self.offsets[theirs.name] = 0 if self.resumed is False else align(ours, theirs, bool(self.resumed)).after
        return self.offsets[theirs.name]

    def _is_suspicious(self, ours: Process, theirs: Process, step: int) -> bool:
        """True if a step may hold a difference; other batches or generators alone may have no effect."""
        if step == 0:
            return True
        at = step + self._offset(ours, theirs)
        recorded, seen = ours.steps.get(at, {}), theirs.steps[step]
        return at > ours.last or any(
            recorded[channel].get(name, code) != code
            for channel in (recorded.keys() & seen.keys()).difference(DRAWN)
            for name, code in seen[channel].items()
        )

    def _beyond(self, ours: Process, theirs: Process) -> Difference | None:
        """Says that a run goes on after the last step of the record."""
        if not theirs.last:
            return None
        offset = self._offset(ours, theirs)
        ends = ours.last, theirs.last + offset
        pair = Pair(ours, theirs, offset, CALLED[self.resumed])
        return Difference(ends[0] + 1, "weights", [], pair, ends, equal_before=ends[0]) if ends[1] > ends[0] else None

    def _all_at(self, step: int, sides: Sides) -> bool:
        return len(sides) == len(self.recorded.processes) and all(
            theirs.last and theirs.last + self._offset(ours, theirs) >= min(step, ours.last) for ours, theirs in sides
        )

    def _forget(self) -> None:
        """Removes the arrays that only steps before the last ones have."""
        for held in self.held.values():
            while len(held) > HELD:
                for code in held.popleft().difference(*held):
                    (self.folder / KEPT / code).unlink(missing_ok=True)


def begun(record: Record) -> Record:
    """The record of a run that was stopped, as it is compared with others: what it lacks is no difference."""
    return replace(record.without_files(), processes=[replace(process, sampled=True) for process in record.processes])
