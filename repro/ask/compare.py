"""Where two runs part: their folders, from whatever machines -> the first step and tensor that differ, and why."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from repro.ask.facts import Cause, causes
from repro.errors import ReproError, UsageError
from repro.fingerprint import fingerprint
from repro.run import checkpoint, layout, trace
from repro.run.config import TRAIN_SAMPLES
from repro.run.trace import Recorded

EXPERIMENT, METRICS = "experiment.json", "metrics.jsonl"

# The keys of the configuration that say what is trained; how and where (threads, device) are facts about a machine.
TRAINED = ("params.seed", "params.model", "params.batch_size_train", "params.optimizer", "params.learning_rate",
           "params.momentum", "params.numerics", "data.dataset", "data.train_samples")  # fmt: skip


@dataclass
class RunFolder:
    """What a training run left, read and checked."""

    path: Path
    experiment: dict[str, Any]
    metrics: list[dict[str, Any]]
    trace: Recorded
    states: dict[int, Path]
    """By step: a checkpoint of the state after it, from the trace or from the workspace's `model` folder."""

    @property
    def last_step(self) -> int:
        return int(self.metrics[-1]["step"]) if self.metrics else max(self.trace.tensors, default=0)

    def weights(self) -> dict[int, str]:
        """By step: the fingerprint of all weights after it."""
        return {int(row["step"]): row["fingerprint"] for row in self.metrics}


@dataclass
class Difference:
    """The first difference of two runs, by the steps at which both were written down."""

    epoch: int
    step: int
    """The first step after which something was seen to differ."""
    last_equal_step: int | None
    loss_step: int | None
    """The first step whose loss has other bits, where both runs were traced."""
    tensor: str | None = None
    """The first of the network's tensors to differ at `step`; None where no state was kept."""
    tensors: list[str] = field(default_factory=list)
    elements: int | None = None
    size: int | None = None
    ulps: int | None = None
    """The largest distance of two elements of the tensor, in units in the last place."""
    relative: float | None = None
    """The norm of the tensors' difference over the norm of the first, L2."""
    growth: list[dict[str, float]] = field(default_factory=list)
    """From `last_equal_step` on: step, and relative and ulps over all weights, or over the test loss."""
    causes: list[Cause] = field(default_factory=list)
    """Recorded facts in which the runs differ, most likely cause first."""
    only_losses: bool = False
    """The weights are the same; what training reported of them is not."""
    operation: str | None = None
    """Where it starts; `compare --narrow` finds it."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read(path: Path) -> RunFolder:
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
    found = RunFolder(path, experiment, metrics, recorded, _checkpoints(path, experiment["task"]) | recorded.states)
    if final is not None and metrics and fingerprints[found.last_step] != final:
        raise ReproError(
            f"compare: {path}: the last fingerprint in {METRICS} is not that in {EXPERIMENT}; one of them was changed"
        )
    for step, state in found.states.items():
        if step in fingerprints and fingerprint(_weights(state)) != fingerprints[step]:
            raise ReproError(
                f"compare: {path / METRICS}: the fingerprint at step {step} is not that of the checkpoint {state}; "
                "one of them was changed"
            )
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


def check_comparable(a: RunFolder, b: RunFolder) -> None:
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


def _setting(run: RunFolder, key: str) -> Any:
    """A key of a run's configuration; runs that knew no data.train_samples took them all."""
    section, name = key.split(".")
    return run.experiment["config"].get(section, {}).get(name, TRAIN_SAMPLES if name == "train_samples" else None)


def first_difference(a: RunFolder, b: RunFolder) -> Difference | None:
    """Where two runs part, or None where all that both wrote down is equal. UsageError if they share no step."""
    steps = sorted(_seen(a) & _seen(b))
    losses = sorted(a.trace.losses.keys() & b.trace.losses.keys())
    if not steps:
        raise UsageError(
            f"compare: {a.path} and {b.path} have no step in common; run both with the same params.max_steps or "
            "params.trace_steps"
        )
    different = next((step for step in steps if not _equal(a, b, step)), None)
    loss_step = next((step for step in losses if a.trace.losses[step] != b.trace.losses[step]), None)
    if different is None and loss_step is None:
        return None
    only_losses = different is None
    different = loss_step if different is None else different
    assert different is not None
    per_epoch = math.ceil(_setting(a, "data.train_samples") / _setting(a, "params.batch_size_train"))
    before = [step for step in steps if step < different]
    found = Difference(
        epoch=(max(different, 1) - 1) // per_epoch + 1,
        step=different,
        last_equal_step=before[-1] if before else None,
        loss_step=loss_step,
        only_losses=only_losses,
        causes=causes(a.experiment, b.experiment),
    )
    _measure(found, a, b)
    return found


def _seen(run: RunFolder) -> set[int]:
    return run.trace.tensors.keys() | run.weights().keys()


def _equal(a: RunFolder, b: RunFolder, step: int) -> bool:
    for kind in (lambda run: run.trace.tensors, RunFolder.weights):
        if step in kind(a) and step in kind(b) and kind(a)[step] != kind(b)[step]:
            return False
    return True


def _measure(found: Difference, a: RunFolder, b: RunFolder) -> None:
    """Adds which tensor, by how much, and how it grows, as far as states were kept."""
    for step in sorted(a.states.keys() & b.states.keys()):
        if step < (found.last_equal_step or 0):
            continue
        ours, theirs = _state(a, step), _state(b, step)
        other = [name for name in ours if name in theirs and not _same(ours[name], theirs[name])]
        if step == found.step and other:
            found.tensors, found.tensor = other, other[0]
            x, y = ours[other[0]], theirs[other[0]]
            found.elements, found.size = int((x.view(np.uint32) != y.view(np.uint32)).sum()), x.size
            found.ulps, found.relative = ulps(x, y), relative(x, y)
        weights = [
            np.concatenate([state[name].ravel() for name in layout.weights_of(state)]) for state in (ours, theirs)
        ]
        found.growth.append({"step": step, "relative": relative(*weights), "ulps": ulps(*weights)})
    if not found.growth:  # no states, but the epochs' test losses
        theirs_by_step = {row["step"]: row for row in b.metrics}
        for row in a.metrics:
            if row["step"] in theirs_by_step and row["step"] >= (found.last_equal_step or 0):
                x, y = np.array(row["test_loss"]), np.array(theirs_by_step[row["step"]]["test_loss"])
                found.growth.append({"step": row["step"], "relative": relative(x, y)})


def _state(run: RunFolder, step: int) -> dict[str, np.ndarray]:
    """Weights first, in the network's order, then the optimizer's slots."""
    state = checkpoint.load(run.states[step]).state
    return layout.weights_of(state) | dict(sorted(state.items()))


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return fingerprint({"": x}) == fingerprint({"": y})


def ulps(x: np.ndarray, y: np.ndarray) -> int:
    """The largest distance of two elements of float32 arrays, in units in the last place: how many float32 lie between.

    The bits of a float32, read as an integer, order as the magnitudes do; a negative one counts downwards from zero.
    """
    ordered = []
    for array in (x, y):
        bits = np.ascontiguousarray(array, np.float32).view(np.int32).astype(np.int64)
        ordered.append(np.where(bits < 0, -(bits & 0x7FFFFFFF), bits))
    return int(np.abs(ordered[0] - ordered[1]).max())


def relative(x: np.ndarray, y: np.ndarray) -> float:
    """The L2 norm of the difference over that of the first; 0 for equal arrays."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    size, apart = float(np.linalg.norm(x)), float(np.linalg.norm(x - y))
    return apart / size if size else apart


def told(a: RunFolder, b: RunFolder, found: Difference | None) -> str:
    """The comparison in words, for a terminal."""
    names = f"A  {_described(a)}\nB  {_described(b)}\n"
    if found is None:
        common = sorted(_seen(a) & _seen(b))
        return (
            f"{names}same: every fingerprint that both wrote down is equal ({len(common)} steps, the last {common[-1]})"
        )
    since = f"equal after step {found.last_equal_step}" if found.last_equal_step is not None else "nothing equal before"
    lines = [f"differs: first seen after step {found.step}, in epoch {found.epoch} ({since})"]
    if found.only_losses:
        lines = [
            "same: every fingerprint of weights that both wrote down is equal; only losses that were reported differ"
        ]
    if found.loss_step is not None:
        x, y = (trace.loss_of(run.trace.losses[found.loss_step]) for run in (a, b))
        lines.append(f"  loss    other bits from step {found.loss_step}: {x:.9g} and {y:.9g}")
    if found.tensor:
        lines.append(
            f"  tensor  {found.tensor}: {found.elements} of {found.size} elements, up to {found.ulps} ulp, "
            f"relative {found.relative:.1e}"
        )
        lines += [f"          also in {', '.join(found.tensors[1:])}"] if found.tensors[1:] else []
    if found.growth:
        grown = (f"step {g['step']}: {g['relative']:.1e}" for g in found.growth)
        lines.append(f"  growth  {', '.join(grown)}")
    if found.operation:
        lines.append(f"  begins  {found.operation}")
    lines.append(
        "  recorded facts that differ, most likely cause first:" if found.causes else "  no recorded fact differs"
    )
    lines += [f"    {cause.fact}: {cause.a} and {cause.b} ({cause.why})" for cause in found.causes[:8]]
    if len(found.causes) > 8:
        lines.append(f"    and {len(found.causes) - 8} more")
    return names + "\n".join(lines)


def _described(run: RunFolder) -> str:
    facts, last = run.experiment["framework"], run.metrics[-1] if run.metrics else None
    end = f"step {last['step']}, {last['fingerprint'][:23]}" if last else "not finished"
    return f"{run.path}: {facts['framework']} {facts['version']} on the {str(facts['device']).upper()}, {end}"
