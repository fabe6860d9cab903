"""Outputs and metrics of one training of a command, as far as they can be told from those of its other trainings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from repro.compare import metrics
from repro.compare.difference import Difference
from repro.compare.files import Files, add
from repro.record.metric_values import Metric
from repro.record.record import OUTPUTS, Record
from repro.text import RUN, listed
from repro.verify.timeline import FOLDER, steps_of_files
from repro.verify.trainings import Training

NUMBER = re.compile(r"[-_.=]?\d+")


@dataclass
class Parts:
    """What a training of a command and the one alone wrote."""

    ours: Record
    """The training, with its metrics."""
    theirs: Record
    """The one alone, with the metrics that have a counterpart."""
    files: Files = field(default_factory=Files)
    untold: list[str] = field(default_factory=list)
    """Files and metrics of the one alone whose counterpart cannot be told from those of other trainings."""

    def difference(self) -> Difference | None:
        """The first file that differs."""
        inside = next(iter(self.files.differing.values()), None)
        return Difference(None, OUTPUTS, [*self.files.differing], inside=inside) if inside else None

    def __str__(self) -> str:
        """Says what is equal beside the steps, as the end of a line."""
        count = len(self.files.equal) + len(self.files.but_for)
        measured = metrics.said(metrics.compared(self.ours, self.theirs))
        parts = [", ".join([*([f"outputs: {count}"] if count else []), *measured])]
        parts += [f"not told from other trainings: {listed(self.untold)}"] if self.untold else []
        return "".join(f"; {part}" for part in parts if part)


def parts(trainings: Sequence[Training], number: int, alone: Record, folders: tuple[Path, Path]) -> Parts:
    """Finds the counterparts; `folders` are those of the two runs."""
    own = trainings[number]
    values, untold = _metrics(trainings, number, alone)
    names = {metric.name for metric in values}
    result = Parts(
        replace(own.as_record, metrics=values),
        replace(alone, metrics=[metric for metric in alone.metrics if metric.name in names]).without_files(),
        untold=[*dict.fromkeys(untold)],
    )
    _compare_files(result, own, alone, folders)
    return result


def _metrics(trainings: Sequence[Training], number: int, alone: Record) -> tuple[list[Metric], list[str]]:
    """The metrics of a training, and names of those that cannot be told.

    Trainings of as many steps log each as often as the one alone does: its values are those at its place.
    """
    command, alike = trainings[number].command, len({one.last - one.first for one in trainings}) == 1
    one_process = len({id(one.process) for one in trainings}) == 1
    ours, theirs = metrics.by_key(command.metrics), metrics.by_key(alone.metrics)
    values, untold = [], []
    for key, own in theirs.items():
        others, count = ours.get(key, []), len(own)
        if alike and one_process and len(others) == count * len(trainings):
            values += others[number * count : (number + 1) * count]
        else:
            untold.append(key[1])
    return [value for value in values if value.name not in untold], untold


def _compare_files(result: Parts, own: Training, alone: Record, folders: tuple[Path, Path]) -> None:
    """Compares the files of `{run}` that both wrote last after one of their steps: of one name, but for numbers."""
    command = own.command
    after, last = (
        steps_of_files(process, folder / FOLDER)
        for process, folder in zip((own.process, alone.processes[0]), folders, strict=True)
    )
    ours = [name for name in command.files if own.first <= after.get(_in_run(name), 0) <= own.last]
    theirs = [name for name in alone.files if last.get(_in_run(name))]
    for name in sorted(alone.files):
        alike = [other for other in ours if _plain(other) == _plain(name)]
        if sum(_plain(other) == _plain(name) for other in theirs) > 1:
            alike = [other for other in alike if PurePath(other).name == PurePath(name).name]
        if name not in theirs or len(alike) != 1:
            result.untold.append(name)
        elif _digest(command, alike[0]) == _digest(alone, name):
            result.files.equal.append(name)
        else:
            add(result.files, name, command.keys_of(alike[0]), alone.keys_of(name))


def _in_run(name: str) -> str:
    return name.removeprefix(f"{RUN}/")


def _digest(record: Record, name: str) -> str:
    return record.outputs.get(name) or record.written[name].sha256


def _plain(name: str) -> str:
    """A name without the numbers of trainings: without folders that have one, as `trial-3/model.pt` and `model-3.pt`."""
    *folders, file = PurePath(name).parts
    return "/".join([*(folder for folder in folders if not NUMBER.search(folder)), NUMBER.sub("", file)])
