"""Contents of benchmark.json as `benchmark` would write them.

The samples are made up, what follows from them is computed.
"""

from itertools import product

from msgspec.structs import asdict

from repro.trainers.benchmark import results, speed
from repro.trainers.benchmark.cells import BASELINES
from repro.trainers.benchmark.results import (
    Benchmark,
    BenchmarkSettings,
    Cell,
    DoneSample,
    DoneTarget,
    Epoch,
    Roofline,
    Sample,
    Source,
    Startup,
)
from repro.verify.results import Cpu, Machine
from support.results_files import FRAMEWORKS, sha256

SECONDS = {"pytorch": 2.0, "tensorflow": 1.5, "jax": 1.8}  # an epoch at batch 32, deterministic
FACTORS = {"deterministic": 1.0, "fast": 0.8, "portable": 2.5, "tutorial": 5.0, "tuned": 1.25}


def benchmark(
    numerics: tuple[str, ...] = ("deterministic", "fast", "portable", "tutorial"),
    batch_sizes: tuple[int, ...] = (32,),
    rounds: int = 5,
    noise: float = 0.01,
    slower: dict[str, float] | None = None,
    model: str = "Imaginary 9000",
    fingerprints: dict[tuple[str, int], str] | None = None,
    commit: str = "abc",
) -> Benchmark:
    """The content of a benchmark.json.

    `noise` is the relative distance between a round's samples and the next one's; `slower` multiplies the times of some
    cells; `fingerprints` replaces the one of a cell in a round.
    """
    cells: dict[str, Cell] = {}
    samples: list[Sample] = []
    for batch_size, framework, kind in product(batch_sizes, FRAMEWORKS, numerics):
        cell = Cell(framework, kind, "cpu", batch_size, 2, 60_000, 1024)
        cells[cell.name] = cell
        bits = f"{kind} {batch_size}" + ("" if kind == "portable" else framework)
        seconds = SECONDS[framework] * FACTORS[kind] * (16 / batch_size + 0.5) * (slower or {}).get(cell.name, 1.0)
        for number in range(rounds):
            fingerprint = (fingerprints or {}).get((cell.name, number), sha256(bits))
            samples.append(sample(cell, number, seconds * (1 + noise * number), fingerprint))
    return speed.concluded(
        Benchmark(
            schema=results.KIND.schema,
            created="2026-11-21T15:00:00+00:00",
            seconds=512.5,
            interrupted=False,
            others_busy=0.05,
            machine=Machine(
                Cpu("x86_64", "ImaginaryCPU", model, "avx512f", 2, 2, 2), [], "Linux-6.1.0-x86_64-with-glibc2.36"
            ),
            source=Source(commit, False),
            settings=BenchmarkSettings("lenet", "sgd", "mnist", 0.98, 0.5, []),
            energy={"cpu": "not measured: this machine shows no RAPL counters in /sys/class/powercap"},
            rooflines=[Roofline(2, "float32", [200e9, 155.7e9]), Roofline(2, "float64", [100e9])],
            imports={name: [1.0, 1.2, 1.1] for name in FRAMEWORKS},
            targets={name: target(name, batch_sizes[0]) for name in FRAMEWORKS},
            cells=cells,
            samples=samples,
            skipped=[],
        )
    )


def target(framework: str, batch_size: int) -> DoneTarget:
    """A run to the target that reaches 98 % in epoch 3."""
    return DoneTarget(
        **asdict(Cell(framework, "deterministic", "cpu", batch_size, 2, 60_000, 1024)),
        epochs=[Epoch(n, 0.95 + 0.01 * n, 4.0 + 2.5 * n) for n in (1, 2, 3, 4)],
        first_epoch=3.5,
        evaluation=0.25,
        fingerprint=sha256("target"),
    )


def sample(cell: Cell, number: int, seconds: float, fingerprint: str) -> DoneSample:
    """A sample that was done."""
    return DoneSample(
        cell=cell.name,
        seconds=8.0,
        seconds_per_epoch=seconds,
        first_epoch=seconds + 1.0,
        startup=None if cell.numerics in BASELINES else Startup(0.5, 1.2, 0.3, 1.0),
        first_step=3.0,
        peak_memory=700_000_000,
        fingerprint=fingerprint,
        version="1.2.3",
        compile_cache={},
        gpu_memory=None,
        joules_per_epoch=None,
        round=number,
    )
