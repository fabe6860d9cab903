"""All that reads files which a stranger may have written, each with a valid example."""

import contextlib
import hashlib
import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from repro import __main__
from repro.containers import mlcube
from repro.errors import ReproError
from repro.record.record import KEPT
from repro.trainers.benchmark import results as benchmarks
from repro.trainers.loop import checkpoint
from repro.trainers.loop.config import Data, Params
from repro.verify import results
from support.commands import sha, straight, write
from support.measurements import benchmark
from support.results_files import results as verified
from support.trainer_runs import Folder, flip

STATE = "epoch_0001_step_000004.safetensors"
UNEXPECTED = "(--debug shows where)"  # the end of an error that nobody thought of


@dataclass(frozen=True)
class Told:
    """The message of a reader about a file, and its exit code."""

    code: int
    text: str


@dataclass(frozen=True)
class Reader:
    """A file that is read, the folder that it lies in, and what reads it."""

    name: str
    file: str
    """Below the folder."""
    make: Callable[[Path], object]
    """Makes the folder."""
    read: Callable[[Path], int]
    """Reads it, as a command does; the exit code."""

    def __call__(self, folder: Path) -> Told:
        """Reads the folder; returns what a terminal gets to see."""
        screen, handlers = io.StringIO(), [*logging.getLogger().handlers]
        try:
            with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
                code = self.read(folder)
        finally:
            logging.getLogger().handlers[:] = handlers
        return Told(code, screen.getvalue())


def command(*words: str) -> Callable[[Path], int]:
    """`repro WORDS`, with the folder in the place of `@`."""
    return lambda folder: __main__.main([word.replace("@", str(folder)) for word in words])


def called(function: Callable[[Path], object]) -> Callable[[Path], int]:
    """A function, called as by a command."""

    def read(folder: Path) -> int:
        try:
            function(folder)
        except ReproError as error:
            return __main__._fail(str(error), error.exit_code)
        return 0

    return read


def sha_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def records(folder: Path) -> None:
    """Two that differ in arrays that were kept, of a command that is there."""
    (folder / "train.py").touch()
    for name, value in (("a", 1.5), ("b", 1.25)):
        array = np.full(3, value, np.float32)
        content = b"float32 3\n" + array.tobytes()
        code = sha_of(content)
        steps = straight(3, gradients={2: code}, weights={3: sha(name)})
        facts = {"versions": {"torch": "2"}, "environment": {"OMP_NUM_THREADS": "1", "PATH": "x"}}
        facts["scripts"] = {"train.py": sha_of(b"")}
        path = write(folder / name, steps, outputs={"o": sha(name)}, facts=facts, folder=str(folder))
        (path / KEPT).mkdir()
        (path / KEPT / "array").write_bytes(content)
        (path / KEPT / code).write_bytes(content)


def trainer_runs(folder: Path) -> None:
    """Two that differ, traced, and the checkpoint of one."""
    made = Folder(folder)
    made.run("a", kept=True, framework={"framework": "JAX", "version": "1", "device": "cpu", "threads": 2})
    made.run("b", {4: flip("conv1.kernel")}, losses={4: 9.0}, framework={"device": "cpu", "threads": 1})


def checkpoints(folder: Path) -> None:
    trainer_runs(folder)
    state = checkpoint.load(folder / "outputs" / "jax" / "a" / "trace" / STATE)
    checkpoint.save(folder / "model", state)


def superseded(folder: Path) -> None:
    """As in a run that only writes: a checkpoint was saved, and others are there."""
    (path,) = (folder / "outputs" / "jax" / "b" / "trace").glob(STATE)
    checkpoint.remove_superseded(folder / "model", path, checkpoint.load(path).record)


def sweep(folder: Path) -> None:
    """One run that was done, and one that failed."""
    for number, final in (("0", f"sha256:{sha(1)}"), ("1", None)):
        place = folder / number
        (place / ".hydra").mkdir(parents=True)
        (place / "run").mkdir()
        (place / ".hydra" / "overrides.yaml").write_text("- +framework=jax\n- params.seed=1\n- +sif='x'\n")
        (place / "run.log").write_text("results in x\nerror: no memory\n")
        row = {"step": 10, "test_accuracy": 0.9, "test_loss": 1.0, "train_seconds": 2.0, "test_seconds": 0.5}
        (place / "run" / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        experiment = {
            "task": "jax",
            "framework": {"device": "cpu"},
            "sha256": {"final_weights": final},
            "config": {"params": vars(Params()), "environment": {}, "data": {"dataset": Data().dataset}},
        }
        (place / "run" / "experiment.json").write_text(json.dumps(experiment))


CUBE = """
name: mnist
platform: {accelerator_count: 0}
docker: {image: "mlcommons/mnist:0.0.1", env_args: {A: b}}
tasks:
  train:
    entrypoint: python train.py
    parameters:
      inputs: {data_dir: data/, config: {type: file, default: train.yaml}}
      outputs: {log_dir: {type: directory, opts: rw}}
"""

COMPARE, NARROW = command("compare", "@/a", "@/b"), command("compare", "@/a", "@/b", "--narrow")
RUNS = command("compare", "@/outputs/jax/a", "@/outputs/jax/b")
REPORT = ("report", "--to", "@/report")
READERS = [
    Reader("record", "a/record.json", records, NARROW),
    Reader("steps", "a/steps/10.jsonl", records, COMPARE),
    Reader(
        "kept", f"a/kept/{sha_of(b'float32 3' + bytes([10]) + np.full(3, 1.5, np.float32).tobytes())}", records, COMPARE
    ),
    Reader("experiment", "outputs/jax/a/experiment.json", trainer_runs, RUNS),
    Reader("metrics", "outputs/jax/a/metrics.jsonl", trainer_runs, RUNS),
    Reader("trace", "outputs/jax/a/trace.jsonl", trainer_runs, RUNS),
    Reader("state", f"outputs/jax/a/trace/{STATE}", trainer_runs, RUNS),
    Reader("last state", "model/jax/epoch_0001_step_000008.safetensors", trainer_runs, RUNS),
    Reader("checkpoint", f"model/{STATE}", checkpoints, called(lambda folder: checkpoint.newest(folder / "model"))),
    Reader("superseded", f"model/{STATE}", checkpoints, called(superseded)),
    Reader(
        "results",
        "results.json",
        lambda folder: results.write(folder / "results.json", verified(broken=("portable", "jax", "workers"))),
        command(*REPORT, "@/results.json"),
    ),
    Reader(
        "benchmark",
        "benchmark.json",
        lambda folder: benchmarks.write(folder / "benchmark.json", benchmark()),
        command(*REPORT, "@/benchmark.json"),
    ),
    Reader("sweep's experiment", "0/run/experiment.json", sweep, command(*REPORT, "@")),
    Reader("sweep's metrics", "0/run/metrics.jsonl", sweep, command(*REPORT, "@")),
    Reader("sweep's overrides", "0/.hydra/overrides.yaml", sweep, command(*REPORT, "@")),
    Reader("sweep's log", "1/run.log", sweep, command(*REPORT, "@")),
    Reader(
        "cube",
        "mlcube.yaml",
        lambda folder: (folder / "mlcube.yaml").write_text(CUBE),
        called(lambda folder: mlcube.read(folder)),
    ),
]
