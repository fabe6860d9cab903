"""Runs whose arrays have other names."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from repro.compare.difference import check_comparable, first_difference
from repro.compare.pairs import pairs
from repro.errors import UsageError
from repro.record import record
from support.commands import Steps, sha, write

LAST = 6
KERAS = ["sequential/dense/kernel", "sequential/dense/bias", "sequential/dense_1/kernel", "sequential/dense_1/bias"]
OTHERS = {
    "Keras, loaded": [name.removeprefix("sequential/") for name in KERAS],
    "Keras, made later": [name.replace("dense_1", "dense_3").replace("dense/", "dense_2/") for name in KERAS],
    "a layer that was renamed": [*KERAS[:2], "sequential/classifier/kernel", "sequential/classifier/bias"],
    "PyTorch, a wrapper within": [
        "net.module.0.weight",
        "net.module.0.bias",
        "net.module.9.weight",
        "net.module.9.bias",
    ],
    "Haiku": ["mlp/~/linear_0.w", "mlp/~/linear_0.b", "mlp/~/linear_1.w", "mlp/~/linear_1.b"],
}


def weight(place: int, step: int) -> str:
    """The hash of an array after a step. Biases are zeros at first."""
    return sha("zeros" if place % 2 and not step else (place, step))


def course(names: Sequence[str], after: int = 0, order: Sequence[int] = (0, 1, 2, 3), number: str = "0") -> Steps:
    """The lines of a run that begins after a step; `order`: which array is under each name."""
    named = [(f"{number}.{name}", place) for name, place in zip(names, order, strict=True)]
    results: Steps = {0: {"initial weights": {name: weight(place, after) for name, place in named}}}
    for step in range(after + 1, LAST + 1):
        results[step - after] = {
            "gradients": {name: sha(("gradient", place, step)) for name, place in named},
            "optimizer": {
                name.replace("/", "_") + "_momentum": sha(("momentum", place, step)) for name, place in named
            },
            "weights": {name: weight(place, step) for name, place in named},
            "buffers": {f"0.{names[0]}/mean": sha(("mean", step))},
            "generator": {"torch": sha("torch"), f"0.{names[0]}/seed": sha(("seed", step))},
        }
    return results


def read(path: Path, steps: Steps) -> record.Record:
    return record.read(write(path, steps))


@pytest.mark.parametrize("names", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("after", [0, 1, 4])
def test_arrays_under_other_names_are_the_same(after: int, names: list[str], tmp_path: Path) -> None:
    whole, rest = read(tmp_path / "a", course(KERAS)), read(tmp_path / "b", course(names, after))
    check_comparable(whole, rest)
    assert first_difference(whole, rest, after > 0) is None
    assert [pair.offset for pair in pairs(whole, rest)] == [after]  # as compare asks, which does not know


def test_a_part_of_a_resumed_run_that_was_stopped_again(tmp_path: Path) -> None:
    """Its end says nothing of where it began: its weights do."""
    whole, names = read(tmp_path / "a", course(KERAS)), OTHERS["Keras, loaded"]
    rest = read(tmp_path / "b", {step: hashes for step, hashes in course(names, 2).items() if step < 3})
    assert [pair.offset for pair in pairs(whole, rest)] == [2]


def test_an_array_that_was_not_restored_is_named(tmp_path: Path) -> None:
    whole, steps = read(tmp_path / "a", course(KERAS)), course(OTHERS["Keras, loaded"], 4)
    steps[0]["initial weights"]["0.dense_1/kernel"] = sha("other")
    difference = first_difference(whole, read(tmp_path / "b", steps), True)
    assert difference and (difference.step, difference.channel, difference.names) == (
        4,
        "initial weights",
        [f"0.{KERAS[2]}"],
    )


def test_an_optimizer_that_was_not_restored_is_named(tmp_path: Path) -> None:
    whole, steps = read(tmp_path / "a", course(KERAS)), course(OTHERS["Keras, loaded"], 4)
    for hashes in (steps[1], steps[2]):
        hashes["optimizer"] = {name: sha((name, "other")) for name in hashes["optimizer"]}
    difference = first_difference(whole, read(tmp_path / "b", steps), True)
    assert difference and (difference.step, difference.channel, len(difference.names)) == (5, "optimizer", 4)
    assert "0.sequential_dense_bias_momentum" in difference.names


@pytest.mark.parametrize("names", [KERAS, OTHERS["Keras, loaded"]])
@pytest.mark.parametrize("after", [1, 4])
def test_two_arrays_that_were_swapped_are_not_the_same(after: int, names: list[str], tmp_path: Path) -> None:
    whole, swapped = read(tmp_path / "a", course(KERAS)), course(names, after, order=(2, 1, 0, 3))
    difference = first_difference(whole, read(tmp_path / "b", swapped), True)
    assert difference and (difference.step, difference.channel) == (after, "initial weights")
    assert difference.names == [f"0.{KERAS[0]}", f"0.{KERAS[2]}"]


def test_another_number_of_arrays_is_no_renaming(tmp_path: Path) -> None:
    whole = read(tmp_path / "a", course(KERAS))
    rest = read(tmp_path / "b", course(OTHERS["Keras, loaded"][:2], 4, order=(0, 1)))
    assert first_difference(whole, rest, True) is not None


def test_of_two_programs_nothing_is_compared(tmp_path: Path) -> None:
    """Neither their names are equal, nor their weights."""
    whole, other = read(tmp_path / "a", course(KERAS)), course([f"x{name}" for name in KERAS])
    for step, hashes in other.items():
        for channel in hashes.keys() - {"generator"}:
            hashes[channel] = {name: sha((name, step, "other")) for name in hashes[channel]}
    with pytest.raises(UsageError, match="different programs"):
        check_comparable(whole, read(tmp_path / "b", other))


def test_weights_that_are_changed_between_steps_are_paired_by_all_of_them(tmp_path: Path) -> None:
    """A clip changes some weights after each step: they come first in the lines of the whole run, but not in a resumed one's."""
    names = OTHERS["Keras, loaded"]
    whole, rest = course(KERAS), course(names, 4)
    for steps, after, own in ((whole, 0, KERAS), (rest, 4, names)):
        for step in [*steps]:
            clipped = {f"0.{own[place]}": sha(("clipped", place, step + after)) for place in (0, 2)}
            steps[step] = {"changed weights": clipped, **steps[step]} if step > (after > 0) else steps[step]
    rest[0]["initial weights"] |= {f"0.{names[place]}": sha(("clipped", place, 5)) for place in (0, 2)}
    rest[1]["changed weights"] = {}
    assert first_difference(read(tmp_path / "a", whole), read(tmp_path / "b", rest), True) is None
