"""times.json: when the parts of a run were done, and how long each call of the trainer took."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.files import write_atomically

NAME = "times.json"


@dataclass
class Times:
    """What one process measures of itself. Moments are seconds since the process was started, by run.sh or whatever."""

    moments: dict[str, float] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)

    def reached(self, moment: str) -> None:
        """Now is this moment; the first time counts."""
        self.moments.setdefault(moment, age())

    def called(self, steps: int, images: int, seconds: float) -> None:
        """A call of the trainer for so many steps has ended, and took so long with all that it was given."""
        self.calls.append({"steps": steps, "images": images, "seconds": seconds, "end": age()})

    def evaluated(self, epoch: int, accuracy: float) -> None:
        """The epoch's test accuracy, 0 to 1, has become known."""
        self.epochs.append({"epoch": epoch, "test_accuracy": accuracy, "end": age()})

    def write(self, folder: Path) -> None:
        """Writes FOLDER/times.json, whole or not at all."""
        content = vars(self) | {"peak_memory": peak_memory()}
        write_atomically(folder / NAME, json.dumps(content, indent=1).encode() + b"\n")


def steady(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls for which nothing was compiled: those of a number of steps and images that came before."""
    seen: set[tuple[int, int]] = set()
    found = []
    for call in calls:
        shape = (call["steps"], call["images"])
        if shape in seen:
            found.append(call)
        seen.add(shape)
    return found


def age() -> float:
    """Seconds since this process was started, to a hundredth; `exec`, as in run.sh, does not start one anew."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])  # proc(5), field 22
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def peak_memory() -> int | None:
    """The most memory that this process has had resident, in bytes; None where the kernel does not tell."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
