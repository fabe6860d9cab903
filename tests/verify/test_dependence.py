"""Whether results depend on a generator: one that decides, and a look-alike."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.compare.difference import first_difference
from repro.inject import changes
from repro.record import record
from repro.verify import dependence
from repro.verify.command_runs import Command, Trial
from repro.verify.questions import Change
from support.commands import resumed, sha, straight, write

OLD: dict[str, Any] = {"generator": {1: sha(("generator", 1))}, "weights": {1: 7}}
OLD_BATCH: dict[str, Any] = {**OLD, "batch": {1: sha(("batch", 1))}}


def said_of(folder: Path, changed: dict[str, Any], drawn: dict[str, Any]) -> tuple[str | None, list[Change]]:
    """What is said of a resumed run, and what was run for it: a command that a number more changes so."""
    made: list[Change] = []

    def run(change: Change) -> Trial:
        made.append(change)
        return Trial(change, Command(["x"]), folder, record=record.read(write(folder / "drawn", straight(**drawn))))

    whole = record.read(write(folder / "whole", straight()))
    found = first_difference(whole, record.read(write(folder / "rest", resumed(2, **changed))), True)
    assert found
    return dependence.said(found, whole, run), made


DREW = {"generator": {1: 8, 2: 8, 3: 8, 4: 8}}


@pytest.mark.parametrize(
    ("changed", "drawn", "said"),
    [
        (OLD_BATCH, {"batch": {3: 7}, "weights": {3: 7}}, "the batches depend on it"),
        (OLD, {"gradients": {2: 7}}, "is in the state of step 1 again: it was not restored; what a step computes"),
        (
            {**OLD, "generator": {1: sha(("generator", 4))}},
            {"gradients": {2: 7}},
            "is in the state of step 4 already: more was drawn from it since it was saved; what a step computes",
        ),
        ({**OLD, "generator": {1: 7}}, {"gradients": {2: 7}}, "or something drew from it since; what a step computes"),
    ],
)
def test_a_generator_that_decides_was_not_restored(
    changed: dict[str, Any], drawn: dict[str, Any], said: str, tmp_path: Path
) -> None:
    why, (change,) = said_of(tmp_path, changed, DREW | drawn)
    assert why and said in why and "(a guess)" not in why
    assert change.environment == (("REPRO_CHANGES", f"{'draw_first' if changed is OLD_BATCH else 'draw'}=python"),)


@pytest.mark.parametrize(
    ("changed", "drawn"),
    [
        (OLD, DREW | {"batch": {3: 7}, "gradients": {3: 7}, "weights": {3: 7}}),
        (OLD, DREW),
        (OLD_BATCH, {}),
    ],
    ids=["only batches depend on it", "nothing does", "nothing more was drawn"],
)
def test_one_of_which_no_run_shows_that_it_decides_is_left_to_the_rules(
    changed: dict[str, Any], drawn: dict[str, Any], tmp_path: Path
) -> None:
    why, made = said_of(tmp_path, changed, drawn)
    assert why is None and len(made) == 1


@pytest.mark.parametrize(
    "drawn", [{}, {"gradients": {2: 7}, "weights": {2: 7}}], ids=["the epoch's number does", "only dropout draws"]
)
def test_old_batches_that_do_not_depend_on_it_are_not_laid_to_it(drawn: dict[str, Any], tmp_path: Path) -> None:
    """As an epoch's order that follows from its number: restoring the generator mends nothing."""
    why, _ = said_of(tmp_path, OLD_BATCH, DREW | drawn)
    assert why == (
        "the first batch of the resumed run is that of step 1 of the whole run: the place in the data, the number of the epoch, "
        "or the generator that orders it was not restored, so old batches come again (a guess); "
        "the generator `python` does not decide: a run that drew one number more from it had equal batches"
    )


@pytest.mark.parametrize(
    "changed", [{"batch": {1: 7}, "weights": {1: 7}}, {"gradients": {1: 7}}, {"generator": {2: 7}, "weights": {2: 7}}]
)
def test_nothing_is_run_where_no_generator_differs_in_the_first_step(changed: dict[str, Any], tmp_path: Path) -> None:
    assert said_of(tmp_path, changed, {}) == (None, [])


def test_each_generator_that_differs_is_tried(tmp_path: Path) -> None:
    """The first one is drawn from, and decides nothing."""
    whole, rest = straight(), resumed(2, **OLD_BATCH)
    for start, steps in ((0, whole), (2, rest)):
        for step, hashes in steps.items():
            hashes["generator"]["torch"] = sha(("torch", step if steps is rest and step < 2 else step + start))
    a, b = (record.read(write(tmp_path / name, steps)) for name, steps in (("whole", whole), ("rest", rest)))
    found = first_difference(a, b, True)
    assert found and dependence.generators(found) == ["python", "torch"]
    tried: list[str] = []

    def run(change: Change) -> Trial:
        tried.append(change.label)
        name = change.label.split()[4].rstrip(",")
        drawn = {step: {**hashes, "generator": hashes["generator"] | {name: sha(8)}} for step, hashes in whole.items()}
        drawn[3] |= {"batch": {"0": sha(7)}, "weights": {"w": sha(7)}} if name == "torch" else {}
        return Trial(change, Command(["x"]), tmp_path, record=record.read(write(tmp_path / name, drawn)))

    why = dependence.said(found, a, run)
    assert why and "the generator `torch` is in the state of step 1 again" in why
    assert tried == ["one number more from python, before any batch", "one number more from torch, before any batch"]


@pytest.mark.parametrize(("generator", "device"), [("torch", "cpu"), ("cuda:1", "cuda:1")])
def test_one_number_is_drawn_once(generator: str, device: str) -> None:
    drawn: list[str] = []
    once = changes._Once(SimpleNamespace(rand=lambda count, device: drawn.append(device)), generator)  # type: ignore[arg-type]
    once.draw()
    once.draw()
    assert drawn == [device]
