"""Step traces: losses, fingerprints, states.

They are of every `params.trace_steps`-th step, so that two runs can be compared. `trace.jsonl` in the run's folder
holds a line per traced step: the losses since the line before as bits, and the fingerprint of each tensor. `trace/`
holds the states themselves, as checkpoints from which a run can be resumed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

from repro.errors import ReproError
from repro.files import parsed, read_lines, write_atomically
from repro.fingerprint import fingerprint
from repro.structs import Fingerprint, Struct, converted
from repro.trainers.loop import checkpoint
from repro.trainers.loop.checkpoint import Checkpoint

LINES, STATES = "trace.jsonl", "trace"


class TraceWriter:
    """Writes the trace of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.losses: list[np.float32] = []
        self.arrays: dict[str, np.ndarray] = {}

    def looked_into(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes the arrays that Trainer.inspect() returned for the next step, in the order of computation."""
        self.arrays = arrays

    def saw(self, losses: np.ndarray) -> None:
        """Takes the losses float32 [S] of the next S steps."""
        self.losses.extend(losses.astype(np.float32))

    def add(self, current: Checkpoint) -> None:
        """Writes the state after the checkpoint's step; OSError as from a full disk."""
        checkpoint.save(self.folder / STATES, current)
        tensors = {name: fingerprint({name: array}) for name, array in sorted(current.state.items())}
        line = {"step": current.record.step, "losses": [bits_of(loss) for loss in self.losses], "tensors": tensors}
        if self.arrays:
            line["operations"] = list(self.arrays)
            contiguous = {name: np.asarray(array, order="C") for name, array in self.arrays.items()}
            write_atomically(_operations(self.folder, current.record.step), to_bytes(contiguous))
        self.losses, self.arrays = [], {}
        with open(self.folder / LINES, "a") as file:
            file.write(json.dumps(line) + "\n")


def _operations(folder: Path, step: int) -> Path:
    return folder / STATES / f"operations_{step:08d}.safetensors"


def bits_of(loss: np.float32) -> str:
    """The 32 bits of a loss as 8 hex digits."""
    return f"{np.float32(loss).view(np.uint32):08x}"


def loss_of(bits: str) -> float:
    """The inverse of bits_of."""
    return float(np.uint32(int(bits, 16)).view(np.float32))


class TraceLine(Struct):
    """A line of trace.jsonl."""

    step: Annotated[int, Meta(ge=0, le=2**53)]
    losses: list[Annotated[str, Meta(pattern=r"\A[0-9a-f]{8}\Z")]]
    tensors: dict[str, Fingerprint]
    operations: list[str] | None = None


@dataclass
class Recorded:
    """A trace that was read back."""

    tensors: dict[int, dict[str, str]] = field(default_factory=dict)
    """The fingerprint of each tensor after a traced step, by step."""
    losses: dict[int, str] = field(default_factory=dict)
    """The bits of each step's loss, whether it was traced or not."""
    states: dict[int, Path] = field(default_factory=dict)
    """The checkpoint after each traced step."""
    operations: dict[int, list[str]] = field(default_factory=dict)
    """The names of a step's arrays, in order, where it was inspected; `operations()` reads the arrays."""


def read(folder: Path) -> Recorded:
    """The trace in a run's folder, empty where there is none. ReproError for a line of another form."""
    recorded = Recorded()
    path = folder / LINES
    for number, text in enumerate(_lines(path), 1):
        try:
            line = converted(parsed(text), TraceLine)
        except ValueError:
            raise ReproError(
                f"compare: {path}:{number} is no line of a trace; leave the file out, or copy it again"
            ) from None
        recorded.tensors[line.step] = line.tensors
        if line.operations is not None:
            recorded.operations[line.step] = line.operations
        recorded.losses |= dict(zip(range(line.step - len(line.losses) + 1, line.step + 1), line.losses, strict=True))
    for state in checkpoint.paths(folder / STATES):
        recorded.states[checkpoint.load(state).record.step] = state
    return recorded


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines of a file; the last one may be cut off by a kill."""
    try:
        yield from (line for line in read_lines(path) if line.endswith(b"\n"))
    except FileNotFoundError:
        return
    except OSError as error:
        raise ReproError(f"compare: {path} cannot be read ({error.strerror}); leave it out, or copy it again") from None


def operations(folder: Path, recorded: Recorded, step: int) -> dict[str, np.ndarray]:
    """The arrays of an inspected step: the results of its operations, in their order."""
    with safe_open(str(_operations(folder, step)), framework="numpy") as file:
        return {name: file.get_tensor(name) for name in recorded.operations[step]}
