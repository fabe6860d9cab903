"""Samples of a benchmark: fresh processes that time themselves.

Of `./run.sh`, or of a baseline's loop.
"""

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from repro.frameworks import FRAMEWORKS
from repro.machine.facts import ROOT
from repro.trainers.benchmark.cells import BASELINES
from repro.trainers.benchmark.energy import Monitor
from repro.trainers.benchmark.results import (
    Cell,
    DoneSample,
    DoneTarget,
    Epoch,
    FailedSample,
    FailedTarget,
    RefusedSample,
    RefusedTarget,
    Sample,
    Startup,
    Target,
)
from repro.trainers.loop import config, environment, times
from repro.trainers.loop.call import quoted, run_sh, said_of
from repro.trainers.loop.config import Config
from repro.trainers.verify.runs import STATUS
from repro.verify.results import REFUSED

NEVER = 10**9  # steps between two lines of the log


class FailedRun(Exception):  # noqa: N818
    """The failure of a process, in its own words."""

    def __init__(self, process: subprocess.CompletedProcess[str], refused: bool = False) -> None:
        super().__init__(said_of(process))
        self.refused = refused


@dataclass
class Sampler:
    """Takes samples in workspaces of their own below `folder`, and leaves nothing there."""

    config: Config
    workspace: Path
    overrides: list[str]
    """The user's own, for all samples alike."""
    folder: Path

    def sample(self, cell: Cell, number: int, monitor: Monitor) -> Sample:
        """The cell's sample of a round."""
        started = time.monotonic()
        try:
            with monitor():
                measured = self._baseline(cell) if cell.numerics in BASELINES else self._trainer(cell)
        except FailedRun as failure:
            kind = RefusedSample if failure.refused else FailedSample
            return kind(cell=cell.name, seconds=time.monotonic() - started, error=str(failure), round=number)
        begin, end = measured.pop("window")
        joules = monitor.between(started + begin, started + end)
        return DoneSample(
            cell=cell.name,
            seconds=time.monotonic() - started,
            **measured,
            gpu_memory=monitor.peak,
            joules_per_epoch=joules and joules / (end - begin) * measured["seconds_per_epoch"],
            round=number,
        )

    def _trainer(self, cell: Cell) -> dict[str, Any]:
        """Measures a sample of the trainer, with the window of time that its speed is of."""
        length = [f"++params.{key}={cell.steps}" for key in ("max_steps", "n_epochs")]
        options = [*_overrides(cell), *length, f"++params.log_interval={NEVER}"]
        record, measured, _ = self._run(cell.framework, options)
        calls, moments = measured["calls"], measured["moments"]
        steady, first = times.steady(calls), calls[0]
        per_image = sum(call["seconds"] for call in steady) / sum(call["images"] for call in steady)
        compiling = sum(call["seconds"] - call["images"] * per_image for call in calls if call not in steady)
        variables = record["config"]["environment"]
        return {
            "seconds_per_epoch": per_image * cell.train_samples,
            "first_epoch": per_image * cell.train_samples + compiling,
            "startup": Startup(
                begin=moments["begun"],
                import_=moments["imported"] - moments["begun"],
                build=first["end"] - first["seconds"] - moments["imported"],
                compile=max(first["seconds"] - first["images"] * per_image, 0.0),
            ),
            "first_step": first["end"] - first["images"] * per_image,
            "peak_memory": measured["peak_memory"],
            "fingerprint": record["sha256"]["final_weights"],
            "version": record["framework"]["version"],
            "compile_cache": {name: value for name, value in variables.items() if "CACHE" in name},
            "window": (steady[0]["end"] - steady[0]["seconds"], steady[-1]["end"]),
        }

    def to_target(self, cell: Cell) -> Target:
        """A run of a cell that is as long as configured: its accuracy, epoch by epoch."""
        setting = msgspec.structs.asdict(cell)
        try:
            record, measured, metrics = self._run(cell.framework, _overrides(cell))
        except FailedRun as failure:
            return (RefusedTarget if failure.refused else FailedTarget)(**setting, error=str(failure))
        return DoneTarget(
            **setting,
            epochs=msgspec.convert(measured["epochs"], list[Epoch]),
            first_epoch=metrics[0]["train_seconds"],
            evaluation=metrics[-1]["test_seconds"],
            fingerprint=record["sha256"]["final_weights"],
        )

    def _run(self, framework: str, overrides: list[str]) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
        """Runs `./run.sh FRAMEWORK`; returns its experiment.json, times.json and metrics.jsonl, or raises FailedRun."""
        own, data = self.workspace / f"{config.NAME}.yaml", Path(self.config.output.data_path).resolve()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if own.exists():
                shutil.copy(own, self.folder)
            done = run_sh(framework, self.folder, *self.overrides, *overrides, f"output.data_path={quoted(str(data))}")
            if done.returncode:
                raise FailedRun(done, refused=STATUS.get(done.returncode) == REFUSED)
            (left,) = (self.folder / "outputs" / framework).iterdir()
            read = {name: json.loads((left / name).read_text()) for name in ("experiment.json", times.NAME)}
            metrics = [json.loads(line) for line in (left / "metrics.jsonl").read_text().splitlines()]
            return read["experiment.json"], read[times.NAME], metrics
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _baseline(self, cell: Cell) -> dict[str, Any]:
        """Measures a sample of a baseline's loop, as _trainer() does."""
        data = Path(self.config.output.data_path).resolve()
        done = self._python(
            cell.framework,
            cell.threads,
            "-m",
            f"benchmarks.{cell.numerics}_{cell.framework}",
            str(data),
            f"--batch-size={cell.batch_size}",
            f"--steps={BASELINES[cell.numerics]}",
            f"--threads={cell.threads}",
        )
        if done.returncode:
            raise FailedRun(done)
        measured = json.loads(done.stdout.splitlines()[-1])
        keys = ("seconds_per_epoch", "first_epoch", "peak_memory", "fingerprint", "version", "window")
        return {key: measured[key] for key in keys} | {
            "startup": None,
            "first_step": measured["moments"].get("stepped"),
            "compile_cache": {},
        }

    def bare_import(self, framework: str) -> float | None:
        """Seconds that the framework's own `import` takes in a fresh process; None where it fails."""
        code = f"import time; t = time.perf_counter(); import {FRAMEWORKS[framework].module}; print(time.perf_counter() - t)"
        done = self._python(framework, self.config.params.threads, "-c", code)
        return None if done.returncode else float(done.stdout.split()[-1])

    def _python(self, framework: str, threads: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The framework's Python on the CPU, in the environment that its trainer would have."""
        params = replace(self.config.params, device="cpu", threads=threads)
        own = environment.variables(framework, params) | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
        command = [str(ROOT / ".venv" / framework / "bin" / "python"), "-P", "-s", "-W", "ignore", *arguments]
        return subprocess.run(
            command, env=os.environ | own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )


def _overrides(cell: Cell) -> list[str]:
    """The settings that make a run one of this cell; a train.yaml may lack any of these keys."""
    return [
        f"++params.numerics={cell.numerics}",
        f"++params.device={cell.device}",
        f"++params.batch_size_train={cell.batch_size}",
        f"++params.threads={cell.threads}",
        f"++data.train_samples={cell.train_samples}",
    ]
