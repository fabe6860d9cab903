"""The first channel of the first step that differs, and the cause that it shows."""

from pathlib import Path
from typing import Any

import pytest

from repro.compare.difference import (
    Difference,
    first_difference,
)
from repro.compare.pairs import natural, pairs
from repro.compare.reasons import reason
from repro.errors import UsageError
from repro.record import record
from support.commands import Steps, resumed, sha, straight, write
from support.compared import compared


def test_equal_ones(compare) -> None:
    assert compare(straight(), straight()) is None


def test_a_run_that_was_stopped_before_its_first_step(compare) -> None:
    """As by `record --against`: what was there before it is compared."""
    begun = {0: straight()[0] | {"initial weights": {"w": sha("other")}}}
    difference = compare(straight(), begun)
    assert difference is not None and (difference.step, difference.channel) == (0, "initial weights")


def test_a_run_that_goes_on_is_laid_beside_the_steps_that_it_repeats(compare) -> None:
    assert compare(straight(), resumed(2)) is None


@pytest.mark.parametrize("every", [1, 4])
def test_a_run_that_counts_on_where_it_was_stopped(every: int, compare) -> None:
    """As scripts count that call repro.watch; no weights before the first step are seen, and of A some steps only."""
    hashed = [step for step in range(1, 9) if step == 1 or step % every == 0]
    whole = {step: {"weights": straight(8)[step]["weights"]} for step in hashed}
    rest = {step: {"weights": straight(8)[step]["weights"]} for step in (6, 7, 8)}
    rest[8]["weights"] = {"w": sha("other")}
    difference = compare(whole, rest)
    assert (difference.step, difference.channel, difference.pair.offset) == (8, "weights", 5)


@pytest.mark.parametrize(
    ("changed", "step", "channel", "said"),
    [
        ({"batch": {2: 1}, "weights": {2: 1}}, 2, "batch", "a set or hash()"),
        ({"generator": {0: 1, 1: 1}, "initial_weights": {0: 1}}, 0, "generator", "no seed is set"),
        ({"generator": {3: 1}, "weights": {4: 1}}, 3, "generator", "from step 3 on `python` draws different numbers"),
        ({"initial_weights": {0: 1}, "weights": {1: 1}}, 0, "initial weights", "that can be seen are equal"),
        ({"gradients": {3: 1}, "weights": {3: 1}}, 3, "gradients", "equal weights and an equal batch, other gradients"),
        ({"optimizer": {3: 1}, "weights": {3: 1}}, 3, "optimizer", "gradients are equal"),
        ({"weights": {4: 1}}, 4, "weights", "or something else changed the weights between the steps (a guess)"),
        ({"buffers": {2: 1}}, 2, "buffers", "the buffers differ"),
    ],
)
def test_two_runs_from_the_beginning(changed, step, channel, said, compare) -> None:
    difference = compare(straight(), straight(**changed))
    assert (difference.step, difference.channel) == (step, channel)
    assert said in str(reason(difference))


@pytest.mark.parametrize("forked", [True, False])
def test_only_a_fork_seeds_the_generator_of_python_anew(forked: bool, tmp_path: Path) -> None:
    other = straight(generator={0: 1, 1: 1}, weights={1: 1})
    a, b = (record.read(write(tmp_path / name, steps)) for name, steps in (("a", straight()), ("b", other)))
    b.processes[0].about.forked = forked
    difference = compared(a, b)
    assert difference
    said = str(reason(difference))
    assert "no seed is set" in said and ("Python seeds `random` anew in a forked process" in said) == forked


@pytest.mark.parametrize(
    ("changed", "step", "channel", "said"),
    [
        (
            {"batch": {1: sha(("batch", 1))}, "generator": {1: sha(("generator", 1))}, "weights": {1: 1}},
            3,
            "batch",
            "the generator `python` at step 1 of the resumed run is that of step 1 of the whole run: the random "
            "generator was not restored, so old batches come again",
        ),
        ({"batch": {1: sha(("batch", 2))}, "weights": {1: 1}}, 3, "batch", "is that of step 2 of the whole run"),
        (
            {"generator": {1: sha(("generator", 1))}, "gradients": {1: 1}},
            3,
            "generator",
            "was not restored, so old numbers are drawn again, as for dropout or augmentation",
        ),
        (
            {"generator": {1: 7}, "weights": {1: 1}},
            3,
            "generator",
            "in a state that the whole run never had: it was not restored, or it was and something drew since: a sampler",
        ),
        (
            {"batch": {1: 7}, "weights": {1: 1}},
            3,
            "batch",
            "the place in the data, or the number of the epoch, was not restored (a guess)",
        ),
        ({"initial_weights": {0: 7}, "weights": {1: 1}}, 2, "initial weights", "match no step of the whole run"),
        ({"gradients": {1: 7}, "weights": {1: 1}}, 3, "gradients", "generators, buffers are equal: a scale, or what"),
        ({"optimizer": {1: 7}, "weights": {1: 1}}, 3, "optimizer", "another state of the optimizer (`w.momentum`)"),
        ({"weights": {1: 7}}, 3, "weights", "the learning rate, or its schedule, was not restored (a guess)"),
        ({"buffers": {1: 7}}, 3, "buffers", "they were not restored"),
        (
            {"gradients": {2: 7}},
            4,
            "gradients",
            "what was not restored is used only then, such as the order of another epoch",
        ),
    ],
)
def test_a_run_that_was_resumed(changed, step, channel, said, compare) -> None:
    difference = compare(straight(), resumed(2, **changed), True)
    assert (difference.step, difference.channel) == (step, channel)
    assert said in str(reason(difference))


@pytest.mark.parametrize(("last", "same"), [(3, True), (4, False)])
def test_a_resumed_run_may_pass_over_old_batches(last: int, same: bool, compare) -> None:
    rest = resumed(2)
    rest[1]["batch"] = {str(place): sha(("batch", step)) for place, step in enumerate((1, 2, last))}
    rest[1]["weights"] = rest[1]["weights"] if same else {"w": sha(7)}
    difference = compare(straight(), rest, True)
    assert (
        difference is None if same else (difference.step, difference.channel, difference.names) == (3, "batch", ["0"])
    )
    assert same or "the first batch of the resumed run is that of step 4 of the whole run" in str(reason(difference))


@pytest.mark.parametrize(("changed", "same"), [({}, True), ({"batch": {1: 7}, "weights": {1: 7}}, False)])
def test_an_evaluation_where_the_resumed_run_begins(changed: dict[str, Any], same: bool, compare) -> None:
    """The whole run's batches of it come before the one that both train on."""
    whole = straight()
    whole[3]["batch"] = {"0": sha("evaluated"), "1": whole[3]["batch"]["0"]}
    difference = compare(whole, resumed(2, **changed), True)
    assert difference is None if same else (difference.step, difference.channel) == (3, "batch")


def test_a_run_from_the_beginning_may_pass_over_nothing(compare) -> None:
    other = straight()
    other[1]["batch"] = {"0": sha(7), "1": sha(("batch", 1))}
    other[1]["weights"] = {"w": sha(7)}
    assert compare(straight(), other).channel == "batch"


def test_an_old_generator_may_choose_batches_that_cannot_be_seen(compare) -> None:
    whole, rest = straight(), resumed(2, generator={1: sha(("generator", 1))}, gradients={1: 1})
    for hashes in [*whole.values(), *rest.values()]:
        hashes.pop("batch", None)
    said = "old numbers are drawn again, as for a batch that cannot be seen, dropout or augmentation"
    assert said in str(reason(compare(whole, rest, True)))


def compiled(steps: Steps, *unseen: str) -> Steps:
    """As of a step that XLA compiles: no gradients, of generators the first state alone, and what else is unseen."""
    results = {
        step: {channel: seen for channel, seen in hashes.items() if channel not in ("gradients", "generator", *unseen)}
        for step, hashes in steps.items()
    }
    for step in (0, 1):
        results[step]["generator"] = steps[0]["generator"]
    return results


OTHERS = (
    "equal weights (the batch cannot be seen), other results of the step, whose gradients cannot be seen: "
    "another batch: the generator `python` differs before the first step, or different settings (learning rate, "
    "decay), or an operation that adds in another order (a guess)"
)


@pytest.mark.parametrize(
    ("changed", "unseen", "channel", "said"),
    [
        (
            {"batch": {1: 1}, "generator": {0: 1}, "weights": {1: 1}},
            (),
            "batch",
            "differ before the first step (`python`): no seed is set",
        ),
        ({"batch": {1: 1}, "weights": {1: 1}}, (), "batch", "generators that can be seen are equal"),
        ({"weights": {1: 1}, "generator": {0: 1}}, ("batch", "optimizer"), "weights", OTHERS),
        ({"optimizer": {1: 1}}, ("batch",), "optimizer", "cannot be seen: another batch, or different settings"),
        ({"optimizer": {1: 1}}, (), "optimizer", "and an equal batch, other results of the step"),
    ],
)
def test_a_step_that_is_compiled(changed, unseen, channel, said, compare) -> None:
    difference = compare(compiled(straight(), *unseen), compiled(straight(**changed), *unseen))
    assert (difference.step, difference.channel) == (1, channel)
    assert said in str(reason(difference))


@pytest.mark.parametrize(
    ("unseen", "said"),
    [
        (
            (),
            "and an equal batch the resumed run arrives at different ones (`w.momentum`), and the gradients cannot be seen: the "
            "optimizer's state, or what the step draws was not restored (a guess)",
        ),
        (
            ("batch",),
            "(the batch cannot be seen) the resumed run arrives at different ones (`w.momentum`), and the gradients "
            "cannot be seen: the optimizer's state, the place in the data, or what",
        ),
    ],
)
def test_a_step_that_is_compiled_after_resuming(unseen, said, compare) -> None:
    difference = compare(compiled(straight(), *unseen), compiled(resumed(2, optimizer={1: 7}), *unseen), True)
    assert (difference.step, difference.channel) == (3, "optimizer")
    assert said in str(reason(difference))


def test_one_run_that_is_longer(compare) -> None:
    difference = compare(straight(4), straight(3))
    assert (difference.step, difference.channel, difference.names) == (4, "weights", [])
    assert str(reason(difference)) == "one run ends after step 3, the other after step 4, from equal results until then"


def test_one_that_counts_on_where_another_run_was_stopped(tmp_path: Path) -> None:
    """All steps that both have are equal, but two runs from the beginning were asked for."""
    whole = {step: {"weights": straight(8)[step]["weights"]} for step in range(1, 9)}
    rest = {step: whole[step] for step in range(6, 9)}
    a, b = record.read(write(tmp_path / "a", whole)), record.read(write(tmp_path / "b", rest))
    for one, other, later in ((a, b, "second"), (b, a, "first")):
        difference = first_difference(one, other, False)
        assert difference and (difference.step, difference.channel) == (1, "initial weights")
        said = f"the {later} run continues after step 5, like a run that resumes from what an earlier run left"
        assert str(reason(difference)) == said
    assert first_difference(a, b, True) is None


def test_steps_that_only_one_hashed_are_left_out(compare) -> None:
    some = straight()
    del some[2], some[3]
    assert compare(straight(gradients={2: 1}), some) is None


def test_outputs_come_last(tmp_path: Path) -> None:
    a, b = (
        record.read(write(tmp_path / name, straight(), outputs={"m": sha(name), "n": sha(1)})) for name in ("a", "b")
    )
    difference = first_difference(a, b)
    assert difference and (difference.step, difference.channel, difference.names) == (None, "outputs", ["m"])
    assert "though every weight that was hashed is equal" in str(reason(difference))
    a, b = (record.read(write(tmp_path / name, outputs={"m": sha(name)})) for name in ("c", "d"))
    difference = first_difference(a, b)
    assert difference and "no step was seen" in str(reason(difference))


def test_the_rank_that_differs_first(tmp_path: Path) -> None:
    a = record.read(write(tmp_path / "a", straight(), straight()))
    b = record.read(write(tmp_path / "b", straight(weights={4: 1}), straight(gradients={3: 1})))
    difference = first_difference(a, b)
    assert (
        difference
        and difference.pair
        and (difference.pair.a.label, difference.step, difference.channel) == ("rank-1", 3, "gradients")
    )
    assert difference.ranks == [1]
    c = record.read(write(tmp_path / "c", straight(gradients={3: 1}), straight(gradients={3: 1})))
    both = first_difference(a, c)
    assert both and both.ranks == [0, 1]
    assert "ranks" not in Difference(3, "weights", ["w"]).as_json()


@pytest.mark.parametrize("other", [{"batch": {1: 1}}, {"initial_weights": {0: 1}}])
def test_tensorflow_without_a_seed(other: dict[str, Any], tmp_path: Path) -> None:
    """As it is without tf.random.set_seed, which makes the one of its generators that can be seen."""
    a = record.read(write(tmp_path / "a", straight()))
    b = record.read(write(tmp_path / "b", straight(weights={1: 1}, **other)))
    for one in (a, b):
        one.processes[0].about.frameworks = {"tensorflow": "2"}
    difference = first_difference(a, b)
    assert difference and "TensorFlow has no seed" in str(reason(difference))
    b.processes[0].steps[0]["generator"]["tensorflow"] = sha("seeded")
    assert "TensorFlow has no seed" not in str(reason(difference))


def test_ranks_that_go_on_after_different_steps(tmp_path: Path) -> None:
    a = record.read(write(tmp_path / "a", straight(), straight()))
    b = record.read(write(tmp_path / "b", resumed(3, gradients={1: 1}), resumed(2, 3, batch={1: 1}, weights={1: 1})))
    difference = first_difference(a, b, True)
    assert difference and (difference.step, difference.ranks) == (3, [1])
    assert "continue after the same step: rank 1 after step 2, rank 0 after step 3; they read" in str(
        reason(difference)
    )


def test_records_of_different_programs(tmp_path: Path, compare) -> None:
    other = straight()
    for hashes in other.values():
        for channel in ("weights", "initial weights"):
            if channel in hashes:
                hashes[channel] = {"conv1.kernel": sha(1)}
    with pytest.raises(UsageError, match=r"different programs: no weight of .* \(w and conv1.kernel\)"):
        compare(straight(), other)


@pytest.mark.parametrize(("a", "b"), [([straight()], []), ([], []), ([straight(), straight()], [straight()])])
def test_records_that_share_nothing(a, b, tmp_path: Path) -> None:
    ours, theirs = record.read(write(tmp_path / "a", *a)), record.read(write(tmp_path / "b", *b))
    with pytest.raises(UsageError, match=r"nothing that both|records of one program|processes of"):
        compared(ours, theirs)


def test_which_step_a_run_goes_on_after(tmp_path: Path) -> None:
    a = record.read(write(tmp_path / "a", straight()))
    b = record.read(write(tmp_path / "b", resumed(3)))
    assert [pair.offset for pair in pairs(a, b)] == [3]
    assert [pair.offset for pair in pairs(b, a)] == [0]


def test_names_in_the_order_of_people() -> None:
    assert sorted(["l.10.w", "l.2.w", "l.b"], key=natural) == ["l.2.w", "l.10.w", "l.b"]
