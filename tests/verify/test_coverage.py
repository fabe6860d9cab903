"""What `same` says that a resumed run did not cover."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from repro.compare.pairs import pairs
from repro.record import record
from repro.verify.coverage import has_windows, uncovered
from support.commands import Steps, resumed, sha, straight, write


def said(
    folder: Path,
    whole: Steps,
    rest: Steps,
    epochs: dict[int, int] | None = None,
    twice: bool = False,
    within: bool = False,
) -> str:
    """`epochs`: by step, the number of its pass through the data."""
    a, b = (record.read(write(folder / name, steps)) for name, steps in (("a", whole), ("b", rest)))
    if epochs is not None:
        lines = {step: SimpleNamespace(samples={"0": SimpleNamespace(epoch=epoch)}) for step, epoch in epochs.items()}
        cast(Any, a.processes[0]).lines = lines
    return uncovered(a, pairs(a, b, True), twice, within)


@pytest.mark.parametrize(
    ("after", "covered"),
    [(1, True), (3, True), (4, False), (6, False)],
    ids=["before", "last step", "at it", "after it"],
)
def test_the_beginning_of_another_epoch(after: int, covered: bool, tmp_path: Path) -> None:
    """Step 5 begins the second of two; a run that goes on there did not reach it from within."""
    epochs = {step: 1 + (step > 4) for step in range(1, 9)}
    text = said(tmp_path, straight(8), resumed(after, 8), epochs, True)
    assert text == ("" if covered else "; not covered: the beginning of another epoch")


def test_one_epoch_has_no_border(tmp_path: Path) -> None:
    assert said(tmp_path, straight(8), resumed(4, 8), dict.fromkeys(range(1, 9), 1), True) == ""


@pytest.mark.parametrize(("batches", "covered"), [(1, True), (2, False), (3, False)])
def test_a_stop_within_an_accumulation_window(batches: int, covered: bool, tmp_path: Path) -> None:
    """Steps have two batches; what passes over old ones has more in its first step."""
    whole, rest = straight(8), resumed(4, 8)
    for hashes in (*whole.values(), *rest.values()):
        if "batch" in hashes:
            hashes["batch"]["1"] = hashes["batch"]["0"]
    rest[1]["batch"] = {str(number): whole[5]["batch"]["0"] for number in range(batches)}
    text = said(tmp_path, whole, rest, dict.fromkeys(range(1, 9), 1), True)
    assert text == ("" if covered else "; not covered: a stop within an accumulation window")
    (tmp_path / "stopped").mkdir()
    text = said(tmp_path / "stopped", whole, rest, dict.fromkeys(range(1, 9), 1), True, within=True)
    assert text == ("" if covered else "; not seen: a checkpoint within an accumulation window")


@pytest.mark.parametrize(
    ("passes", "closure", "windows"),
    [("1", None, False), ("4", None, True), ("20", "20", False), ("4", "1", True), ("1", "1", False)],
    ids=["one", "accumulated", "LBFGS", "accumulated, with a closure", "a closure"],
)
def test_passes_within_a_step_are_no_window(passes: str, closure: str | None, windows: bool, tmp_path: Path) -> None:
    steps = straight(4)
    numbers = {"backward passes": passes} | ({"backward passes of the closure": closure} if closure else {})
    for step in range(1, 5):
        steps[step]["scalars"] = numbers
    (process,) = record.read(write(tmp_path / "a", steps)).processes
    assert has_windows(process) == windows


def test_a_second_resume_and_what_no_loader_shows(tmp_path: Path) -> None:
    assert said(tmp_path, straight(8), resumed(4, 8)) == "; not covered: a second resume; not seen: where epochs begin"
    whole, rest = straight(8), resumed(4, 8)
    for hashes in (*whole.values(), *rest.values()):
        hashes.pop("batch", None)
    (tmp_path / "unseen").mkdir()
    text = said(tmp_path / "unseen", whole, rest, twice=True)
    assert text == "; not seen: where epochs begin, accumulation windows"


@pytest.mark.parametrize(
    ("count", "first", "missing"),
    [(4, 2, ""), (4, 4, "; not covered: a stop within an accumulation window"), (1, 1, "")],
)
def test_backward_passes_say_more_than_batches(count: int, first: int, missing: str, tmp_path: Path) -> None:
    a, b = (record.read(write(tmp_path / name, steps)) for name, steps in (("a", straight(8)), ("b", resumed(4, 8))))
    for process in (a.processes[0], b.processes[0]):
        process.texts = {sha(number): str(number) for number in range(5)}
        for step, hashes in process.steps.items():
            number = first if process is b.processes[0] and step == 1 else count
            hashes["scalars"] = {"backward passes": sha(number)}
    assert uncovered(a, pairs(a, b, True), True) == f"{missing}; not seen: where epochs begin"
