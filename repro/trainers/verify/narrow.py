"""Reruns of trainer runs, for `compare --narrow`.

The steps in which two runs diverge are taken one by one, to name the first operation that differs.
"""

import tempfile
from dataclasses import fields
from pathlib import Path

from repro.compare import variables
from repro.compare.difference import Difference
from repro.compare.distance import relative
from repro.errors import ReproError, UsageError
from repro.fingerprint import fingerprint
from repro.frameworks import FRAMEWORKS
from repro.machine.facts import ROOT
from repro.trainers.loop import trace
from repro.trainers.loop.call import quoted, run_sh
from repro.trainers.loop.config import Params
from repro.trainers.verify.recorded import TrainerRun, read


def narrow(a: TrainerRun, b: TrainerRun, found: Difference) -> str:
    """With which operation a difference begins, in words. ReproError where that cannot be asked.

    Both run again from the last equal traced state to the first different one.

    Each side runs as it was recorded: its framework, its configuration, its threads. It has to give its own recorded
    bits again here; if it does not, what differs is this machine, and nothing can be said of the operation.
    """
    if found.equal_before is None or found.step is None:
        raise ReproError(
            f"compare: --narrow needs a step after which both runs are equal; they differ from step {found.step} on"
        )
    with tempfile.TemporaryDirectory(prefix="repro-narrow-") as scratch:
        steps = found.equal_before, found.step
        return _first(_rerun(a, *steps, Path(scratch) / "a"), _rerun(b, *steps, Path(scratch) / "b"), found)


def _rerun(run: TrainerRun, start: int, step: int, workspace: Path) -> TrainerRun:
    """One side again from a step to another, with a trace of every operation."""
    task = run.experiment["task"]
    if task not in FRAMEWORKS:
        raise UsageError(f"compare: --narrow cannot run {run.path} again: {task!r} is none of {', '.join(FRAMEWORKS)}")
    if start not in run.states:
        raise ReproError(
            f"compare: --narrow needs the state of {run.path} after step {start}; run it with params.trace_steps"
        )
    workspace.mkdir()
    done = run_sh(
        task,
        workspace,
        *_recorded(run),
        f"params.resume={quoted(str(run.states[start]))}",
        f"params.max_steps={step}",
        "params.trace_steps=1",
        "params.trace_operations=true",
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no word"])[-1].removeprefix("error: ")
        raise ReproError(f"compare: {run.path} cannot be rerun here: {said}")
    (folder,) = (workspace / "outputs" / task).iterdir()
    again = read(folder)
    recorded = run.trace.tensors.get(step)
    if recorded is not None and again.trace.tensors[step] != recorded:
        raise ReproError(
            f"compare: {run.path} does not give its own bits again on this machine; "
            "run compare --narrow on the machine where it was made"
        )
    return again


def _recorded(run: TrainerRun) -> list[str]:
    """The overrides that make a run what experiment.json says it was; the data are where this machine has them.

    UsageError for what a stranger may have written there to have another thing done than to train.
    """
    settings = {"environment": {}, "output": {}} | run.experiment["config"]
    params = settings["params"] | {"device": run.experiment["framework"].get("device"), "checkpoint_steps": None}
    known = {field.name for field in fields(Params)}
    unknown = [f"params.{key}" for key, value in params.items() if key not in known or isinstance(value, (dict, list))]
    unknown += [f"environment.{name}" for name in variables.left_out(settings["environment"], {})]
    if unknown:
        raise UsageError(
            f"compare: --narrow cannot run {run.path} again with its {unknown[0]}, which can do more than steer numerics, or is of another version"
        )
    overrides = [
        f"params.{key}={'null' if value is None else quoted(value) if isinstance(value, str) else value}"
        for key, value in params.items()
        if key not in ("resume", "max_steps", "trace_steps", "trace_operations")
    ]
    overrides += [f"data.dataset={quoted(str(settings['data'].get('dataset')))}"]
    overrides += [f"++environment.{name}={quoted(value)}" for name, value in settings["environment"].items()]
    places = [Path(str(settings["output"].get("data_path"))), run.path.parents[2] / "data", ROOT / "workspace" / "data"]
    data = next((place for place in places if place.is_dir()), places[0])
    return [*overrides, f"output.data_path={quoted(str(data))}"]


def _first(a: TrainerRun, b: TrainerRun, found: Difference) -> str:
    """The first operation whose result differs in two reruns."""
    for step in sorted(a.trace.operations.keys() & b.trace.operations.keys()):
        ours, theirs = (trace.operations(run.path, run.trace, step) for run in (a, b))
        for name, array in ours.items():
            if name not in theirs or fingerprint({"": array}) != fingerprint({"": theirs[name]}):
                both = name in theirs and array.shape == theirs[name].shape
                return _begin(step, name, relative(array, theirs[name]) if both else None)
        if a.trace.tensors[step] != b.trace.tensors[step]:
            other = next(n for n, f in a.trace.tensors[step].items() if b.trace.tensors[step].get(n) != f)
            return _begin(step, f"the update of {other}, after equal gradients")
    raise ReproError(
        f"compare: the reruns are equal up to step {found.step}: the difference disappears while single operations are observed"
    )


def _begin(step: int, operation: str, size: float | None = None) -> str:
    """`size`: the L2 norm of the difference over that of the first; None where the reruns do not hold both."""
    return f"in step {step}, with {operation}" + ("" if size is None else f": relative difference {size:.1e}")
