"""Differences that look like another cause, and causes that are seen late, or by a part of what a rule asks for."""

from dataclasses import replace
from pathlib import Path

import pytest

from repro.compare import reasons
from repro.compare.difference import first_difference
from repro.record import record
from support.commands import sha, write
from support.two_records import (
    COUNTED,
    LONGER,
    SCALED,
    UNSEEN,
    WEIGHTS,
    Two,
    accumulating,
    averaged,
    calling_back,
    changing,
    drawn_once,
    frozen,
    goes_on,
    numbers,
    old,
    passes,
    renamed,
    rounded,
)


def test_a_resumed_generator_in_the_state_of_a_later_step_was_restored(tmp_path: Path) -> None:
    """As where batches are passed over that the run has trained on: it drew more."""
    why = reasons.reason(goes_on(generator=old("generator", 7), weights={1: 7}).difference(tmp_path))
    assert why.rule == "generator drew more"
    assert why.text.endswith("is that of step 7 of the whole run: until then it drew more, or was set forward")


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("accumulation window not saved", numbers({}, of_a={"backward passes": {5: "8"}})),
        ("accumulation window not saved", numbers({"backward passes": {1: "2"}}, gradients={})),
        ("accumulation window not saved", numbers(SCALED)),
        ("schedule not restored", numbers({"0.group 0.lr": {1: "0.3"}, "StepLR._step_count": {1: "1"}})),
        ("average not restored", averaged(*WEIGHTS, generator=old("generator", 1))),
        ("loss scale not restored", numbers({"backward passes": {1: "2"}})),
        ("loss scale not restored", numbers({}, of_a={"backward passes": {5: "8"}})),
        ("resumed place kept for another epoch", goes_on(batch=old("batch", 5, 6, 5), weights={3: 7})),
        (
            "resumed place kept for another epoch",
            passes(("batch", 5), ("batch", 6), ("batch", 5), last=3),
        ),  # in any order
        ("resumed place kept for another epoch", passes(("batch", 5), ("batch", 5))),  # at no border
        (
            "resumed place kept for another epoch",
            passes(("batch", 5), ("batch", 6), ("batch", 5), second=3),
        ),  # few batches
        ("resumed place kept for another epoch", passes(("batch", 1), ("batch", 6), ("batch", 1))),
        ("buffers of a first step", goes_on(buffers={1: sha(("buffers", 1))}, weights={1: 7})),  # from equal gradients
        ("buffers of a first step", goes_on(UNSEEN, buffers={1: sha(("buffers", 2))}, weights={1: 7})),
        ("buffers not restored", goes_on(buffers={1: 7}, weights={1: 7})),
        ("rounded by the checkpoint", rounded("optimizer", of_both=True)),
        ("rounded by the checkpoint", rounded("copies", of_both=True)),
        ("nothing is drawn", drawn_once()),
        ("nothing is drawn", goes_on(generator=old("generator", 4, 4), batch={1: 7}, gradients={1: 7})),
        ("optimizer holds more than its state", numbers({"0.group 0.lr": {1: "0.3"}}, gradients={})),
        ("optimizer holds more than its state", numbers(optimizer={1: 7}, gradients={})),
        (
            "batch of the first shape",  # that of an incomplete last batch, once more
            replace(goes_on(batch={1: 7}, gradients={1: 7}), shapes=LONGER | {(0, 4): "8x4", (1, 1): "8x4"}),
        ),
        (
            "buffers stay",
            replace(goes_on(gradients={1: 7}, buffers={1: sha(("buffers", 4))}), framework="jax"),
        ),
        ("gradients missing", frozen(of_w=7, resumed=False)),
        ("end of training not restored", calling_back(10, "StepLR.last_epoch")),
        ("callback not restored", goes_on(optimizer={3: 7}, weights={3: 7})),
        ("callback not restored", calling_back(8, optimizer={3: 7}, weights={3: 7})),  # of early stopping
        (
            "callback not restored",
            calling_back(8, "ReduceLROnPlateau.wait", optimizer={1: 7}, weights={1: 7}),
        ),  # too early for it
        ("accumulated gradients not restored", accumulating(acc_grads=7)),  # it may be of another batch
        ("accumulated gradients not restored", accumulating((), acc_grads=7, inner=7)),
    ],
)
def test_other_look_alikes(name: str, alike: Two, tmp_path: Path) -> None:
    assert reasons.reason(alike.difference(tmp_path)).rule != name


@pytest.mark.parametrize(("first", "right"), [(5, True), (1, False)])
def test_a_scale_that_skips_the_first_steps_of_a_resumed_run(first: int, right: bool, tmp_path: Path) -> None:
    """Its first step takes their batches, too, and the whole run skips a later step itself."""
    two = numbers(SCALED, of_a={"scaler.scale": {1: "256.0"}, "backward passes": {6: "8"}}, batch={1: 7})
    two.a[0][6]["batch"] = {"0": sha(("batch", 6)), "1": sha(("batch", 7))}
    two.a[0][7]["batch"] = {"0": sha(("batch", 8))}
    two.b[0][1]["batch"] = {str(place): sha(("batch", step)) for place, step in enumerate((first, 6, 7))}
    why = reasons.reason(two.difference(tmp_path))
    assert (why.rule == "loss scale not restored") == right


@pytest.mark.parametrize("channel", ["optimizer", "copies"])
def test_any_state_may_be_rounded(channel: str, tmp_path: Path) -> None:
    assert reasons.reason(rounded(channel).difference(tmp_path)).rule == "rounded by the checkpoint"


def test_a_change_of_weights_may_be_a_cast(tmp_path: Path) -> None:
    two = changing(8, of_b=True)
    two.bfloat16[1, 2, "changed weights"] = ["w"]
    assert str(reasons.reason(two.difference(tmp_path))).endswith(
        "something other than the optimizer changed them, in the second run to numbers of bfloat16 alone, such as a cast and back"
    )


def test_gradients_may_be_missing_in_any_run(tmp_path: Path) -> None:
    why = str(reasons.reason(frozen(resumed=False).difference(tmp_path)))
    assert why.startswith(
        "the second run computes no gradients of `v` at step 2, as the first run does, and all others are equal"
    )


def test_state_beside_the_weights_of_a_compiled_step_decides_what_comes_of_it(tmp_path: Path) -> None:
    """As a momentum that a script carries on by hand in JAX."""
    two = goes_on(UNSEEN, buffers={1: sha(("buffers", 1))}, weights={1: 7})
    assert str(reasons.reason(two.difference(tmp_path))) == (
        "from equal weights and an equal batch the resumed run arrives at different ones (`w`); "
        "the buffers `mean` at step 1 of the resumed run are those at step 1 of the whole run: they were not restored"
    )


def test_other_buffers_of_a_compiled_step_may_be_why(tmp_path: Path) -> None:
    why = reasons.reason(goes_on(UNSEEN, buffers={1: 7}, weights={1: 7}).difference(tmp_path))
    assert why.guess and "the optimizer's state, buffers that differ (`mean`), or what" in why.text


@pytest.mark.parametrize(
    ("two", "said"),
    [
        (
            numbers(gradients={1: 7}),
            " and an equal batch, though generators, buffers, numbers of the step are equal: "
            "what the loss or the network holds beside weights and buffers, as a queue or a temperature was not restored",
        ),
        (
            goes_on(("batch", "generator", "buffers"), gradients={1: 7}),
            " (the batch cannot be seen): the place in the data, or dropout that draws again, or buffers, "
            "or the mode (train or eval), or a scale, or what the loss or the network holds",
        ),
    ],
    ids=["equal", "unseen"],
)
def test_a_guess_about_other_gradients_names_nothing_that_is_equal(two: Two, said: str, tmp_path: Path) -> None:
    assert f"differ from equal weights{said}" in str(reasons.reason(two.difference(tmp_path)))


def test_a_resumed_run_that_takes_as_many_steps_as_a_whole_one(tmp_path: Path) -> None:
    why = reasons.reason(calling_back(12, value="5").difference(tmp_path))
    assert str(why) == (
        "all steps are equal until the whole run ends after step 8, or the resumed run after step 12; "
        "the resumed run takes 8 steps, as many as the whole run in all: what ends the training was not restored"
    )


@pytest.mark.parametrize(("best", "rule"), [("None", "files of a callback"), ("5", "files alone")])
def test_files_of_a_resumed_run_whose_best_value_began_anew(best: str, rule: str, tmp_path: Path) -> None:
    two = calling_back(8, "ModelCheckpoint.best", best)
    two.a[0][1]["scalars"]["ModelCheckpoint.best"] = "None"
    a, b = (
        record.read(write(tmp_path / name, *steps, outputs={"{run}/best.h5": sha(name)}))
        for name, steps in (("a", two.a), ("b", two.b))
    )
    difference = first_difference(a, b, True)
    assert difference
    why = reasons.reason(difference)
    assert (why.rule, why.guess) == (rule, True)


@pytest.mark.parametrize(
    "two",
    [
        accumulating((), acc_grads=7),  # as Keras, whose gradients of a step are seen
        accumulating(mini_step=1, acc_grads=7, inner=7),  # where the whole run ends its window
    ],
)
def test_windows_of_accumulated_gradients(two: Two, tmp_path: Path) -> None:
    assert reasons.reason(two.difference(tmp_path)).rule == "accumulated gradients not restored"


def test_batches_of_a_loader_that_asks_for_one_ahead_as_it_begins(tmp_path: Path) -> None:
    two = goes_on(batch=old("batch", 1, 2, 3), weights={1: 7})
    for steps in (two.a[0], two.b[0]):
        steps[1]["batch"]["1"] = sha("ahead")
    assert reasons.reason(two.difference(tmp_path)).rule == "old batches again"


@pytest.mark.parametrize(("without", "place"), [(("batch",), True), ((), False)])
def test_other_gradients_may_be_of_another_place_only_where_no_batch_is_seen(
    without: tuple[str, ...], place: bool, tmp_path: Path
) -> None:
    why = reasons.reason(goes_on(without, gradients={1: 7}).difference(tmp_path))
    assert ("the place in the data" in why.text) == place


def test_a_key_may_not_decide_where_the_batch_cannot_be_seen(tmp_path: Path) -> None:
    two = renamed(goes_on(("batch",), generator=old("generator", 1), weights={1: 7}))
    assert reasons.reason(two.difference(tmp_path)).guess


@pytest.mark.parametrize(("count", "guess"), [(0, False), (2, True)])
def test_an_average_that_is_made_anew_counts_anew(count: int, guess: bool, tmp_path: Path) -> None:
    two = averaged(*WEIGHTS)
    for before, steps in ((0, two.a[0]), (count, two.b[0])):
        for step in [step for step in steps if step]:
            steps[step]["copies"]["ema.n_averaged"] = sha(before + step - 1)
    assert reasons.reason(two.difference(tmp_path)).guess == guess


def test_a_schedule_that_shows_many_steps_later(tmp_path: Path) -> None:
    """As ReduceLROnPlateau, whose counter of bad epochs was not saved."""
    two = numbers({"0.group 0.lr": {3: "0.5"}, "StepLR.last_epoch": COUNTED}, gradients={}, weights={3: 7})
    assert str(reasons.reason(two.difference(tmp_path))) == (
        f"`0.group 0.lr` at step 3 of the resumed run is 0.5, not {0.1 / 7}, and `StepLR.last_epoch` at step 1 of the "
        "resumed run is 0, that of step 1 of the whole run, not 4: the schedule was not restored"
    )


def test_a_schedule_that_shows_one_step_late_is_named(tmp_path: Path) -> None:
    """The optimizer's own rate was restored, the schedule that sets the next one was not."""
    two = goes_on(weights={2: 7})
    for start, steps in ((0, two.a[0]), (4, two.b[0])):
        for step, hashes in steps.items():
            if step:
                hashes["scalars"] = {"0.group 0.lr": str(0.1 / (step + start))}
    two.b[0][2]["scalars"] = {"0.group 0.lr": str(0.1 / 2)}
    assert reasons.reason(two.difference(tmp_path)).rule == "schedule not restored"
