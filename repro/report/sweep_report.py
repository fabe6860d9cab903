"""Result of a sweep, as tables.

Accuracy over seeds, time, fingerprints, and whether runs that must agree do.
"""

import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from rich.console import Console
from rich.text import Text

from repro import files
from repro.console import wide_console
from repro.errors import ReproError, UsageError
from repro.files import write_atomically, write_json
from repro.report import markdown as md
from repro.report.findings import FRAMEWORK_TITLES
from repro.report.speed_tables import Table, show_table
from repro.structs import Integer, Number, Struct, converted
from repro.text import printable, printable_lines, short
from repro.trainers.loop import config
from repro.trainers.loop.config import Config, Data, Params
from repro.verify.experiment import Experiment

RUN, LOG = "run", "run.log"

T = TypeVar("T")


class SweepRun(Struct):
    """A run of a sweep."""

    number: str
    overrides: list[str]
    error: str | None
    """Its last words, where it failed."""


class DoneRun(SweepRun):
    """A run that ended well."""

    task: str
    numerics: str
    seed: int
    deciding: dict[str, Any]
    """The configuration that decides its bits."""
    steps: int
    fingerprint: str
    accuracy: float
    loss: float
    seconds: float


class SweepMetrics(Struct):
    """A line of metrics.jsonl, as far as it is read."""

    step: Integer
    test_accuracy: Number
    test_loss: float
    train_seconds: Number
    test_seconds: Number


class Sweep(Struct):
    """The content of sweep.json."""

    runs: list[SweepRun]
    agree: list[list[str]]
    """The numbers of runs that must end with one fingerprint, and do."""
    disagree: list[list[str]]

    @property
    def failed(self) -> list[str]:
        """The numbers of the runs that failed."""
        return [run.number for run in self.runs if run.error is not None]


def report(target: Path, folder: Path) -> Sweep:
    """Writes TARGET/sweep.{md,json} of a sweep's folder, and prints the tables."""
    sweep = build(read(folder))
    target.mkdir(parents=True, exist_ok=True)
    write_json(target / "sweep.json", msgspec.to_builtins(sweep))
    write_atomically(target / "sweep.md", markdown(sweep).encode())
    show(sweep, wide_console())
    print(printable(f"report in {target / 'sweep.md'}"), file=sys.stderr)
    return sweep


def read(folder: Path) -> list[SweepRun]:
    """The runs of a sweep, in their order. UsageError where there are none, ReproError where one cannot be read."""
    runs = (place for place in folder.iterdir() if os.path.lexists(place / LOG))
    places = sorted(runs, key=lambda place: (len(place.name), place.name))
    if not places:
        raise UsageError(
            f"report: {folder} is not the folder of a sweep: it has no */{LOG}; name DIR/outputs/sweep/TIME"
        )
    try:
        return [_run(place) for place in places]
    except (OSError, ValueError) as error:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        raise ReproError(f"report: {folder} holds a run that cannot be read ({why}); leave it out") from None


def _run(place: Path) -> SweepRun:
    number = printable(place.name)
    given = converted(files.read_yaml(place / ".hydra" / "overrides.yaml"), list[str])
    overrides = [key.removeprefix("+") for key in given if not key.startswith("+sif=")]
    path = place / RUN / "experiment.json"
    record = converted(files.read_json(path), Experiment) if os.path.lexists(path) else None
    if record is None or record.sha256.final_weights is None:
        log = printable_lines(files.read(place / LOG).decode(errors="replace")).strip().splitlines()
        return SweepRun(number, overrides, log[-1] if log else "its log is empty")
    if record.task not in FRAMEWORK_TITLES:
        raise ValueError(f"{record.task!r} is none of {', '.join(FRAMEWORK_TITLES)}")
    params, data = converted(record.config.params, Params), record.config.data
    # deciding() may leave these out
    always = {"params.ranks": params.ranks, "data.train_samples": data.train_samples}
    configured = Config(params, Data(data.dataset), environment=record.config.environment)
    rows = [converted(files.parsed(line), SweepMetrics) for line in files.read_lines(place / RUN / "metrics.jsonl")]
    if not rows:
        raise ValueError(f"run {number} has no line in its metrics.jsonl")
    return DoneRun(
        number=number,
        overrides=overrides,
        error=None,
        task=record.task,
        numerics=params.numerics,
        seed=params.seed,
        deciding=config.deciding(configured, record.framework.device) | always,
        steps=rows[-1].step,
        fingerprint=record.sha256.final_weights,
        accuracy=rows[-1].test_accuracy,
        loss=rows[-1].test_loss,
        seconds=sum(row.train_seconds + row.test_seconds for row in rows),
    )


def build(runs: list[SweepRun]) -> Sweep:
    """The runs, and whether those that must agree do."""
    sweep = Sweep(runs, [], [])
    for members in _by(_done(runs), _identity):
        if len(members) > 1 and members[0].numerics != "fast":
            is_one = len({run.fingerprint for run in members}) == 1
            (sweep.agree if is_one else sweep.disagree).append([run.number for run in members])
    return sweep


def _done(runs: list[SweepRun]) -> list[DoneRun]:
    return [run for run in runs if isinstance(run, DoneRun)]


def _by(runs: list[DoneRun], key: Callable[[DoneRun], T]) -> list[list[DoneRun]]:
    groups: dict[T, list[DoneRun]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.values())


def _key(run: DoneRun, without: str = "") -> str:
    deciding = {key: value for key, value in run.deciding.items() if key != without}
    return json.dumps([run.steps, deciding], sort_keys=True)


def _identity(run: DoneRun) -> str:
    """The key of runs that promise the same bits: in portable, neither framework nor number of ranks is part of it."""
    return _key(run, without="params.ranks") if run.numerics == "portable" else f"{run.task} {_key(run)}"


def _what(run: DoneRun, done: list[DoneRun]) -> str:
    """The keys, besides seed and numerics, in which runs differ: `params.learning_rate=0.1`."""
    own = {key: value for key, value in run.deciding.items() if key not in ("params.seed", "params.numerics")}
    varied = sorted(key for key in own if any(other.deciding.get(key, own[key]) != own[key] for other in done))
    return " ".join(f"{key}={own[key]}" for key in varied)


def verdict(sweep: Sweep) -> str:
    """Sentences on failures and agreement, the worst first."""
    agree = "; ".join(", ".join(numbers) for numbers in sweep.agree)
    sentences = [f"Runs {', '.join(numbers)} must agree, and differ." for numbers in sweep.disagree]
    if sweep.failed:
        sentences.insert(0, f"{len(sweep.failed)} of {len(sweep.runs)} runs failed: {', '.join(sweep.failed)}.")
    if agree:
        sentences.append(f"Runs that must agree do, to the bit: {agree}.")
    elif not sweep.disagree:
        sentences.append("No two runs promise the same bits, so none were compared.")
    return " ".join(sentences)


def tables(sweep: Sweep) -> list[Table]:
    """Tables of accuracy over the runs that differ in the seed alone, and of all runs."""
    common = set.intersection(*(set(run.overrides) for run in sweep.runs))
    done = _done(sweep.runs)
    groups = _by(done, lambda run: (run.task, _key(run, without="params.seed")))
    over = ["Framework", "Numerics", "With", "Steps", "Seeds", "Mean %", "Deviation", "Range", "Median s"]
    each = ["Run", "Of", "Result", "Accuracy %", "Seconds", "Fingerprint"]
    return [
        Table("Accuracy over seeds, and time", "", over, [_group_row(members, done) for members in groups]),
        Table(f"Runs {' '.join(sorted(common))}".strip(), "", each, [_run_row(run, common) for run in sweep.runs]),
    ]


def _group_row(members: list[DoneRun], done: list[DoneRun]) -> list[str]:
    """A row with mean and spread. A run that was made twice counts once: it is no second sample."""
    first, accuracies = members[0], list({run.seed: 100 * run.accuracy for run in members}.values())
    return [
        FRAMEWORK_TITLES[first.task],
        first.numerics,
        _what(first, done),
        str(first.steps),
        str(len(accuracies)),
        f"{statistics.fmean(accuracies):.2f}",
        f"{statistics.stdev(accuracies):.2f}" if len(accuracies) > 1 else "",
        f"{min(accuracies):.2f} to {max(accuracies):.2f}",
        f"{statistics.median(run.seconds for run in members):.1f}",
    ]


def _run_row(run: SweepRun, common: set[str]) -> list[str]:
    which = [run.number, " ".join(key for key in run.overrides if key not in common)]
    if isinstance(run, DoneRun):
        return [*which, "done", f"{100 * run.accuracy:.2f}", f"{run.seconds:.1f}", short(run.fingerprint)]
    return [*which, str(run.error), "", "", ""]


def markdown(sweep: Sweep) -> str:
    """The report for places that show Markdown."""
    lines = ["# A sweep", "", verdict(sweep)]
    for table in tables(sweep):
        lines += ["", f"## {table.title}", "", *md.table(table.head, table.rows)]
    return "\n".join([*lines, ""])


def show(sweep: Sweep, console: Console) -> None:
    """Prints the tables."""
    for table in tables(sweep):
        show_table(table, console)
    console.print(Text(verdict(sweep)))
