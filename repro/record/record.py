"""The record of a command: the folder that `repro record` leaves, read and checked.

It may come from anybody: nothing in it is run, no path in it is followed, and what is shown of it is made printable.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from repro import sealed
from repro.errors import ReproError, UsageError
from repro.record import arrays
from repro.sealed import INTEGER, NONE, NUMBER, SHA256, UTC
from repro.text import printable

SCHEMA = 1
FILE, STEPS, KEPT = "record.json", "steps", "kept"
CHANNELS = ("batch", "generator", "initial weights", "gradients", "optimizer", "weights", "buffers")
"""What is hashed of a step, in the order of cause."""
STARTS, OUTPUTS = "initial weights", "outputs"

HEX = re.compile("[0-9a-f]{64}")
RECORD = {
    "command": [str], "folder": str, "started": UTC, "seconds": (int, float), "exit_code": int, "every": int,
    "facts": dict, "processes": [{"name": str, "rank": INTEGER, "steps": int, "frameworks": {...: str}}],
    "outputs": {...: HEX}, "notes": [str], "fingerprint": (NONE, SHA256),
}  # fmt: skip
STEP = {"step": int, "hashes": {...: {...: HEX}}}
AGAIN = "copy it anew from where it was made, or record the command again"

Hashes = dict[str, dict[str, str]]
"""By channel, then by name: a SHA-256."""


@dataclass
class Process:
    """What one process that trained, or could have, wrote down of its steps."""

    name: str
    """As its file is called: `12`, or `rank-0.12`."""
    about: dict[str, Any] = field(default_factory=dict)
    """Its line of the kind `process`."""
    steps: dict[int, Hashes] = field(default_factory=dict)
    """By step, those that were hashed; 0 is before the first one."""
    notes: list[str] = field(default_factory=list)
    observing: float | None = None
    """Seconds that the observer took, where it says so."""
    sampled: bool = False
    """What was written down is a choice, and another run's may be another: only what both hold is compared."""

    @property
    def label(self) -> str:
        """The name without the number of the process, which is another one in each run."""
        return self.name.rpartition(".")[0]

    @property
    def rank(self) -> int | None:
        rank = self.label.removeprefix("rank-")
        return int(rank) if rank.isdecimal() else None

    @property
    def last(self) -> int:
        """How many steps were seen."""
        return max(self.steps, default=0)

    @property
    def begun(self) -> int:
        """The step before the first: more than 0 where a script that calls repro.watch counts on, once resumed."""
        return max(min(self.steps, default=0) - 1, 0)

    @property
    def weights(self) -> dict[str, str]:
        """The last that were hashed."""
        hashed = [step for step, hashes in self.steps.items() if "weights" in hashes]
        return self.steps[max(hashed)]["weights"] if hashed else {}

    def of(self, channel: str) -> dict[int, dict[str, str]]:
        """By step, the hashes of one channel, where it was seen."""
        return {step: hashes[channel] for step, hashes in self.steps.items() if channel in hashes}

    def moving(self) -> set[str]:
        """The generators that drew something between two of the steps that were hashed."""
        states = [state for _, state in sorted(self.of("generator").items())]
        return {name for a, b in pairwise(states) for name in a.keys() & b.keys() if a[name] != b[name]}


@dataclass
class Record:
    """A command that was run once, and what was seen of it."""

    path: Path
    content: dict[str, Any]
    """As in record.json."""
    processes: list[Process]
    """Those that took steps, in an order that is the same in each run."""

    @property
    def steps(self) -> int:
        return max((process.last for process in self.processes), default=0)

    @property
    def outputs(self) -> dict[str, str]:
        return self.content["outputs"]

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of where it was made, and with what."""
        return self.content["facts"]

    def arrays(self, of: Process, step: int, channel: str) -> dict[str, np.ndarray]:
        """The arrays of a channel at a step of a process, as far as they were kept."""
        hashes = of.steps.get(step, {}).get(channel, {})
        found = ((name, arrays.array(self.path / KEPT, digest)) for name, digest in hashes.items())
        return {name: array for name, array in found if array is not None}


def is_one(path: Path) -> bool:
    """Whether a folder holds the record of a command, or the beginning of one."""
    return (path / FILE).exists() or (path / STEPS).is_dir()


def read(path: Path) -> Record:
    """The record in a folder. UsageError if there is none, ReproError if it cannot be believed."""
    try:
        content = json.loads((path / FILE).read_bytes())
    except FileNotFoundError:
        if is_one(path):
            raise ReproError(f"record: {path} was cut off before its end: no {FILE} in it; {AGAIN}") from None
        raise UsageError(f"record: {path} holds no record: no {FILE} in it; name what `repro record` made") from None
    except OSError as error:
        raise ReproError(f"record: {path / FILE} cannot be read ({error.strerror}); make it readable") from None
    except (ValueError, RecursionError):
        raise ReproError(f"record: {path / FILE} is not JSON, or was cut off; {AGAIN}") from None
    if not isinstance(content, dict) or "schema" not in content:
        raise ReproError(f"record: {path / FILE} is no record of a command; name what `repro record` made")
    if content["schema"] != SCHEMA:
        schema = printable(repr(content["schema"])[:20])
        raise ReproError(
            f"record: {path} has schema {schema}, this version reads {SCHEMA}; record the command again, or read it "
            "with the version that wrote it"
        )
    flaw = sealed.flaw(content, RECORD)
    if flaw:
        raise ReproError(f"record: {path / FILE}: {printable(flaw)}; {AGAIN}")
    found = Record(path, printable(content), [process for process in processes(path) if process.steps])
    _check_whole(found)
    return found


def _check_whole(record: Record) -> None:
    """ReproError where record.json and the steps beside it do not belong together."""
    there = {process.name: process.last for process in record.processes}
    for told in record.content["processes"]:
        if there.get(told["name"], 0) != told["steps"]:
            raise ReproError(
                f"record: {record.path / STEPS} was cut off: {there.get(told['name'], 0)} of {told['steps']} steps of "
                f"process {told['name']} are there; {AGAIN}"
            )
    if record.content["fingerprint"] != fingerprint(record.processes, record.outputs):
        raise ReproError(f"record: {record.path} was changed: its fingerprint is not that of what it holds; {AGAIN}")


def processes(path: Path) -> list[Process]:
    """All that the observer left in a record's folder, whether it is finished or not."""
    files = sorted(file for file in (path / STEPS).glob("*.jsonl") if file.is_file())
    found = [_process(file) for file in files]
    return sorted(found, key=lambda one: (one.label, json.dumps(one.about.get("argv")), len(one.name), one.name))


def _process(file: Path) -> Process:
    found = Process(printable(file.stem))
    for number, line in enumerate(_lines(file), 1):
        flaw = None if isinstance(line, dict) else "it is no JSON object"
        kind = line.get("kind") if isinstance(line, dict) else None
        if kind == "step":
            flaw = sealed.flaw(line, STEP)
            if not flaw:
                hashes = {channel: line["hashes"][channel] for channel in CHANNELS if channel in line["hashes"]}
                found.steps[line["step"]] = {name: printable(value) for name, value in hashes.items()}
        elif kind == "process":
            found.about = _about(line)
        elif kind == "end" and sealed.flaw(line, {"seconds": NUMBER}) is None:
            found.observing = line["seconds"]
        elif kind == "note":
            found.notes.append(printable(str(line.get("text"))))
        if flaw:
            raise ReproError(f"record: {file}, line {number}: {printable(flaw)}; {AGAIN}")
    return found


def _about(line: dict[str, Any]) -> dict[str, Any]:
    """What a process says of itself, as far as it is of the shape that the observer writes."""
    said = printable(line) if sealed.flaw(line, {}) is None else {}
    versions = said.get("frameworks")
    said["frameworks"] = {k: str(v) for k, v in versions.items()} if isinstance(versions, dict) else {}
    return said


def _lines(file: Path) -> Iterator[Any]:
    """Each line of a file as JSON; a last one without an end was being written when its process was killed."""
    with open(file, "rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield None


def fingerprint(found: list[Process], outputs: Mapping[str, str]) -> str | None:
    """One SHA-256 of the last hashed weights of every process that trained, and of the outputs; None without any.

    Of JSON with sorted keys and no spaces: [[[label of the process, {name: hash}], ...], {output: hash}].
    """
    trained = [[process.label, process.weights] for process in found if process.weights]
    if not trained and not outputs:
        return None
    text = json.dumps([trained, dict(outputs)], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
