"""Lines of the processes of a command.

The observer wrote them, into steps/: a file for each process, a line for each step.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from repro.errors import ReproError
from repro.files import matching, parsed, read_lines
from repro.record.seal import Chain
from repro.structs import Flaw, Hash, Integer, Number, Struct, converted
from repro.text import printable

STEPS = "steps"
CHANNELS = (
    "batch",
    "generator",
    "initial weights",
    "changed weights",
    "scalars",
    "copies",
    "gradients",
    "optimizer",
    "weights",
    "buffers",
)
"""What is known of a step, in the order of cause."""
STARTS, SCALARS, COPIES = "initial weights", "scalars", "copies"
CHANGED = "changed weights"
"""Weights before a step that are not as they were after the step before: something else than an optimizer changed them."""
PASSES, CLOSURE, SCALE = "backward passes", "backward passes of the closure", "scaler.scale"
"""Three of the scalars. Others are options of a group, `0.group 0.lr`, and counters of schedules, `StepLR.last_epoch`."""
LOADED, BROKEN = "loaded", ".broken"
"""Empty files of the observer: a Python process loaded it; lines of a process are missing, as they could not be written."""
UNWRITTEN = "step {step}: it could not be written down, nor could any after it"
LAST = 2**53  # the highest number of a step

AGAIN = "copy it anew from where it was made, or record the command again"

Hashes = dict[str, dict[str, str]]
"""By channel, then by name: a SHA-256."""


class Samples(Struct):
    """A batch that a loader of PyTorch handed out."""

    epoch: Integer
    """The number of the pass through any loader's data, in the order in which they began."""
    data: Integer
    """The number of the data set."""
    sampler: str
    replacement: bool
    """Whether the sampler draws with replacement."""
    stream: bool
    """Whether the data set is iterable, and has no indices."""
    workers: Integer
    size: Integer | None
    """The length of the data set."""
    indices: list[Integer] | None
    rows: list[str] | None
    """A hash of each sample."""
    drew: list[str]
    """The generators whose state changed while it was fetched."""


class Step(Struct):
    """A line of the kind `step`."""

    step: Annotated[int, Meta(ge=0, le=LAST)]
    hashes: dict[str, dict[str, Hash]]
    scalars: dict[str, Annotated[str, Meta(max_length=40)]] = msgspec.field(default_factory=dict)
    """Numbers that the step depends on, as text. Older versions wrote none."""
    samples: dict[str, Samples] = msgspec.field(default_factory=dict)
    """By the number of the batch."""
    zero: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """By channel the names of arrays of zeros."""
    nan: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """By channel the names of arrays that hold a NaN."""
    time: Number | UnsetType = UNSET
    """Seconds since 1970."""


class Note(Struct):
    """A line of the kind `note`."""

    text: str
    unseen: Annotated[int, Meta(ge=0, le=LAST)] | UnsetType = UNSET
    """The first step that was not seen whole."""


class About(Struct):
    """A line of the kind `process`: the process in its own words, as far as it says anything."""

    pid: int | None = None
    parent: int | None = None
    forked: bool = False
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
    texts: dict[str, str] = field(default_factory=dict)
    """The number that each hash of the channel `scalars` is of."""
    lines: dict[int, Step] = field(default_factory=dict)
    """By step, what its last line says besides the hashes."""
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


def processes(path: Path) -> list[Process]:
    """All that the observer left in a record's folder, whether it is finished or not."""
    try:
        found = [_process(file) for file in matching(path / STEPS, "*.jsonl") if file.is_file()]
        broken = [file.name.removesuffix(f".jsonl{BROKEN}") for file in matching(path / STEPS, f"*.jsonl{BROKEN}")]
    except OSError as error:
        raise ReproError(f"record: {error.filename} cannot be read ({error.strerror}); {AGAIN}") from None
    silent = {*map(printable, broken)} - {one.name for one in found}
    found += [Process(name, unseen=[UNWRITTEN.format(step=1)]) for name in silent]
    return in_order(found)


def in_order(found: Iterable[Process]) -> list[Process]:
    """Processes in an order that is the same in each run."""
    return sorted(found, key=lambda one: (one.label, json.dumps(one.about.argv), len(one.name), one.name))


def _process(file: Path) -> Process:
    found, chain = Process(printable(file.stem)), Chain()
    for number, line in enumerate(_lines(file), 1):
        try:
            chain.add(line)
            kind = take(found, line).get("kind")
        except Flaw as flaw:
            raise ReproError(f"record: {file}, line {number}: {flaw}; {AGAIN}") from None
        if kind != "end":
            found.seal = chain.seal
    if file.with_name(file.name + BROKEN).exists():
        found.unseen.append(UNWRITTEN.format(step=found.last + 1))
    return found


def take(process: Process, text: bytes) -> dict[str, Any]:
    """Adds a line of a process' file; what it holds. Flaw where it cannot be believed."""
    line = _parsed(text)
    if not isinstance(line, dict):
        raise Flaw("it is no JSON object")
    kind = line.get("kind")
    if kind == "step":
        step = converted(line, Step)
        hashes = process.steps.setdefault(step.step, {})
        if step.step == 0 and "optimizer" in step.hashes:
            hashes.setdefault("optimizer", {})  # it may hold nothing yet, which is seen, too
        if CHANGED in step.hashes:
            hashes.setdefault(CHANGED, {})
        texts = {sha256(text.encode()).hexdigest(): printable(text) for text in step.scalars.values()}
        process.texts.update(texts)
        numbers = {name: sha256(text.encode()).hexdigest() for name, text in step.scalars.items()}
        _add(hashes, {**step.hashes, SCALARS: numbers} if numbers else step.hashes)
        process.lines[step.step] = step
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
    return line


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
