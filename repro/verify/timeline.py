"""The course of a run: its processes, epochs and files over the steps."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import UNSET

from repro.compare.alignment import align
from repro.record.lines import Process, processes
from repro.structs import Integer, Struct
from repro.text import escaped
from repro.verify.coverage import epochs

MOST = 500  # marks of a kind in one part
NAMES = 20  # of files at one step
FOLDER = "run"  # of a run's own, in its folder


class Files(Struct):
    """Files that were last written after a step."""

    step: Integer
    names: list[str]


class TimelinePart(Struct):
    """One process of a run. Its steps are counted on from those that it went on from."""

    after: Integer
    """The step that it went on after; 0 at the beginning."""
    last: Integer
    epochs: list[Integer]
    """The first step of each pass through the data of a loader."""
    files: list[Files]


def parts(folder: Path, wrote: Iterable[str] = ()) -> list[TimelinePart]:
    """The processes of a run in its folder: that of `record/`, and those that went on, one after another."""
    trained = [one for one in map(_first, _records(folder)) if one is not None]
    offsets = [0] * len(trained)
    for number in range(1, len(trained)):
        process = trained[number]  # of a script that calls repro.watch, which may count on
        after = align(trained[number - 1], process, resumed=True).after
        offsets[number] = 0 if process.begun else offsets[number - 1] + after
    begins = [min(_times(one)[0], default=0.0) for one in trained]
    written = _written(folder / FOLDER, wrote)
    parts = []
    for number, (process, offset) in enumerate(zip(trained, offsets, strict=True)):
        until = begins[number + 1] if number + 1 < len(begins) else float("inf")
        own = {name: time for name, time in written.items() if time < until}
        files = [Files(step=step + offset, names=names[:NAMES]) for step, names in _after(process, own)]
        begun = [step + offset for step in epochs(process) or []][:MOST]
        parts.append(
            TimelinePart(after=max(offset, process.begun), last=process.last + offset, epochs=begun, files=files[:MOST])
        )
    return parts


def _records(folder: Path) -> Iterator[Path]:
    """The records of a run that was stopped and resumed so many times."""
    names = ["record", "resumed", *(f"resumed-{number}" for number in range(2, 100))]
    for name in names:
        if not (folder / name).is_dir():
            return
        yield folder / name


def _first(record: Path) -> Process | None:
    return next((process for process in processes(record) if process.steps), None)


def _times(process: Process) -> tuple[list[float], list[int]]:
    """The times at which steps were written down, and their numbers."""
    known = [(line.time, step) for step, line in sorted(process.lines.items()) if line.time is not UNSET]
    return [time for time, _ in known], [step for _, step in known]


def _written(run: Path, wrote: Iterable[str]) -> dict[str, float]:
    """The time at which each file was last written."""
    inside = [path for path in sorted(run.rglob("*")) if path.is_file()]
    paths = {escaped(str(path.relative_to(run))): path for path in inside}
    paths |= {escaped(Path(name).name): Path(name) for name in wrote}
    times = {}
    for name, path in paths.items():
        try:
            times[name] = path.stat().st_mtime
        except OSError:  # it was removed, or moved
            continue
    return times


def steps_of_files(process: Process, run: Path) -> dict[str, int]:
    """The step after which each file in the folder of a run was last written; none of those from before step 1."""
    return _steps_of(process, _written(run, ()))


def _after(process: Process, written: dict[str, float]) -> list[tuple[int, list[str]]]:
    """The files that were last written after each step, and before the next one."""
    files: dict[int, list[str]] = {}
    for name, step in _steps_of(process, written).items():
        files.setdefault(step, []).append(name)
    return sorted(files.items())


def _steps_of(process: Process, written: dict[str, float]) -> dict[str, int]:
    times, steps = _times(process)
    places = {name: bisect_right(times, time) for name, time in written.items()}
    return {name: steps[place - 1] for name, place in places.items() if place}
