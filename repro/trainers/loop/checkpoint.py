"""Checkpoints: arrays and their record in one file.

The file is safetensors, without pickle, and is written atomically. The record is JSON under one metadata key of it, so
that both stay together; the `.json` beside it is a copy for people and tools, and is not read.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from repro.errors import ReproError, UsageError
from repro.files import BESIDE, check_regular, matching, parsed, write_atomically, write_json
from repro.fingerprint import fingerprint
from repro.structs import check_depth, converted, shortened
from repro.trainers.loop.config import PORTABLE

KEY = "repro"
FORMAT = 1
LARGEST = 16 << 30  # bytes of a file that is read
LOSSES = "epoch.losses"
REMEDY = "choose another checkpoint with params.resume=PATH, or start anew with params.resume=never"


@dataclass
class CheckpointRecord:
    """The run of a checkpoint, and its step."""

    task: str
    run: str
    """The name of the run's folder; names sort by time, so the newest run is the largest."""
    step: Annotated[int, Meta(ge=0, le=2**53)]
    """The number of updates since the run's start."""
    steps_per_epoch: Annotated[int, Meta(ge=1, le=2**53)]
    deciding: dict[str, object]
    """The configuration's keys that decide the bits, and `device`: a run that resumes must have the same."""
    metrics: list[dict] = field(default_factory=list)
    """The lines of metrics.jsonl so far."""
    seconds: float = 0.0
    """The training time of the unfinished epoch."""
    fingerprint: str = ""
    """The fingerprint of all arrays in the file and of the rest of this record, set by save()."""
    format: int = FORMAT


@dataclass
class Checkpoint:
    """A trainer's state, the losses of the unfinished epoch (float32 [steps]), and the record."""

    state: dict[str, np.ndarray]
    losses: np.ndarray
    record: CheckpointRecord


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint under the name that belongs to its step; OSError if the disk is full or read-only."""
    arrays = checkpoint.state | {LOSSES: checkpoint.losses}
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # safetensors ignores strides
    checkpoint.record.fingerprint = _fingerprint(arrays, checkpoint.record)
    path = folder / f"{_name(checkpoint.record)}.safetensors"
    record = json.dumps(asdict(checkpoint.record))
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, to_bytes(arrays, metadata={KEY: record}))
    write_json(path.with_suffix(".json"), asdict(checkpoint.record))
    return path


def _fingerprint(arrays: dict[str, np.ndarray], record: CheckpointRecord) -> str:
    text = json.dumps(asdict(record) | {"fingerprint": ""}, sort_keys=True)
    return fingerprint(arrays | {KEY: np.frombuffer(text.encode(), np.uint8)})


def _name(record: CheckpointRecord) -> str:
    epoch, rest = divmod(record.step, record.steps_per_epoch)
    return f"epoch_{epoch + 1:04d}_step_{rest:06d}" if rest else f"epoch_{epoch:04d}"


def load(path: Path) -> Checkpoint:
    """Reads and checks a checkpoint. ReproError if it is missing, truncated, tampered with or not one of ours."""
    try:
        check_regular(path, LARGEST)
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            if KEY not in metadata:
                raise ReproError(f"checkpoint: {path} was not written by this project (no record in it); {REMEDY}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError:
        raise ReproError(f"checkpoint: {path} does not exist; {REMEDY}") from None
    except (OSError, SafetensorError) as error:
        raise ReproError(
            f"checkpoint: {path} cannot be read ({getattr(error, 'strerror', None) or error}); {REMEDY}"
        ) from None
    try:
        fields = parsed(metadata[KEY].encode())
        if fields["format"] != FORMAT:
            shown = shortened(fields["format"])
            raise ReproError(f"checkpoint: {path} has format {shown}, this version reads {FORMAT}; {REMEDY}")
        check_depth(fields)
        record = CheckpointRecord(**fields)
        if _fingerprint(arrays, record) != record.fingerprint:
            raise ReproError(f"checkpoint: {path} is damaged: its content no longer matches its fingerprint; {REMEDY}")
        converted(asdict(record), CheckpointRecord)
        losses = arrays.pop(LOSSES)
    except (ValueError, TypeError, KeyError) as error:
        raise ReproError(f"checkpoint: {path} holds a record that cannot be read ({error}); {REMEDY}") from None
    return Checkpoint(arrays, losses, record)


def paths(folder: Path) -> list[Path]:
    """The checkpoints in a folder, by step."""
    return matching(folder, "epoch_*.safetensors")


def newest(folder: Path) -> Checkpoint | None:
    """The last checkpoint of the newest run in a folder, or None. ReproError if one there cannot be read."""
    checkpoints = map(load, paths(folder))
    return max(checkpoints, key=lambda checkpoint: (checkpoint.record.run, checkpoint.record.step), default=None)


def remove_superseded(folder: Path, newest: Path, record: CheckpointRecord) -> None:
    """Removes the checkpoints that a new one replaces: those of earlier runs, and those within an epoch.

    Only called when `newest` is safely on disk, by the process that has the folder for itself. Files that are no checkpoints of
    ours stay; what a killed process was writing goes.
    """
    for path in matching(folder, f".epoch_*{BESIDE}"):
        path.unlink()
    for path in paths(folder):
        if path == newest:
            continue
        try:
            other = load(path).record
        except ReproError:
            continue
        if other.run != record.run or other.step % other.steps_per_epoch:
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink()


def check_same(source: str, record: CheckpointRecord, deciding: dict[str, object]) -> None:
    """Raises UsageError that names a key in which the resuming configuration would change the bits.

    One that both have, if there is any: which others decide follows from it, as momentum does from the optimizer.
    """
    both = record.deciding.keys() & deciding.keys()
    for key in sorted(record.deciding.keys() | deciding.keys(), key=lambda key: (key not in both, key)):
        was, now = record.deciding.get(key), deciding.get(key)
        if was != now:
            remedy = f"set {key}={was}" if key in record.deciding else f"leave {key} out"
            remedy = "" if key == PORTABLE else f"{remedy}, or "
            raise UsageError(
                f"params.resume: {source} was made with {key}={was}, this run has {key}={now}, which would change the "
                f"bits; {remedy}start anew with params.resume=never"
            )
