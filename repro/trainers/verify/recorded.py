"""The folder of a trainer's run, read as a record: experiment.json, metrics.jsonl, the trace, checkpoints."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from repro.compare import comparison
from repro.compare.comparison import Comparison
from repro.compare.difference import first_difference
from repro.errors import ReproError, UsageError
from repro.files import parsed, read_json, read_lines
from repro.fingerprint import fingerprint
from repro.frameworks import FRAMEWORKS
from repro.record.lines import STARTS, Hashes, Process
from repro.record.record import Content, Record
from repro.structs import Fingerprint, Integer, Struct, converted
from repro.text import printable
from repro.trainers.loop import checkpoint, config, layout, trace
from repro.trainers.loop.config import TRAIN_SAMPLES, Config, Params
from repro.trainers.loop.trace import Recorded
from repro.verify.experiment import Experiment

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


class FingerprintRow(Struct):
    """A line of metrics.jsonl, as far as it is read."""

    step: Integer
    fingerprint: Fingerprint


@dataclass
class TrainerRun(Record):
    """The folder of a training run, read and checked."""

    trace: Recorded
    states: dict[int, Path]
    """By step: a checkpoint of the state after it, from the trace or from the workspace's `model` folder."""

    @property
    def experiment(self) -> dict[str, Any]:
        """The content of experiment.json."""
        return self.facts

    def arrays(self, of: Process, step: int, channel: str, *_others: Record) -> dict[str, np.ndarray]:
        """From the state after the step, where one was kept."""
        if of not in self.processes or step not in self.states:
            return {}
        state = checkpoint.load(self.states[step]).state
        return {name: array for name, array in state.items() if layout.is_weight(name) != (channel == "optimizer")}


def read(path: Path) -> TrainerRun:
    """The run in a folder. UsageError if it holds none, ReproError if its files contradict one another."""
    if not os.path.lexists(path / EXPERIMENT):
        raise UsageError(
            f"compare: {path} is not the folder of a run: no {EXPERIMENT} in it; name one as DIR/outputs/TASK/TIME"
        )
    try:
        content = read_json(path / EXPERIMENT)
        known = converted(content, Experiment)
        if known.task not in FRAMEWORKS:  # it names a folder of checkpoints
            raise ValueError(f"{known.task!r} is none of {', '.join(FRAMEWORKS)}")
    except (OSError, ValueError) as error:
        raise _unreadable(path / EXPERIMENT, error) from None
    try:
        fingerprints = {row.step: row.fingerprint for row in _metrics(path / METRICS)}
    except (OSError, ValueError) as error:
        raise _unreadable(path / METRICS, error) from None
    experiment, final = printable(content), known.sha256.final_weights
    recorded = trace.read(path)
    states = _checkpoints(path, known.task) | recorded.states
    if final is not None and fingerprints and fingerprints[max(fingerprints)] != final:
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
    made = Content(
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
    return TrainerRun(path, made, [process], recorded, states)


def _unreadable(file: Path, error: Exception) -> ReproError:
    why = error.strerror if isinstance(error, OSError) else error
    return ReproError(f"compare: {file} cannot be read ({why}); copy it again")


def _metrics(file: Path) -> Iterator[FingerprintRow]:
    """OSError where it cannot be read, ValueError for a line that is none of a run."""
    for line in read_lines(file):
        yield converted(parsed(line), FingerprintRow)


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
    for file in checkpoint.paths(path.parents[2] / "model" / task) if len(path.parents) > 2 else []:
        record = checkpoint.load(file).record
        if record.run == path.name:
            found[record.step] = file
    return found


def _weights(state: Path) -> dict[str, np.ndarray]:
    return layout.weights_of(checkpoint.load(state).state)


def compare(first: Path, second: Path) -> Comparison:
    """Compares what two folders hold: runs of a trainer, or records of a command. UsageError where one is of each."""
    commands = [comparison.place(path) is not None for path in (first, second)]
    if all(commands):
        return comparison.compare(first, second)
    if any(commands):
        read(second if commands[0] else first)  # or it is neither
        raise UsageError(
            "compare: one is a run of a trainer, the other the record of a command; compare two of one kind"
        )
    a, b = read(first), read(second)
    check_comparable(a, b)
    return compared(a, b)


def compared(a: TrainerRun, b: TrainerRun) -> Comparison:
    """All that is known of the first difference of two runs, whatever they train."""
    result = comparison.known(a, b, first_difference(a, b, resumed=False))
    result.losses = other_losses(a, b)
    return result


def check_comparable(a: TrainerRun, b: TrainerRun) -> None:
    """UsageError that names the keys if two runs do not train the same thing."""
    other = []
    for key in TRAINED:
        was, now = (_setting(run, key) for run in (a, b))
        if key == "params.momentum" and _setting(a, "params.optimizer") != "sgd":
            continue
        if was != now:
            other.append(f"{key}: {was} and {now}")
    if other:
        raise UsageError(
            f"compare: the two runs train different things ({'; '.join(other)}); compare runs of one configuration"
        )


def _setting(run: TrainerRun, key: str) -> Any:
    """A key of a run's configuration; runs that knew no data.train_samples took them all."""
    section, name = key.split(".")
    return run.experiment["config"].get(section, {}).get(name, TRAIN_SAMPLES if name == "train_samples" else None)


def other_losses(a: TrainerRun, b: TrainerRun) -> str | None:
    """The first reported loss with other bits, in words; None if all are the same."""
    for step in sorted(a.trace.losses.keys() & b.trace.losses.keys()):
        if a.trace.losses[step] != b.trace.losses[step]:
            x, y = (trace.loss_of(run.trace.losses[step]) for run in (a, b))
            return f"other bits from step {step}: {x:.9g} and {y:.9g}"
    return None


def deciding(trained: Experiment, steps: int) -> dict[str, object]:
    """Settings that decide the bits of a run on a given machine; a key that this version does not know may, so it counts."""
    recorded = trained.config
    names = {key.name for key in fields(Params)}
    params = Params(**{name: value for name, value in recorded.params.items() if name in names})
    configured = Config(params, config.Data(recorded.data.dataset), environment=recorded.environment)
    unknown: dict[str, object] = {
        f"params.{name}": value for name, value in recorded.params.items() if name not in names
    }
    samples = recorded.data.train_samples
    unknown |= {"data.train_samples": samples} if samples != TRAIN_SAMPLES else {}
    return config.deciding(configured, trained.framework.device) | unknown | {"steps": steps}
