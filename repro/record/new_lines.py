"""Lines that the processes of a run write down while it goes on."""

import contextlib
import math
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UNSET

from repro.files import matching
from repro.record.typed_lines import Step, read_line
from repro.structs import Flaw


@dataclass
class NewLines:
    """A reader of the lines that the processes of a run write into a folder."""

    folder: Path
    places: dict[Path, int] = field(default_factory=dict)
    """The place in each file up to which it was read."""
    step: int = 0
    first: int = 0
    """The first of them, without the one before all."""
    times: dict[Path, float] = field(default_factory=dict)
    """The time of the last step in each file, in seconds since 1970."""

    def read(self) -> list[tuple[Path, bytes]]:
        """Whole lines since the last call, with their file."""
        result = []
        for file in matching(self.folder, "*.jsonl"):
            with open(file, "rb") as lines:
                lines.seek(self.places.get(file, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self.places[file] = self.places.get(file, 0) + len(line)
                    result.append((file, line))
        return result

    def highest_step(self) -> int:
        """The highest one that any process has written down until now."""
        for file, line in self.read():
            with contextlib.suppress(Flaw):
                taken = read_line(line)
                if isinstance(taken, Step):
                    self.step = max(self.step, taken.step)
                    self.first = self.first or taken.step
                    self.times[file] = math.inf if taken.time is UNSET else taken.time
        return self.step


def new_lines(process: subprocess.Popen[bytes], folder: Path) -> Iterator[list[tuple[Path, bytes]]]:
    """Yields whole lines as its processes write them, with their file, until the command ends."""
    lines = NewLines(folder)
    while process.poll() is None:
        if added := lines.read():
            yield added
        else:
            time.sleep(0.002)
