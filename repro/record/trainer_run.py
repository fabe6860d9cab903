"""A run of a trainer, as a record.

What the folder of a run holds of each step: experiment.json, metrics.jsonl, the trace, checkpoints.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repro.errors import ReproError, UsageError
from repro.fingerprint import fingerprint
from repro.record.record import STARTS, Content, Hashes, Process, Record
from repro.run import checkpoint, layout, trace
from repro.run.config import TRAIN_SAMPLES
from repro.run.trace import Recorded

EXPERIMENT, METRICS = "experiment.json", "metrics.jsonl"
ALL = "weights"  # the name of a fingerprint of all weights together, which each row of metrics.jsonl has

# The keys of the configuration that say what is trained; how and where (threads, device) are facts about a machine.
TRAINED = (
    "params.seed",
    "params.model",
    "params.batch_size_train",
    "params.optimizer",
    "params.learning_rate",
    "params.momentum",
    "params.numerics",
    "data.dataset",
    "data.train_samples",
)


@dataclass
class Run(Record):
    """What a training run left, read and checked."""

    metrics: list[dict[str, Any]]
    trace: Recorded
    states: dict[int, Path]
    """By step: a checkpoint of the state after it, from the trace or from the workspace's `model` folder."""

    @property
    def experiment(self) -> dict[str, Any]:
        """As in experiment.json."""
        return self.facts

    def arrays(self, of: Process, step: int, channel: str) -> dict[str, np.ndarray]:
        """From the state after the step, where one was kept."""
        if of not in self.processes or step not in self.states:
            return {}
        state = checkpoint.load(self.states[step]).state
        return {name: array for name, array in state.items() if layout.is_weight(name) != (channel == "optimizer")}


def read(path: Path) -> Run:
    """The run in a folder. UsageError if it holds none, ReproError if its files contradict one another."""
    if not (path / EXPERIMENT).is_file():
        raise UsageError(
            f"compare: {path} is no run's folder: no {EXPERIMENT} in it; name one as DIR/outputs/TASK/TIME"
        )
    try:
        experiment = json.loads((path / EXPERIMENT).read_text())
        final = experiment["sha256"]["final_weights"]
        experiment["config"]["params"]["seed"], experiment["task"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ReproError(
            f"compare: {path / EXPERIMENT} cannot be read ({type(error).__name__}: {error}); copy it anew"
        ) from None
    try:
        metrics = [json.loads(line) for line in (path / METRICS).read_text().splitlines()]
        fingerprints = {int(row["step"]): str(row["fingerprint"]) for row in metrics}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ReproError(
            f"compare: {path / METRICS} cannot be read ({type(error).__name__}: {error}); copy it anew"
        ) from None
    recorded = trace.read(path)
    states = _checkpoints(path, experiment["task"]) | recorded.states
    if final is not None and metrics and fingerprints[max(fingerprints)] != final:
        raise ReproError(
            f"compare: {path}: the last fingerprint in {METRICS} is not that in {EXPERIMENT}; one of them was changed"
        )
    for step, state in states.items():
        if step in fingerprints and fingerprint(_weights(state)) != fingerprints[step]:
            raise ReproError(
                f"compare: {path / METRICS}: the fingerprint at step {step} is not that of the checkpoint {state}; "
                "one of them was changed"
            )
    untraced = {step: state for step, state in states.items() if step not in recorded.tensors}
    process = Process("", steps=_steps(recorded.tensors | _kept(untraced), fingerprints), sampled=True)
    last = fingerprints[max(fingerprints)] if fingerprints else None
    content = Content(
        schema=0,
        command=[],
        folder=str(path),
        started="",
        seconds=0.0,
        exit_code=0,
        every=1,
        facts=experiment,
        processes=[],
        outputs={},
        notes=[],
        fingerprint=last,
    )
    return Run(path, content, [process], metrics, recorded, states)


def _kept(states: dict[int, Path]) -> dict[int, dict[str, str]]:
    """By step of which a state was kept, the fingerprint of each of its tensors."""
    loaded = {step: checkpoint.load(path).state for step, path in states.items()}
    return {step: {name: fingerprint({name: array}) for name, array in state.items()} for step, state in loaded.items()}


def _steps(traced: dict[int, dict[str, str]], fingerprints: dict[int, str]) -> dict[int, Hashes]:
    """By step, the hashes of what was traced or kept, and of all weights together."""
    found: dict[int, Hashes] = {}
    for step in sorted(traced.keys() | fingerprints.keys()):
        tensors = traced.get(step, {}).items()
        weights = {name: code for name, code in tensors if layout.is_weight(name)}
        slots = {name: code for name, code in tensors if not layout.is_weight(name)}
        together = {ALL: fingerprints[step]} if step in fingerprints else {}
        found[step] = {"optimizer": slots, STARTS if step == 0 else "weights": weights | together}
    return found


def _checkpoints(path: Path, task: str) -> dict[int, Path]:
    """The run's own checkpoints in its workspace's `model` folder, as far as they are there."""
    found = {}
    for file in sorted((path.parents[2] / "model" / task).glob("epoch_*.safetensors")) if len(path.parents) > 2 else []:
        record = checkpoint.load(file).record
        if record.run == path.name:
            found[record.step] = file
    return found


def _weights(state: Path) -> dict[str, np.ndarray]:
    return layout.weights_of(checkpoint.load(state).state)


def check_comparable(a: Run, b: Run) -> None:
    """UsageError that names the keys if two runs do not train the same thing."""
    other = []
    for key in TRAINED:
        was, now = (_setting(run, key) for run in (a, b))
        if key == "params.momentum" and a.experiment["config"]["params"]["optimizer"] != "sgd":
            continue
        if was != now:
            other.append(f"{key}: {was} and {now}")
    if other:
        raise UsageError(
            f"compare: the two runs train different things ({'; '.join(other)}); compare runs of one configuration"
        )


def _setting(run: Run, key: str) -> Any:
    """A key of a run's configuration; runs that knew no data.train_samples took them all."""
    section, name = key.split(".")
    return run.experiment["config"].get(section, {}).get(name, TRAIN_SAMPLES if name == "train_samples" else None)


def other_losses(a: Run, b: Run) -> str | None:
    """Which loss that training reported is the first with other bits, in words; None where all are the same."""
    for step in sorted(a.trace.losses.keys() & b.trace.losses.keys()):
        if a.trace.losses[step] != b.trace.losses[step]:
            x, y = (trace.loss_of(run.trace.losses[step]) for run in (a, b))
            return f"other bits from step {step}: {x:.9g} and {y:.9g}"
    return None
