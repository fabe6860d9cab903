"""Takes one sample of a benchmark: a fresh process of `./run.sh`, or of a baseline's loop, that times itself."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repro.benchmark.cells import BASELINES, Cell
from repro.benchmark.energy import Monitor
from repro.run import config, environment, times
from repro.run.config import Config
from repro.run.experiment import ROOT
from repro.verify.trainer_runs import DONE, FAILED, STATUS, quoted, run_sh, said_of

NEVER = 10**9  # steps between two lines of the log
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


@dataclass
class Sampler:
    """Takes samples in workspaces of their own below `folder`, and leaves nothing there."""

    config: Config
    workspace: Path
    overrides: list[str]
    """The user's own, for all samples alike."""
    folder: Path

    def take(self, cell: Cell, monitor: Monitor) -> dict[str, Any]:
        """One sample, as benchmark.json holds it: its status, and what it measured where that is `done`."""
        started = time.monotonic()
        with monitor():
            found = self._baseline(cell) if cell.numerics in BASELINES else self._trainer(cell)
        begin, end = found.pop("window", (0.0, 0.0))
        joules = monitor.between(started + begin, started + end)
        if found["status"] == DONE:
            found["gpu_memory"] = monitor.peak
            found["joules_per_epoch"] = joules and joules / (end - begin) * found["seconds_per_epoch"]
        return {"cell": cell.name, "seconds": time.monotonic() - started} | found

    def _trainer(self, cell: Cell) -> dict[str, Any]:
        length = [f"++params.{key}={cell.steps}" for key in ("max_steps", "n_epochs")]
        done, record, measured, _ = self._run(
            cell.framework, [*_overrides(cell), *length, f"++params.log_interval={NEVER}"]
        )
        found: dict[str, Any] = {"status": STATUS.get(done.returncode, FAILED)}
        if done.returncode:
            return found | {"error": said_of(done)}
        steady = times.steady(measured["calls"])
        per_image = sum(call["seconds"] for call in steady) / sum(call["images"] for call in steady)
        first, moments = measured["calls"][0], measured["moments"]
        wanted = record["config"]["environment"]
        compiling = sum(
            call["seconds"] - call["images"] * per_image for call in measured["calls"] if call not in steady
        )
        first_step = first["end"] - first["images"] * per_image
        return found | {
            "seconds_per_epoch": per_image * cell.train_samples,
            "first_epoch": per_image * cell.train_samples + compiling,
            "startup": {"begin": moments["begun"], "import": moments["imported"] - moments["begun"],
                        "build": first["end"] - first["seconds"] - moments["imported"],
                        "compile": max(first["seconds"] - first["images"] * per_image, 0.0)},
            "first_step": first_step,
            "peak_memory": measured["peak_memory"],
            "fingerprint": record["sha256"]["final_weights"],
            "version": record["framework"]["version"],
            "compile_cache": {name: value for name, value in wanted.items() if "CACHE" in name},
            "window": (steady[0]["end"] - steady[0]["seconds"], steady[-1]["end"]),
        }  # fmt: skip

    def to_target(self, cell: Cell) -> dict[str, Any]:
        """A run of a cell that is as long as configured: when it knew of which accuracy, epoch by epoch."""
        done, record, measured, metrics = self._run(cell.framework, _overrides(cell))
        if done.returncode:
            return {"status": STATUS.get(done.returncode, FAILED), "error": said_of(done)}
        return {
            "status": DONE,
            "epochs": measured["epochs"],
            "first_epoch": metrics[0]["train_seconds"],
            "evaluation": metrics[-1]["test_seconds"],
            "fingerprint": record["sha256"]["final_weights"],
        }

    def _run(self, framework: str, overrides: list[str]):
        """`./run.sh FRAMEWORK`: how it ended, and its experiment.json, times.json and metrics.jsonl if well."""
        own, data = self.workspace / f"{config.NAME}.yaml", Path(self.config.output.data_path).resolve()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if own.exists():
                shutil.copy(own, self.folder)
            done = run_sh(framework, self.folder, *self.overrides, *overrides, f"output.data_path={quoted(str(data))}")
            if done.returncode:
                return done, {}, {}, []
            (left,) = (self.folder / "outputs" / framework).iterdir()
            read = {name: json.loads((left / name).read_text()) for name in ("experiment.json", times.NAME)}
            metrics = [json.loads(line) for line in (left / "metrics.jsonl").read_text().splitlines()]
            return done, read["experiment.json"], read[times.NAME], metrics
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _baseline(self, cell: Cell) -> dict[str, Any]:
        data = Path(self.config.output.data_path).resolve()
        done = self._python(
            cell.framework, cell.threads, "-m", f"benchmarks.{cell.numerics}_{cell.framework}", str(data),
            f"--batch-size={cell.batch_size}", f"--steps={BASELINES[cell.numerics]}", f"--threads={cell.threads}",
        )  # fmt: skip
        if done.returncode:
            return {"status": FAILED, "error": said_of(done)}
        measured = json.loads(done.stdout.splitlines()[-1])
        keys = ("seconds_per_epoch", "first_epoch", "peak_memory", "fingerprint", "version", "window")
        own = {"startup": None, "first_step": measured["moments"].get("stepped"), "compile_cache": {}}
        return {"status": DONE} | own | {key: measured[key] for key in keys}

    def bare_import(self, framework: str) -> float | None:
        """Seconds that the framework's own `import` takes in a fresh process; None where it fails."""
        code = f"import time; t = time.perf_counter(); import {MODULES[framework]}; print(time.perf_counter() - t)"
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
    """What makes a run one of this cell; a train.yaml may lack any of these keys."""
    params = {"numerics": cell.numerics, "device": cell.device, "batch_size_train": cell.batch_size,
              "threads": cell.threads}  # fmt: skip
    return [*(f"++params.{key}={value}" for key, value in params.items()), f"++data.train_samples={cell.train_samples}"]
