"""The content of report.json, as structs.

The questions, the answers and what they rest on. The page, the Markdown and the terminal's table show it, and add nothing.
"""

from repro.record.warnings import RecordWarning
from repro.report.levels import Levels
from repro.structs import Struct
from repro.trainers.benchmark.results import Benchmark
from repro.verify.questions import AnswerWord, Promise
from repro.verify.results import FirstDifference, Settings
from repro.verify.timeline import TimelinePart


class RunOfCell(Struct):
    """A run that an answer rests on."""

    task: str
    label: str
    seconds: float
    command: str
    evidence: str
    """The comparison that was made, or the reason that there is none."""


class TableCell(Struct):
    """An answer in a table."""

    framework: str
    answer: AnswerWord
    promise: Promise
    kept: bool | None
    says: str
    """The evidence in one line."""
    missing: str | None
    """The runs that are missing."""
    difference: FirstDifference | None
    runs: list[RunOfCell]


class BrokenPromise(TableCell):
    """A cell whose promise was broken, and where it stands."""

    machine: str | None
    """The machine; None across machines."""
    title: str
    numerics: str


class TableRow(Struct):
    """A question of a table, and its cells by framework."""

    question: str
    title: str
    control: bool
    cells: dict[str, TableCell] = {}


class Block(Struct):
    """The table of one arithmetic."""

    numerics: str
    frameworks: list[str] = []
    rows: list[TableRow] = []


class Curves(Struct):
    """The training loss and the test accuracy over the steps, by framework, in one arithmetic."""

    numerics: str
    loss: dict[str, list[tuple[int, float]]]
    accuracy: dict[str, list[tuple[int, float]]]


class Speed(Struct):
    """The time of a baseline run: per step in training, and of the whole process with all that it loads."""

    numerics: str
    framework: str
    version: str | None
    device: str | None
    threads: int | None
    steps: int
    seconds_per_step: float | None
    seconds: float
    test_accuracy: float | None
    fingerprint: str | None


class Lane(Struct):
    """A run of a command over its steps, and where it differs first from the baseline."""

    label: str
    parts: list[TimelinePart]
    step: int | None = None
    channel: str | None = None


class Section(Struct):
    """The page's section of one results.json."""

    machine: str
    summary: str
    created: str
    seconds: float
    seal: str
    settings: Settings
    blocks: list[Block]
    curves: list[Curves]
    speed: list[Speed]
    lanes: list[Lane] = []
    """The baseline, and runs that differ or were stopped."""
    warnings: list[RecordWarning] = []
    """Suspicious facts of the baseline."""


class MachineFacts(Struct):
    """A machine, in a line and fact by fact."""

    name: str
    summary: str
    facts: dict[str, str]


class PromiseCounts(Struct):
    """Counts of promises kept, promises broken, answers without a promise, and questions without an answer."""

    kept: int
    broken: list[BrokenPromise]
    without_promise: int
    not_asked: int


class Report(Struct):
    """The content of report.json."""

    schema: int
    verdict: PromiseCounts
    across: list[Block]
    """The tables across machines."""
    sections: list[Section]
    machines: list[MachineFacts]
    benchmarks: list[Benchmark] = []
    """The contents of benchmark.json, the newest first."""
    levels: list[Levels] = []
    """The levels of each training."""
