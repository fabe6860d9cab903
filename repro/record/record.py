"""The record of a command.

It is a folder that `repro record` leaves: record.json, and steps/ with a file for each process. It may come from anybody: nothing in it is run, no path in it is followed, and what is shown of it is made printable.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType, structs

from repro.errors import ReproError, UsageError
from repro.files import read_json
from repro.record import arrays, metrics
from repro.record.checkpoints import CheckpointChange
from repro.record.lines import AGAIN, STEPS, Process, processes
from repro.record.metric_values import Metric
from repro.record.written import FileContents, WrittenFile, read_contents
from repro.structs import Fingerprint, Flaw, Hash, Number, Struct, Time, converted
from repro.text import printable

SCHEMA = 1
FILE, KEPT = "record.json", "kept"
OUTPUTS = "outputs"
FAILED = re.compile(r"[a-z]+\._?[a-z_]+ failed: ")  # a note of an older version, of a step that was not fully observed


class TrainedProcess(Struct):
    """A process that took steps, in record.json."""

    name: str
    rank: int | None
    steps: int
    frameworks: dict[str, str]
    seal: Hash | UnsetType = UNSET
    """The seal of its lines, but for the last one, of kind `end`, which may come late. Older versions wrote none."""


class Content(Struct):
    """The content of record.json."""

    schema: int
    command: list[str]
    folder: str
    """The one that the command was started in."""
    started: Time
    seconds: Number
    exit_code: int
    every: int
    """The number of steps from one hash of the weights to the next."""
    facts: dict[str, Any]
    """Facts that can decide the bits, see provenance.py."""
    processes: list[TrainedProcess]
    outputs: dict[str, Hash]
    """The SHA-256 of each output file."""
    notes: list[str]
    fingerprint: Fingerprint | None
    loaded: bool | UnsetType = UNSET
    """True if a Python process of the command loaded the observer."""
    unseen: list[str] | UnsetType = UNSET
    """Steps that were not fully observed, and why."""
    metrics: Hash | UnsetType = UNSET
    """The SHA-256 of metrics.jsonl; missing if there are no metrics."""
    written: dict[str, WrittenFile] | UnsetType = UNSET
    """All files in the run's own folder, where no output was named."""
    run: str | UnsetType = UNSET
    """The folder that `{run}` stood for."""
    checkpoints: list[CheckpointChange] | UnsetType = UNSET
    """The files that --checkpoints names, as they changed; their copies are in checkpoints/."""
    contents: Hash | UnsetType = UNSET
    """The SHA-256 of contents.json, which holds values of files by their keys."""


@dataclass
class Record:
    """A command that was run once, and what was seen of it."""

    path: Path
    content: Content
    processes: list[Process]
    """The processes that took steps, in an order that is the same in each run."""
    metrics: list[Metric] = field(default_factory=list, kw_only=True)
    """What the program logged, printed or wrote as its scores."""

    @property
    def steps(self) -> int:
        return max((process.last for process in self.processes), default=0)

    @property
    def outputs(self) -> dict[str, str]:
        return self.content.outputs

    @property
    def written(self) -> dict[str, WrittenFile]:
        """The files in the run's own folder, where no output was named."""
        return {} if self.content.written is UNSET else self.content.written

    def without_files(self) -> "Record":
        """The record of the steps alone."""
        return replace(self, content=structs.replace(self.content, outputs={}, written=UNSET))

    @property
    def files(self) -> set[str]:
        """The names of all files that were hashed."""
        return {*self.outputs, *self.written}

    def keys_of(self, file: str) -> dict[str, str] | None:
        """The values of a file by their keys; None where they are not known."""
        known: dict[str, FileContents] = {}
        if self.content.contents is not UNSET:
            known = read_contents(self.path, self.content.contents)
        digest = self.outputs.get(file) or (self.written[file].sha256 if file in self.written else None)
        return known[file].keys if file in known and known[file].sha256 == digest else None

    @property
    def unseen(self) -> list[str]:
        """Steps that were not fully observed, and why; of an older version's record the notes that say so."""
        if self.content.unseen is UNSET:
            return [note for note in self.content.notes if FAILED.match(note)]
        return self.content.unseen

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the machine and the software that made it."""
        return self.content.facts

    def arrays(self, of: Process, step: int, channel: str, *others: "Record") -> dict[str, np.ndarray]:
        """The arrays of a channel at a step of a process, as far as they were kept, here or in other records."""
        result = {}
        for name, digest in of.steps.get(step, {}).get(channel, {}).items():
            kept = (arrays.array(record.path / KEPT, digest) for record in (self, *others))
            result[name] = next((array for array in kept if array is not None), None)
        return {name: array for name, array in result.items() if array is not None}


def is_one(path: Path) -> bool:
    """True if a folder holds the record of a command, or the beginning of one."""
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
        raise ReproError(f"record: {path / FILE} is not a record of a command; name what `repro record` made")
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
    trained = [process for process in processes(path) if process.steps]
    measured = [] if checked.metrics is UNSET else metrics.read(path, checked.metrics)
    record = Record(path, checked, trained, metrics=measured)
    _check_whole(record, content["outputs"])
    return record


def _check_whole(record: Record, outputs: dict[str, str]) -> None:
    """Raises ReproError if record.json and its steps do not belong together. `outputs` has the names as in the file."""
    there = {process.name: process.last for process in record.processes}
    seals = {process.name: process.seal for process in record.processes}
    for trained in record.content.processes:
        count = there.get(trained.name, 0)
        if count != trained.steps:
            raise ReproError(
                f"record: {record.path / STEPS} was cut off: {count} of {trained.steps} steps of process {trained.name} are there; {AGAIN}"
            )
        if trained.seal not in (UNSET, seals[trained.name]):
            raise ReproError(
                f"record: {record.path / STEPS} was changed: the last line of process {trained.name} is not the one that {FILE} holds the seal of; {AGAIN}"
            )
    known = [made(record.processes, outputs) for made in (fingerprint, _of_processes)]
    if record.content.fingerprint not in known:
        raise ReproError(f"record: {record.path} was changed: its fingerprint is not that of what it holds; {AGAIN}")


def fingerprint(processes: list[Process], outputs: Mapping[str, str]) -> str | None:
    """The SHA-256 of the last hashed weights of every process that trained, and of the outputs; None without any.

    Ranks that agree on every weight which several of them hold count as one process, so that their number decides nothing.

    Hashed is JSON with sorted keys and no spaces: [[[label of the process, {name: hash}], ...], {output: hash}].
    """
    trained = [process for process in processes if process.weights]
    together: dict[str, str] = {}
    agree = all(together.setdefault(name, code) == code for one in trained for name, code in one.weights.items())
    if trained and agree and all(process.rank is not None for process in trained):
        return _digest([("", together)], outputs)
    return _of_processes(processes, outputs)


def _of_processes(processes: list[Process], outputs: Mapping[str, str]) -> str | None:
    """The fingerprint of processes that are no ranks; older versions computed that of ranks so, too."""
    trained = [(process.label, process.weights) for process in processes if process.weights]
    return _digest(trained, outputs) if trained or outputs else None


def _digest(trained: list[tuple[str, dict[str, str]]], outputs: Mapping[str, str]) -> str:
    text = json.dumps([trained, dict(outputs)], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
