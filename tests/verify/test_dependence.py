"""Whether results depend on a generator: one that decides, and a look-alike."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.compare.difference import first_difference
from repro.inject import changes
from repro.record import record
from repro.verify import dependence
from repro.verify.questions import Change
from repro.verify.trial import Command, Trial
from support.commands import resumed, sha, straight, write

OLD: dict[str, Any] = {"generator": {1: sha(("generator", 1))}, "weights": {1: 7}}
OLD_BATCH: dict[str, Any] = {**OLD, "batch": {1: sha(("batch", 1))}}


THEN: dict[str, Any] = {"generator": {3: 8, 4: 8}}
EARLY: dict[str, Any] = {"generator": {1: 8, 2: 8, 3: 8, 4: 8}}
FOURTH = {"batch": {4: 7}, "gradients": {4: 7}, "weights": {4: 7}}


def said_of(
    folder: Path, changed: dict[str, Any], then: dict[str, Any], early: dict[str, Any]
) -> tuple[str | None, list[str]]:
    """What is said of a run that was resumed after step 2, and what was run for it; each gives other hashes."""
    made: list[str] = []

    def run(change: Change) -> Trial:
        made.append(change.environment[0][1])
        hashes = straight(**(early if "early" in change.label else then))
        return Trial(change, Command(["x"]), folder, record=record.read(write(folder / str(len(made)), hashes)))

    whole = record.read(write(folder / "whole", straight()))
    difference = first_difference(whole, record.read(write(folder / "rest", resumed(2, **changed))), True)
    assert difference
    return dependence.said(difference, whole, run), made


@pytest.mark.parametrize(
    ("changed", "then", "said"),
    [
        (OLD_BATCH, {"batch": {3: 7}, "weights": {3: 7}}, "the batch depends on it"),
        (OLD, {"gradients": {3: 7}}, "is in the state of step 1 again: it was not restored; what the step computes"),
        (
            {**OLD, "generator": {1: sha(("generator", 4))}},
            {"gradients": {3: 7}},
            "is in the state of step 4 already: more was drawn from it since it was saved; what the step computes",
        ),
        (
            {**OLD, "generator": {1: sha(("generator", 2)), 2: 7}},
            {"gradients": {3: 7}},
            "is still in the state of step 2: less was drawn from it, or it was restored after it was drawn from",
        ),
        (
            {**OLD, "generator": {1: 7}},
            {"gradients": {3: 7}},
            "or something drew from it since; what the step computes",
        ),
    ],
)
def test_a_generator_that_decides_was_not_restored(
    changed: dict[str, Any], then: dict[str, Any], said: str, tmp_path: Path
) -> None:
    why, made = said_of(tmp_path, changed, THEN | then, {})
    assert why and said in why and "(a guess)" not in why
    assert made == ["draw=python@2"]


@pytest.mark.parametrize(
    ("changed", "then", "early"),
    [
        (OLD, THEN | {"batch": {3: 7}, "gradients": {3: 7}, "weights": {3: 7}}, {}),
        (OLD, THEN, {}),
        (OLD, THEN | FOURTH, {}),
        (OLD, EARLY | {"gradients": {3: 7}}, {}),
        (OLD_BATCH, THEN, {}),
        (OLD_BATCH, THEN | FOURTH, EARLY | {"batch": {1: 7}, "weights": {1: 7}}),
    ],
    ids=[
        "the batch alone",
        "nothing",
        "a later step",
        "drawn too early",
        "nothing was drawn",
        "in the middle of an epoch",
    ],
)
def test_one_of_which_no_run_shows_that_it_decides_is_left_to_the_rules(
    changed: dict[str, Any], then: dict[str, Any], early: dict[str, Any], tmp_path: Path
) -> None:
    """In the middle of an epoch its order is drawn already: the place in the data may be what was not restored."""
    why, made = said_of(tmp_path, changed, then, early)
    assert why is None and len(made) == 1 + (changed is OLD_BATCH)


@pytest.mark.parametrize(
    "early", [{}, {"gradients": {2: 7}, "weights": {2: 7}}], ids=["the epoch's number does", "only dropout draws"]
)
def test_old_batches_that_do_not_depend_on_it_are_not_laid_to_it(early: dict[str, Any], tmp_path: Path) -> None:
    """As an epoch's order that follows from its number: restoring the generator mends nothing."""
    why, _ = said_of(tmp_path, OLD_BATCH, THEN, EARLY | early)
    assert why == (
        "the first batch of the resumed run is that of step 1 of the whole run: the place in the data, the number of the epoch, "
        "or the generator that orders it was not restored, or is of another step than the weights (a guess); "
        "the generator `python` does not decide: a run that drew more numbers from it had equal batches"
    )


@pytest.mark.parametrize(
    "changed", [{"batch": {1: 7}, "weights": {1: 7}}, {"gradients": {1: 7}}, {"generator": {2: 7}, "weights": {2: 7}}]
)
def test_nothing_is_run_where_no_generator_differs_in_the_first_step(changed: dict[str, Any], tmp_path: Path) -> None:
    assert said_of(tmp_path, changed, {}, {}) == (None, [])


def test_nothing_is_run_where_a_restored_generator_is_not_drawn_from(tmp_path: Path) -> None:
    """As dropout in a network that was left in eval mode."""
    stays = {"generator": {1: sha(("generator", 2)), 2: sha(("generator", 2))}, "gradients": {1: 7}, "weights": {1: 7}}
    assert said_of(tmp_path, stays, THEN | {"gradients": {3: 7}}, {}) == (None, [])


@pytest.mark.parametrize("torch", ["decides", "may decide"])
def test_each_generator_that_differs_is_tried(torch: str, tmp_path: Path) -> None:
    """The first one is drawn from, and decides nothing."""
    whole, rest = straight(), resumed(2, **OLD_BATCH)
    for start, steps in ((0, whole), (2, rest)):
        for step, hashes in steps.items():
            hashes["generator"]["torch"] = sha(("torch", step + start))
    rest[1]["generator"]["torch"] = sha("unknown")
    a, b = (record.read(write(tmp_path / name, steps)) for name, steps in (("whole", whole), ("rest", rest)))
    difference = first_difference(a, b, True)
    assert difference and dependence.generators(difference) == ["python", "torch"]
    tried: list[str] = []

    def run(change: Change) -> Trial:
        tried.append(change.label)
        name, begin = change.label.split()[change.label.split().index("from") + 1], 1 if "early" in change.label else 3
        drawn = {
            step: {**hashes, "generator": hashes["generator"] | ({name: sha(8)} if step >= begin else {})}
            for step, hashes in whole.items()
        }
        other = 3 if torch == "decides" else 4
        drawn[other] |= {"batch": {"0": sha(7)}, "weights": {"w": sha(7)}} if name == "torch" else {}
        path = write(tmp_path / str(len(tried)), drawn)
        return Trial(change, Command(["x"]), tmp_path, record=record.read(path))

    why = dependence.said(difference, a, run)
    if torch == "may decide":
        assert why is None and tried[-1] == "more numbers from torch early"
        return
    assert (
        why and "the generator `torch` is in another state: it was not restored, or something drew from it since" in why
    )
    assert tried == [
        "one number more from python after step 2",
        "more numbers from python early",
        "one number more from torch after step 2",
    ]


@pytest.mark.parametrize(("generator", "device"), [("torch", "cpu"), ("cuda:1", "cuda:1")])
def test_one_number_is_drawn_once(generator: str, device: str) -> None:
    drawn: list[str] = []
    once = changes._Once(SimpleNamespace(rand=lambda count, device: drawn.append(device)), generator)  # type: ignore[arg-type]
    once.draw()
    once.draw()
    assert drawn == [device]


def test_a_number_is_drawn_after_its_step_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    hooks: list[Any] = []
    torch = SimpleNamespace(rand=lambda count, device: drawn.append(device))
    optimizer = SimpleNamespace(register_optimizer_step_post_hook=hooks.append)
    monkeypatch.setitem(sys.modules, "torch.optim.optimizer", optimizer)
    changes._draw_after_a_step(torch, "torch", 2)  # type: ignore[arg-type]
    counts = [(hooks[0](), len(drawn))[1] for _ in range(4)]
    assert counts == [0, 1, 1, 1]
