"""Measurement of training's speed on this machine.

Samples of every cell in interleaved rounds, while there is time.
"""

import logging
import platform
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
from rich.progress import Progress, TaskID

from repro.console import progress
from repro.errors import UsageError
from repro.machine import facts, gpu
from repro.structs import converted
from repro.trainers.benchmark import results, roofline, speed
from repro.trainers.benchmark.cells import BASELINES, REPEAT_BITS, cells, in_round
from repro.trainers.benchmark.energy import Monitor
from repro.trainers.benchmark.results import (
    Benchmark,
    BenchmarkSettings,
    Cell,
    DoneSample,
    DoneTarget,
    FailedSample,
    Roofline,
    Sample,
    Source,
    Target,
)
from repro.trainers.benchmark.samples import Sampler
from repro.trainers.loop.config import TRAIN_SAMPLES, Config
from repro.trainers.verify.questions import BASELINE
from repro.trainers.verify.runs import Runner
from repro.verify.results import Machine

log = logging.getLogger(__name__)

FAILURE, BROKEN = 1, 3  # exit codes
SECONDS_A_SAMPLE = 9.0  # on 2 cores, most of them to start; corrected by what the samples really take
SECONDS_A_TUNED_SAMPLE = 15.0
IMPORTS = 3  # rounds in which the frameworks' bare imports are timed, too


@dataclass
class Measurement:
    """The measurements of one call of `benchmark`."""

    config: Config
    workspace: Path
    overrides: list[str]
    samples: list[Sample] = field(default_factory=list)
    imports: dict[str, list[float]] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    rates: dict[tuple[int, Literal["float32", "float64"]], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The rates of each round, by threads and type."""
    took: dict[str, float] = field(default_factory=dict)
    """Seconds of the last sample of each cell."""
    others_busy: float = 0.0
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.folder = self.workspace / "benchmark" / datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
        user = [item for item in self.overrides if not item.lstrip("+~").startswith("benchmark.")]
        self.sampler = Sampler(self.config, self.workspace, user, self.folder / "run")
        runner = Runner(self.config, self.workspace, user, self.folder)
        missing = {name: runner.missing(name, BASELINE) for name in self.config.benchmark.frameworks}
        self.skipped += [f"{name}: {why}" for name, why in missing.items() if why]
        devices = self._devices()
        self.cells = [cell for cell in cells(self.config, devices) if not missing[cell.framework]]
        if not self.cells:
            raise UsageError(f"benchmark: nothing can be measured here ({'; '.join(self.skipped)})")
        self.monitors = {device: Monitor(device) for device in devices}

    def __call__(self) -> tuple[Benchmark, int]:
        """Measures, writes benchmark.json, and returns its content and the exit code."""
        self.folder.mkdir(parents=True)
        self.started = time.perf_counter()
        try:
            with progress() as bar:
                self._measure(bar)
        except KeyboardInterrupt:
            self.interrupted = True
            log.warning("interrupted; what was measured so far is kept")
        path = self.folder / "benchmark.json"
        results.write(path, speed.concluded(self._content()))
        content = results.read(path)
        log.info("benchmark in %s", path)
        return content, self._exit_code(content)

    def _devices(self) -> list[str]:
        wanted = self.config.benchmark.devices
        if "gpu" in wanted and not gpu.count():
            raise UsageError("benchmark: devices=gpu: there is no NVIDIA GPU on this machine; use cpu or all")
        return ["cpu", *(["gpu"] if gpu.count() else [])] if wanted == ["all"] else [d for d in wanted if d != "all"]

    def _measure(self, bar: Progress) -> None:
        """Rounds, while there is time; after the first one, each framework's run as configured."""
        wanted = self.config.benchmark
        self.others_busy = psutil.cpu_percent(interval=1) / 100 * (psutil.cpu_count() or 1)
        budget = 60 * wanted.minutes
        expected = self._expected(self.cells)
        log.info(
            "combinations: %d, up to %d samples each; a round takes about %.0f s, all of it about %.1f min",
            len(self.cells),
            wanted.rounds,
            expected,
            max(min(budget, wanted.rounds * expected), expected) / 60,
        )
        shown = bar.add_task("benchmark", total=len(self.cells) * wanted.rounds)
        for number in range(wanted.rounds):
            if number and self._elapsed() + sum(self.took.values()) > budget:
                log.info("no time for more than %d rounds of %d; minutes=%g", number, wanted.rounds, wanted.minutes)
                break
            self._round(number, bar, shown)
            if number == 0 and wanted.target is not None and self.config.data.train_samples == TRAIN_SAMPLES:
                self._to_target()

    def _round(self, number: int, bar: Progress, shown: TaskID) -> None:
        """A sample of every cell, and the machine's rates; what failed once is not tried again."""
        for threads in dict.fromkeys(cell.threads for cell in self.cells):
            self.rates[threads, "float32"].append(roofline.rate(np.float32, threads))
            self.rates[threads, "float64"].append(roofline.rate(np.float64, threads))
        if number < IMPORTS:
            for framework in dict.fromkeys(cell.framework for cell in self.cells):
                if number == 0:
                    self.sampler.bare_import(framework)  # from the disk, for what is timed to find it in memory
                seconds = self.sampler.bare_import(framework)
                self.imports.setdefault(framework, []).extend([] if seconds is None else [seconds])
        failed = {sample.cell for sample in self.samples if not isinstance(sample, DoneSample)}
        ordered = in_round(self.cells, number)
        for place, cell in enumerate(ordered):
            bar.update(shown, advance=1, description=cell.name)
            if cell.name in failed:
                continue
            sample = self.sampler.sample(cell, number, self.monitors[cell.device])
            self.samples.append(sample)
            self.took[cell.name] = sample.seconds
            result = f"{sample.seconds_per_epoch:.2f} s an epoch" if isinstance(sample, DoneSample) else sample.error
            left = self._left(number, ordered[place + 1 :])
            log.info("round %d  %s  %s  (%.0f s; %s)", number + 1, cell.name, result, sample.seconds, left)

    def _left(self, number: int, to_come: list[Cell]) -> str:
        """The expected time to the end, in words, before these cells of a round."""
        rest = self._expected(to_come)
        budget = 60 * self.config.benchmark.minutes - self._elapsed()
        left = min(rest + (self.config.benchmark.rounds - number - 1) * self._expected(self.cells), budget)
        return f"about {max(left, rest if number == 0 else 0):.0f} s left"

    def _expected(self, to_come: list[Cell]) -> float:
        """Seconds for a sample of each of these cells: what its last one took, or a guess."""
        guesses = {"tuned": SECONDS_A_TUNED_SAMPLE}
        return sum(self.took.get(cell.name, guesses.get(cell.numerics, SECONDS_A_SAMPLE)) for cell in to_come)

    def _to_target(self) -> None:
        """Measures each framework's time to the target, in its first cell that repeats its bits, for n_epochs."""
        for framework in dict.fromkeys(cell.framework for cell in self.cells):
            own = [cell for cell in self.cells if cell.framework == framework and cell.numerics not in BASELINES]
            cell = next((cell for cell in own if cell.numerics in REPEAT_BITS), own[0])
            target = self.targets[framework] = self.sampler.to_target(cell)
            if isinstance(target, DoneTarget):
                result = ", ".join(f"{100 * one.test_accuracy:.2f}% after {one.end:.1f} s" for one in target.epochs)
            else:
                result = target.error
            log.info("to the target  %s  %s", framework, result)

    def _elapsed(self) -> float:
        return time.perf_counter() - self.started

    def _content(self) -> Benchmark:
        wanted = self.config.benchmark
        return Benchmark(
            schema=results.KIND.schema,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=self._elapsed(),
            interrupted=self.interrupted,
            others_busy=self.others_busy,
            machine=converted(facts.hardware() | {"platform": platform.platform()}, Machine),
            source=converted(facts.source(), Source),
            settings=BenchmarkSettings(
                model=self.config.params.model,
                optimizer=self.config.params.optimizer,
                dataset=self.config.data.dataset,
                target=wanted.target,
                epochs=wanted.epochs,
                overrides=self.overrides,
            ),
            energy={device: monitor.source for device, monitor in self.monitors.items()},
            rooflines=[Roofline(threads, dtype, rates) for (threads, dtype), rates in self.rates.items() if rates],
            imports=self.imports,
            targets=self.targets,
            cells={cell.name: cell for cell in self.cells},
            samples=self.samples,
            skipped=self.skipped,
        )

    def _exit_code(self, content: Benchmark) -> int:
        if content.disagreements:
            return BROKEN
        failed = any(type(sample) is FailedSample for sample in self.samples)
        return FAILURE if failed or self.interrupted else 0
