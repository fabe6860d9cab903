"""Lines of the processes of a command.

The observer wrote them, into steps/: a file for each process, a line for each step.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from msgspec import UNSET

from repro.errors import ReproError
from repro.files import matching, read_lines
from repro.record.seal import Chain
from repro.record.typed_lines import About, Backward, Call, End, Line, Logged, Note, Step, read_line
from repro.structs import Flaw
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
"""The channels of a step, in the order of cause."""
STARTS, SCALARS, COPIES = "initial weights", "scalars", "copies"
CHANGED = "changed weights"
"""Weights before a step that are not as they were after the step before: something else than an optimizer changed them."""
PASSES, CLOSURE, SCALE = "backward passes", "backward passes of the closure", "scaler.scale"
"""Three of the scalars. Others are options of a group, `0.group 0.lr`, and counters of schedules, `StepLR.last_epoch`."""
LOADED, BROKEN = "loaded", ".broken"
"""Empty files of the observer: a Python process loaded it; lines of a process are missing, as they could not be written."""
UNWRITTEN = "step {step}: it could not be written down, nor could any after it"

AGAIN = "copy it again from where it was made, or record the command again"

Hashes = dict[str, dict[str, str]]
"""The SHA-256 of each array, by channel and name."""


@dataclass
class Process:
    """The steps that one process wrote down, which trained or could have."""

    name: str
    """The name of its file: `12`, or `rank-0.12`."""
    about: About = field(default_factory=About)
    steps: dict[int, Hashes] = field(default_factory=dict)
    """The hashes of each step that was hashed; 0 is before the first one."""
    texts: dict[str, str] = field(default_factory=dict)
    """The number that each hash of the channel `scalars` is of."""
    lines: dict[int, Step] = field(default_factory=dict)
    """The content of each step's last line besides the hashes."""
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Steps that were not fully observed, and why."""
    metrics: list[Logged] = field(default_factory=list)
    """Numbers that it handed to libraries that log."""
    calls: list[Call] = field(default_factory=list)
    """Calls of modules, of the steps that --modules names."""
    backward: list[Backward] = field(default_factory=list)
    """The gradients of these steps."""
    seal: str = ""
    observing: float | None = None
    """Seconds that the observer took, where it says so."""
    ignored: set[str] = field(default_factory=set)
    """Generators that two equal runs have in different states: they decide nothing."""
    sampled: bool = False
    """True if the process chose what to write down. Another run may not choose the same: only common hashes count."""

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
        """The number of steps seen."""
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
        """The hashes of one channel in each step where it was seen."""
        return {step: hashes[channel] for step, hashes in self.steps.items() if channel in hashes}

    def moving(self) -> set[str]:
        """The generators that drew something between two of the steps that were hashed."""
        states = [state for _, state in sorted(self.of("generator").items())]
        return {name for a, b in pairwise(states) for name in a.keys() & b.keys() if a[name] != b[name]}


def processes(path: Path) -> list[Process]:
    """All processes whose lines lie in a record's folder, whether it is finished or not."""
    try:
        result = [_process(file) for file in matching(path / STEPS, "*.jsonl") if file.is_file()]
        broken = [file.name.removesuffix(f".jsonl{BROKEN}") for file in matching(path / STEPS, f"*.jsonl{BROKEN}")]
    except OSError as error:
        raise ReproError(f"record: {error.filename} cannot be read ({error.strerror}); {AGAIN}") from None
    silent = {*map(printable, broken)} - {one.name for one in result}
    result += [Process(name, unseen=[UNWRITTEN.format(step=1)]) for name in silent]
    return in_order(result)


def in_order(processes: Iterable[Process]) -> list[Process]:
    """Processes in an order that is the same in each run."""
    return sorted(processes, key=lambda one: (one.label, json.dumps(one.about.argv), len(one.name), one.name))


def _process(file: Path) -> Process:
    process, chain = Process(printable(file.stem)), Chain()
    for number, text in enumerate(_lines(file), 1):
        try:
            chain.add(text)
            line = take(process, text)
        except Flaw as flaw:
            raise ReproError(f"record: {file}, line {number}: {flaw}; {AGAIN}") from None
        if not isinstance(line, End):
            process.seal = chain.seal
    if file.with_name(file.name + BROKEN).exists():
        process.unseen.append(UNWRITTEN.format(step=process.last + 1))
    return process


def take(process: Process, text: bytes) -> Line | None:
    """Adds a line of a process' file, and returns it. Flaw where it cannot be believed."""
    line = read_line(text)
    if isinstance(line, Step):
        _take_step(process, line)
    elif isinstance(line, About):
        process.about = line
    elif isinstance(line, End):
        process.observing = line.seconds
    elif isinstance(line, Logged):
        process.metrics.append(line)
    elif isinstance(line, Call):
        process.calls.append(line)
    elif isinstance(line, Backward):
        process.backward.append(line)
    elif isinstance(line, Note):
        process.notes.append(line.text)
        if line.unseen is not UNSET:
            process.unseen.append(f"step {line.unseen}: {line.text}")
    return line


def _take_step(process: Process, line: Step) -> None:
    hashes = process.steps.setdefault(line.step, {})
    if line.step == 0 and "optimizer" in line.hashes:
        hashes.setdefault("optimizer", {})  # it may still be empty, which is seen, too
    if CHANGED in line.hashes:
        hashes.setdefault(CHANGED, {})
    numbers = {name: sha256(text.encode()).hexdigest() for name, text in line.scalars.items()}
    process.texts |= {numbers[name]: text for name, text in line.scalars.items()}
    _add(hashes, {**line.hashes, SCALARS: numbers} if numbers else line.hashes)
    process.lines[line.step] = line


def _add(hashes: Hashes, more: Hashes) -> None:
    """Adds a line of a step to the others of its number, as repro.watch may write: none of them is lost."""
    for channel in CHANNELS:
        for name, code in more.get(channel, {}).items():
            names = hashes.setdefault(channel, {})
            while names.get(name, code) != code:
                name += "'"
            names[name] = code


def _lines(file: Path) -> Iterator[bytes]:
    """Yields each line of a file; a last one without an end was being written when its process was killed."""
    for line in read_lines(file):
        if not line.endswith(b"\n"):
            return
        yield line
