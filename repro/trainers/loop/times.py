"""times.json: moments of a run, seconds of each call."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.files import write_json

NAME = "times.json"


@dataclass
class ProcessTimes:
    """A process' own times. Moments are seconds since it was started."""

    moments: dict[str, float] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)

    def reached(self, moment: str) -> None:
        """Sets a moment to now; the first time counts."""
        self.moments.setdefault(moment, age())

    def called(self, steps: int, images: int, seconds: float) -> None:
        """Adds a call of the trainer that has just ended, with its data made ready."""
        self.calls.append({"steps": steps, "images": images, "seconds": seconds, "end": age()})

    def evaluated(self, epoch: int, accuracy: float) -> None:
        """Adds an epoch's test accuracy, 0 to 1, as known from now on."""
        self.epochs.append({"epoch": epoch, "test_accuracy": accuracy, "end": age()})

    def write(self, folder: Path) -> None:
        """Writes FOLDER/times.json, whole or not at all."""
        write_json(folder / NAME, vars(self) | {"peak_memory": peak_memory()}, indent=1)


def steady(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls for which nothing was compiled: those of a number of steps and images that came before."""
    seen: set[tuple[int, int]] = set()
    steady = []
    for call in calls:
        shape = (call["steps"], call["images"])
        if shape in seen:
            steady.append(call)
        seen.add(shape)
    return steady


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
