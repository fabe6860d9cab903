"""What is no difference: what no result feels, what one run alone has, and what was not seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from repro.compare import incomplete
from repro.compare.difference import (
    first_difference,
    ignore_idle_generators,
    without_effect,
)
from repro.record import record
from support.commands import Steps, resumed, sha, straight, write
from support.compared import compared


def test_a_generator_that_nobody_draws_from_is_no_difference(compare) -> None:
    a, b = straight(), straight()
    for run, state in ((a, "one"), (b, "another")):
        for hashes in run.values():
            hashes["generator"]["numpy"] = sha(state)
    assert compare(a, b) is None


def test_one_that_is_drawn_from_without_effect_is_told(tmp_path: Path) -> None:
    a = record.read(write(tmp_path / "a", straight()))
    b = record.read(write(tmp_path / "b", straight(generator={2: 7})))
    assert compared(a, b) is None and without_effect(a, a) == ""
    assert without_effect(a, b) == "; but `python` drew other numbers, with no effect on what is seen"


@pytest.mark.parametrize("steps", [(1,), (1, 4)])
def test_a_batch_that_no_result_feels_is_no_difference(steps: tuple[int, ...], tmp_path: Path) -> None:
    """... as one that an evaluation drew, outside of no_grad."""
    a = record.read(write(tmp_path / "a", straight()))
    b = record.read(write(tmp_path / "b", straight(batch=dict.fromkeys(steps, 7))))
    assert compared(a, b) is None
    assert without_effect(a, b) == "; but a loader handed out another batch, with no effect on what is seen"


@pytest.mark.parametrize(("batch", "where"), [(1, (3, "gradients")), (2, (2, "batch")), (3, (3, "batch"))])
def test_a_batch_matters_to_its_step_or_to_the_next(batch: int, where: tuple[int, str], compare) -> None:
    difference = compare(straight(), straight(batch={batch: 7}, gradients={3: 7}, weights={3: 7}))
    assert (difference.step, difference.channel) == where


def test_nor_is_it_named_where_another_thing_differs(compare) -> None:
    a, b = straight(), straight(gradients={2: 1})
    for run, state in ((a, "one"), (b, "another")):
        for hashes in run.values():
            hashes["generator"]["numpy"] = sha(state)
    assert compare(a, b).channel == "gradients"


def test_before_the_first_step_every_generator_is_a_suspect(compare) -> None:
    a, b = straight(), straight(initial_weights={0: 1}, weights={1: 1})
    for run, state in ((a, "one"), (b, "another")):
        for hashes in run.values():
            hashes["generator"] = {"numpy": sha(state)}
    difference = compare(a, b)
    assert (difference.channel, difference.names) == ("generator", ["numpy"])


def test_a_generator_that_differs_between_two_equal_runs_is_no_difference_of_a_third(tmp_path: Path) -> None:
    """... but of what it drew without effect a line tells."""
    moved: dict[str, Any] = {"initial_weights": {0: 7}, "weights": {1: 7}}
    a, b, c = (
        record.read(
            write(tmp_path / str(seed), straight(generator={step: (seed, step) for step in range(5)}, **changed))
        )
        for seed, changed in ((1, {}), (2, {}), (3, moved))
    )
    before = first_difference(a, c)
    ignore_idle_generators(a, b)
    difference = first_difference(a, c)
    assert before and (before.step, before.channel) == (0, "generator")
    assert difference and (difference.step, difference.channel) == (0, "initial weights")
    assert without_effect(a, b) == "; but `python` drew other numbers, with no effect on what is seen"


@pytest.mark.parametrize(
    ("channel", "step", "same"), [("weights", 3, True), ("optimizer", 4, True), ("optimizer", 2, False)]
)
def test_an_optimizer_that_is_deleted_later_is_no_difference(channel: str, step: int, same: bool, compare) -> None:
    """Two steps of one optimizer, then two of another: what the first one holds may stay for a while."""
    a, b = straight(), straight()
    for steps in (a, b):
        for number in (1, 2):
            steps[number]["gradients"] = {"1.v": sha(number)}
    for number in (1, 2):
        a[number]["optimizer"]["1.v.momentum"] = b[number]["optimizer"]["1.v.momentum"] = sha(number)
    b[step].setdefault(channel, {})["1.v.more" if step == 2 else "1.v"] = sha("old")
    assert (compare(a, b) is None) == same


def test_a_channel_that_one_run_did_not_see_is_not_compared(compare) -> None:
    a, b = straight(), straight(buffers={1: 1})
    for hashes in a.values():
        hashes.pop("buffers", None)
    assert compare(a, b) is None


UNSEEN = {"text": "buffers of a kind that nobody knows", "unseen": 3}


def test_what_was_not_seen_whole_is_not_called_the_same(tmp_path: Path) -> None:
    whole = record.read(write(tmp_path / "a", straight()))
    partial = record.read(write(tmp_path / "b", straight(), notes=[UNSEEN]))
    assert compared(whole, partial) is None and incomplete.unseen(whole) is None
    said = "not every step was fully observed: step 3: buffers of a kind that nobody knows"
    assert incomplete.unseen(whole, partial) == incomplete.unseen(partial, whole) == said


def test_a_difference_that_was_seen_is_one_though_not_all_was(tmp_path: Path) -> None:
    whole = record.read(write(tmp_path / "a", straight()))
    partial = record.read(write(tmp_path / "b", straight(gradients={2: 1}), notes=[UNSEEN]))
    difference = compared(whole, partial)
    assert difference and (difference.step, difference.channel) == (2, "gradients")


def test_what_was_not_seen_is_no_difference(tmp_path: Path) -> None:
    """Neither a step that is missing, nor the last ones, nor one tensor."""
    whole, partial = straight(), straight()
    del partial[2], partial[4], partial[3]["buffers"]
    a, b = (
        record.read(write(tmp_path / name, steps, notes=[UNSEEN])) for name, steps in (("a", whole), ("b", partial))
    )
    assert compared(a, b) is None


def test_an_older_record_says_in_its_notes_that_a_step_failed(tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(), notes=[{"text": "pytorch._after failed: RuntimeError: why"}])
    content = json.loads((path / record.FILE).read_text())
    del content["unseen"]
    content["notes"] = ["pytorch._after failed: RuntimeError: why", "no DataLoader of PyTorch handed out a batch"]
    (path / record.FILE).write_text(json.dumps(content))
    assert incomplete.unseen(record.read(path)) == (
        "not every step was fully observed: pytorch._after failed: RuntimeError: why"
    )


def with_copies(steps: Steps, offset: int, **copies: Any) -> Steps:
    """Steps with copies of the weights, each a function of the step as the whole run counts."""
    for step in [step for step in steps if step]:
        steps[step]["copies"] = {name: sha(of(step + offset)) for name, of in copies.items()}
    return steps


@pytest.mark.parametrize(
    ("theirs", "same"),
    [
        ({"ema": lambda step: -step}, False),
        ({"ema": lambda step: step if step > 3 else 0}, True),
        ({"ema": lambda step: step, "checkpoint": lambda step: 2}, True),
        ({"ema": lambda step: step, "initial": lambda step: 2}, True),
    ],
)
def test_copies_of_the_weights_matter_if_both_have_them_and_they_stay_apart(theirs, same, compare) -> None:
    """Not the weights of the step before, a checkpoint in memory, or the weights that a run began with."""
    whole = with_copies(straight(), 0, ema=lambda step: step, initial=lambda step: 0)
    difference = compare(whole, with_copies(resumed(2), 2, **theirs), True)
    assert (
        difference is None
        if same
        else (difference.step, difference.channel, difference.names) == (3, "copies", ["ema"])
    )
