"""benchmark.json: samples, rows and ratios of one machine.

The samples are what was measured; speed.concluded() computes the rest from them.
"""

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from repro import structs
from repro.structs import LARGEST, Checked, FileKind, Fingerprint, Integer, Number, Struct, Time
from repro.verify.results import Machine

Positive = Annotated[float, Meta(gt=0, lt=LARGEST)]
Count = Annotated[int, Meta(ge=1, le=2**53)]
Pair = tuple[Positive, Positive]
RatioKind = Literal["determinism", "portability", "tutorial", "tuned"]


class Source(Struct):
    """The code that was measured."""

    commit: str | None
    dirty: bool | None


class BenchmarkSettings(Struct):
    """The configuration of all cells alike."""

    model: str
    optimizer: str
    dataset: str
    target: Number | None
    """The test accuracy, 0 to 1."""
    epochs: Number
    """The length of a sample."""
    overrides: list[str]


class Cell(Struct):
    """A combination; all its samples are taken alike, each in a process of its own."""

    framework: str
    numerics: str
    """An arithmetic, or one of cells.BASELINES."""
    device: str
    batch_size: Count
    threads: Count
    train_samples: Count
    steps: Count
    """The length of a sample."""

    @property
    def name(self) -> str:
        """The cell's key in the file; the steps are not part of it."""
        size = f"{self.batch_size}/{self.threads}/{self.train_samples}"
        return f"{self.framework}/{self.numerics}/{self.device}/{size}"


class Roofline(Struct):
    """Rates of matrix products, operations a second, one for each round."""

    threads: Count
    dtype: Literal["float32", "float64"]
    rates: Annotated[list[Positive], Meta(min_length=1)]


# --- samples --------------------------------------------------------------------------------------------------------


class Startup(Struct):
    """Seconds of the parts of a start."""

    begin: Number
    import_: Number = field(name="import")
    build: Number
    compile: Number


class FailedSample(Struct, tag_field="status", tag="failed"):
    """A process that failed."""

    cell: str
    seconds: Number
    error: str
    round: Integer


class RefusedSample(FailedSample, tag="refused"):
    """A process that this machine cannot run."""


class DoneSample(Struct, tag_field="status", tag="done"):
    """The measurements of one process."""

    cell: str
    seconds: Number
    seconds_per_epoch: Positive
    first_epoch: Number
    startup: Startup | None
    first_step: Number | None
    peak_memory: Integer | None
    fingerprint: Fingerprint
    version: str
    """The framework's."""
    compile_cache: dict[str, str]
    """Variables of the environment that may keep it from compiling."""
    gpu_memory: Integer | None
    joules_per_epoch: Number | None
    round: Integer


Sample = DoneSample | FailedSample | RefusedSample


class Epoch(Struct):
    """The evaluation after an epoch."""

    epoch: Count
    test_accuracy: Number
    end: Number
    """Seconds since the command."""


class FailedTarget(Cell, tag_field="status", tag="failed"):
    """A run to the target that failed."""

    error: str


class RefusedTarget(FailedTarget, tag="refused"):
    """A run to the target that this machine cannot make."""


class DoneTarget(Cell, tag_field="status", tag="done"):
    """A run to the target."""

    epochs: list[Epoch]
    first_epoch: Number
    evaluation: Number
    fingerprint: Fingerprint


Target = DoneTarget | FailedTarget | RefusedTarget


# --- conclusions ----------------------------------------------------------------------------------------------------


class Summary(Struct, kw_only=True):
    """A median of samples or of ratios."""

    n: Count
    median: Positive
    quartiles: Pair | UnsetType = UNSET
    interval: Pair | None
    """The interval; None for a single sample."""


class TimeToTarget(Struct):
    """Seconds from the command to the target; None where the run did not reach it."""

    seconds: Number | None
    measured: bool


class Row(Struct):
    """The summary of a cell's samples: medians, but of memory the most."""

    cell: str
    framework: str
    numerics: str
    device: str
    batch_size: Count
    threads: Count
    train_samples: Count
    steps: Count
    version: str | None
    error: str | None
    """The first one."""
    seconds_per_epoch: Summary | None
    images_per_second: Number | None
    resolution: Number | None
    """The smallest relative difference that could have been seen."""
    startup: Startup | None
    fingerprints: list[Fingerprint]
    """The distinct ones."""
    agree: bool | None
    """True if all fingerprints are equal; None if that is not promised."""
    first_epoch: Number | None
    first_step: Number | None
    joules_per_epoch: Number | None
    peak_memory: Integer | None
    gpu_memory: Integer | None
    cold_start: Number | None
    """The time to the first step over the bare import and the compile."""
    roofline: Number | None = field(name="floor")
    """Seconds of an epoch's matrix products alone."""
    to_target: TimeToTarget | None


class Ratio(Summary):
    """The ratio of the times of two cells that differ in their numerics alone."""

    kind: RatioKind
    framework: str
    device: str
    batch_size: Count
    threads: Count
    train_samples: Count


# --- the file -------------------------------------------------------------------------------------------------------


class Benchmark(Checked, kw_only=True):
    """The content of the file."""

    created: Time
    seconds: Number
    interrupted: bool
    others_busy: Number
    """Cores that other processes kept busy before the first sample."""
    machine: Machine
    source: Source
    settings: BenchmarkSettings
    energy: dict[str, str]
    """The counter of each device, or the reason that there is none."""
    rooflines: list[Roofline] = field(name="floor")
    imports: dict[str, list[Number]]
    """Seconds of the bare import of each framework."""
    targets: dict[str, Target]
    """The run to the target of each framework."""
    cells: dict[str, Cell]
    samples: list[Sample]
    skipped: list[str]
    rows: list[Row] = []
    ratios: list[Ratio] = []
    caches: dict[str, str] = {}
    warnings: list[str] = []
    disagreements: list[str] = []
    """Fingerprints that should be equal and are not."""

    def times(self, cell: str) -> dict[int, float]:
        """The seconds per epoch of a cell, by round."""
        done = (sample for sample in self.samples if isinstance(sample, DoneSample))
        return {sample.round: sample.seconds_per_epoch for sample in done if sample.cell == cell}


def write(path: Path, content: Benchmark) -> None:
    """Adds the checksum, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    structs.write(KIND, path, content)


def read(path: Path) -> Benchmark:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    return structs.read(path, KIND)


def _contradictions(content: Benchmark) -> Iterator[str]:
    """A sample or a row of no known cell, and medians that are not those of the samples."""
    sampled, rows = {sample.cell for sample in content.samples}, {row.cell for row in content.rows}
    for name in sorted((sampled | rows) - content.cells.keys()):
        yield f"{name} is no cell"
    for name in sorted(sampled - rows):
        yield f"the samples of {name} have no row"
    for row in content.rows:
        times = list(content.times(row.cell).values())
        median = row.seconds_per_epoch.median if row.seconds_per_epoch else None
        if median != (statistics.median(times) if times else None):
            yield f"the row of {row.cell} does not follow from its samples"


KIND = FileKind("benchmark", "benchmark.json", 1, "ratios", Benchmark, _contradictions)
