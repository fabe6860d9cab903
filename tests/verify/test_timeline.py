"""The course of a run, from the records in its folder."""

import os
from pathlib import Path

from repro.record import lines
from repro.verify.timeline import parts
from support.commands import Steps, resumed, straight, write


def record(path: Path, steps: Steps, begin: float, epochs: tuple[int, ...] = ()) -> None:
    """A record of which each step was written a second after the one before; passes of two steps begin with `epochs`."""
    write(path, steps)
    (file,) = (path / lines.STEPS).glob("*.jsonl")
    written = []
    for line in file.read_text().splitlines():
        for step in steps:
            number = sum(first <= step for first in epochs)
            samples = f'"samples": {{"0": {{"epoch": {number}, "data": 0, "sampler": "S", "replacement": false, "stream": false, "workers": 0, "size": 2, "indices": null, "rows": null, "drew": []}}}}, '
            head = f'{{"kind": "step", "step": {step}, '
            if line.startswith(head):
                line = f'{head}"time": {begin + step}, {samples * (number > 0)}{line[len(head) :]}'
        written.append(f"{line}\n")
    file.write_text("".join(written))


def touch(path: Path, time: float) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time, time))
    return str(path)


def test_one_process(tmp_path: Path) -> None:
    record(tmp_path / "record", straight(4), 100, (1, 3))
    touch(tmp_path / "run" / "late" / "model.pt", 104.5)
    touch(tmp_path / "run" / "checkpoint.pt", 102)
    touch(tmp_path / "run" / "before.txt", 99)
    log = touch(tmp_path / "elsewhere" / "log.txt", 102.9)
    (part,) = parts(tmp_path, [log, str(tmp_path / "removed.txt")])
    assert (part.after, part.last, part.epochs) == (0, 4, [1, 3])
    assert [(of.step, of.names) for of in part.files] == [(2, ["checkpoint.pt", "log.txt"]), (4, ["late/model.pt"])]


def test_a_run_that_was_stopped_and_went_on_twice(tmp_path: Path) -> None:
    record(tmp_path / "record", {step: seen for step, seen in straight(8).items() if step < 6}, 100)
    record(tmp_path / "resumed", {step: seen for step, seen in resumed(4, 8).items() if step < 4}, 200)
    record(tmp_path / "resumed-2", resumed(6, 8), 300)
    touch(tmp_path / "run" / "first.pt", 103)
    touch(tmp_path / "run" / "last.pt", 302)
    result = parts(tmp_path)
    assert [(part.after, part.last) for part in result] == [(0, 5), (4, 7), (6, 8)]
    assert [[(of.step, of.names) for of in part.files] for part in result] == [
        [(3, ["first.pt"])],
        [],
        [(8, ["last.pt"])],
    ]


def test_a_script_that_counts_on(tmp_path: Path) -> None:
    record(tmp_path / "record", {step: seen for step, seen in straight(8).items() if step < 6}, 100)
    record(tmp_path / "resumed", {step: seen for step, seen in straight(8).items() if step > 4}, 200)
    assert [(part.after, part.last) for part in parts(tmp_path)] == [(0, 5), (4, 8)]


def test_lines_of_an_older_version_have_no_time(tmp_path: Path) -> None:
    write(tmp_path / "record", straight(4))
    touch(tmp_path / "run" / "model.pt", 104)
    (part,) = parts(tmp_path)
    assert (part.last, part.files, part.epochs) == (4, [], [])


def test_nothing_was_recorded(tmp_path: Path) -> None:
    assert parts(tmp_path) == []
