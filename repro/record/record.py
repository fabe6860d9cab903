"""The record of a command.

It is a folder that `repro record` leaves: record.json, and steps/ with a file for each process. It may come from anybody: nothing in it is run, no path in it is followed, and what is shown of it is made printable.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from repro.errors import ReproError, UsageError
from repro.files import matching, parsed, read_json, read_lines
from repro.record import arrays
from repro.record.seal import Chain
from repro.structs import Fingerprint, Flaw, Hash, Number, Struct, Time, converted
from repro.text import printable

SCHEMA = 1
FILE, STEPS, KEPT = "record.json", "steps", "kept"
CHANNELS = ("batch", "generator", "initial weights", "gradients", "optimizer", "weights", "buffers")
"""What is hashed of a step, in the order of cause."""
STARTS, OUTPUTS = "initial weights", "outputs"

LOADED, BROKEN = "loaded", ".broken"
"""Empty files of the observer: a Python process loaded it; lines of a process are missing, as they could not be written."""
LAST = 2**53  # the highest number of a step
FAILED = re.compile(r"[a-z]+\._?[a-z_]+ failed: ")  # a note of an older version, of a step that was not seen whole

AGAIN = "copy it anew from where it was made, or record the command again"

Hashes = dict[str, dict[str, str]]
"""By channel, then by name: a SHA-256."""


class TrainedProcess(Struct):
    """A process that took steps, in record.json."""

    name: str
    rank: int | None
    steps: int
    frameworks: dict[str, str]
    seal: Hash | UnsetType = UNSET
    """Of its lines, but for the last one, of the kind `end`: it may come late. Older versions wrote none."""


class Content(Struct):
    """record.json."""

    schema: int
    command: list[str]
    folder: str
    """The one that the command was started in."""
    started: Time
    seconds: Number
    exit_code: int
    every: int
    """Every how many steps the weights were hashed."""
    facts: dict[str, Any]
    """Facts that can decide the bits, see provenance.py."""
    processes: list[TrainedProcess]
    outputs: dict[str, Hash]
    """SHA-256 of each output file."""
    notes: list[str]
    fingerprint: Fingerprint | None
    loaded: bool | UnsetType = UNSET
    """Whether a Python process of the command loaded the observer."""
    unseen: list[str] | UnsetType = UNSET
    """Steps that were not seen whole, and why."""


class Step(Struct):
    """A line of the kind `step`."""

    step: Annotated[int, Meta(ge=0, le=LAST)]
    hashes: dict[str, dict[str, Hash]]


class Note(Struct):
    """A line of the kind `note`."""

    text: str
    unseen: Annotated[int, Meta(ge=0, le=LAST)] | UnsetType = UNSET
    """The first step that was not seen whole."""


class About(Struct):
    """A line of the kind `process`: the process in its own words, as far as it says anything."""

    pid: int | None = None
    parent: int | None = None
    argv: list[str] | None = None
    python: str | None = None
    frameworks: dict[str, str] = msgspec.field(default_factory=dict)
    threads: int | None = None


class End(Struct):
    """A line of the kind `end`."""

    seconds: Number
    """Time that the observer took."""


@dataclass
class Process:
    """What one process that trained, or could have, wrote down of its steps."""

    name: str
    """As its file is called: `12`, or `rank-0.12`."""
    about: About = field(default_factory=About)
    steps: dict[int, Hashes] = field(default_factory=dict)
    """By step, those that were hashed; 0 is before the first one."""
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Steps that were not seen whole, and why."""
    seal: str = ""
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
    content: Content
    processes: list[Process]
    """Those that took steps, in an order that is the same in each run."""

    @property
    def steps(self) -> int:
        return max((process.last for process in self.processes), default=0)

    @property
    def outputs(self) -> dict[str, str]:
        return self.content.outputs

    @property
    def unseen(self) -> list[str]:
        """Steps that were not seen whole, and why; of an older version's record the notes that say so."""
        if self.content.unseen is UNSET:
            return [note for note in self.content.notes if FAILED.match(note)]
        return self.content.unseen

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of where it was made, and with what."""
        return self.content.facts

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
        content = read_json(path / FILE)
    except FileNotFoundError:
        if is_one(path):
            raise ReproError(f"record: {path} was cut off before its end: no {FILE} in it; {AGAIN}") from None
        raise UsageError(f"record: {path} holds no record: no {FILE} in it; name what `repro record` made") from None
    except OSError as error:
        raise ReproError(f"record: {path / FILE} cannot be read ({error.strerror}); {AGAIN}") from None
    except ValueError:
        raise ReproError(f"record: {path / FILE} is not JSON, or was cut off; {AGAIN}") from None
    if not isinstance(content, dict) or "schema" not in content:
        raise ReproError(f"record: {path / FILE} is no record of a command; name what `repro record` made")
    if content["schema"] != SCHEMA:
        schema = printable(repr(content["schema"])[:20])
        raise ReproError(
            f"record: {path} has schema {schema}, this version reads {SCHEMA}; record the command again, or read it "
            "with the version that wrote it"
        )
    try:
        checked = converted(content, Content)
    except Flaw as flaw:
        raise ReproError(f"record: {path / FILE}: {flaw}; {AGAIN}") from None
    found = Record(path, checked, [process for process in processes(path) if process.steps])
    _check_whole(found, content["outputs"])
    return found


def _check_whole(record: Record, outputs: dict[str, str]) -> None:
    """`outputs` as their names stand in the file, which need not be printable. ReproError where record.json and the steps beside it do not belong together."""
    there = {process.name: process.last for process in record.processes}
    seals = {process.name: process.seal for process in record.processes}
    for trained in record.content.processes:
        found = there.get(trained.name, 0)
        if found != trained.steps:
            raise ReproError(
                f"record: {record.path / STEPS} was cut off: {found} of {trained.steps} steps of process {trained.name} are there; {AGAIN}"
            )
        if trained.seal not in (UNSET, seals[trained.name]):
            raise ReproError(
                f"record: {record.path / STEPS} was changed: the last line of process {trained.name} is not the one that {FILE} holds the seal of; {AGAIN}"
            )
    if record.content.fingerprint != fingerprint(record.processes, outputs):
        raise ReproError(f"record: {record.path} was changed: its fingerprint is not that of what it holds; {AGAIN}")


def processes(path: Path) -> list[Process]:
    """All that the observer left in a record's folder, whether it is finished or not."""
    try:
        found = [_process(file) for file in matching(path / STEPS, "*.jsonl") if file.is_file()]
    except OSError as error:
        raise ReproError(f"record: {error.filename} cannot be read ({error.strerror}); {AGAIN}") from None
    return sorted(found, key=lambda one: (one.label, json.dumps(one.about.argv), len(one.name), one.name))


def _process(file: Path) -> Process:
    found, chain = Process(printable(file.stem)), Chain()
    for number, line in enumerate(_lines(file), 1):
        try:
            chain.add(line)
            kind = _take(found, _parsed(line))
        except Flaw as flaw:
            raise ReproError(f"record: {file}, line {number}: {flaw}; {AGAIN}") from None
        if kind != "end":
            found.seal = chain.seal
    if file.with_name(file.name + BROKEN).exists():
        found.unseen.append(f"step {found.last + 1}: it could not be written down, nor could any after it")
    return found


def _take(process: Process, line: Any) -> Any:
    """Adds a line of a process' file; its kind. Flaw where it cannot be believed."""
    if not isinstance(line, dict):
        raise Flaw("it is no JSON object")
    kind = line.get("kind")
    if kind == "step":
        step = converted(line, Step)
        _add(process.steps.setdefault(step.step, {}), step.hashes)
    elif kind == "process":
        with contextlib.suppress(Flaw):
            process.about = converted(line, About)
    elif kind == "end":
        with contextlib.suppress(Flaw):
            process.observing = converted(line, End).seconds
    elif kind == "note":
        note = converted(line, Note)
        process.notes.append(note.text)
        if note.unseen is not UNSET:
            process.unseen.append(f"step {note.unseen}: {note.text}")
    return kind


def _add(hashes: Hashes, more: Hashes) -> None:
    """Adds a line of a step to the others of its number, as repro.watch may write: none of them is lost."""
    for channel in CHANNELS:
        for name, code in more.get(channel, {}).items():
            names = hashes.setdefault(channel, {})
            while names.get(name, code) != code:
                name += "'"
            names[name] = code


def _lines(file: Path) -> Iterator[bytes]:
    """Each line of a file; a last one without an end was being written when its process was killed."""
    for line in read_lines(file):
        if not line.endswith(b"\n"):
            return
        yield line


def _parsed(line: bytes) -> Any:
    try:
        return parsed(line)
    except ValueError:
        return None


def fingerprint(found: list[Process], outputs: Mapping[str, str]) -> str | None:
    """One SHA-256 of the last hashed weights of every process that trained, and of the outputs; None without any.

    Of JSON with sorted keys and no spaces: [[[label of the process, {name: hash}], ...], {output: hash}].
    """
    trained = [[process.label, process.weights] for process in found if process.weights]
    if not trained and not outputs:
        return None
    text = json.dumps([trained, dict(outputs)], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
