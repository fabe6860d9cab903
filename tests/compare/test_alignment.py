"""Runs with two optimizers, laid beside resumed ones."""

from pathlib import Path
from typing import Any

import pytest

from repro.compare.difference import first_difference
from repro.compare.distance import distance
from repro.compare.pairs import pairs
from repro.compare.reasons import reason
from repro.record import record
from support.commands import Steps, sha, write

TURNS = "dgdgdgdg"  # which optimizer takes each step of the whole run


def weights(optimizer: str, step: int, turns: str) -> dict[str, str]:
    """The weights of one optimizer, after n steps of all."""
    done = turns[:step].count(optimizer)
    return {name: sha((optimizer, name, done)) for name in ("weight", "bias")}


def course(turns: str, after: int = 0, all_seen: bool = True, shared: bool = False, **changed: Any) -> Steps:
    """The lines of a run after a step, as PyTorch's observer writes them; `changed` by optimizer: its start weights.

    Without `all_seen` a step shows its own optimizer alone, as in JAX. `shared`: each has the other's weights, too.
    """
    results: Steps = {0: {"generator": {"python": sha(0)}}}
    numbers: dict[str, str] = {}

    def named(optimizer: str, step: int) -> dict[str, str]:
        own = changed.get(optimizer) or weights(optimizer, step, turns)
        own |= {"shared": sha(("shared", step))} if shared else {}
        return {f"{numbers[optimizer]}.{name}": code for name, code in own.items()}

    for step, optimizer in enumerate(turns[after:], after + 1):
        line: dict[str, dict[str, str]] = {}
        if optimizer not in numbers:
            numbers[optimizer] = str(len(numbers))
            results[0 if step == after + 1 else step - after] = line
            line["initial weights"] = named(optimizer, step - 1)
        seen = numbers if all_seen else [optimizer]
        results.setdefault(step - after, {}).update(
            {
                "batch": {"0": sha(("batch", step))},
                "gradients": {f"{numbers[optimizer]}.weight": sha(("gradient", step))},
                "optimizer": {f"{numbers[one]}.momentum": sha((one, turns[:step].count(one))) for one in seen},
                "weights": {name: code for one in seen for name, code in named(one, step).items()},
            }
        )
    return results


def read(path: Path, steps: Steps, **content: Any) -> record.Record:
    return record.read(write(path, steps, **content))


@pytest.mark.parametrize("how", [{}, {"shared": True}, {"all_seen": False}])
@pytest.mark.parametrize("after", [2, 3, 4, 5])
def test_two_optimizers_resumed_rightly(after: int, how: dict[str, bool], tmp_path: Path) -> None:
    """After 3 and 5 the second one steps first, and so has the other number."""
    whole, rest = read(tmp_path / "a", course(TURNS, **how)), read(tmp_path / "b", course(TURNS, after, **how))
    assert first_difference(whole, rest, True) is None
    assert [pair.offset for pair in pairs(whole, rest, True)] == [after]
    assert [pair.offset for pair in pairs(whole, rest)] == [after]  # as compare asks, which does not know


def test_the_rest_of_a_run_that_is_stopped_again(tmp_path: Path) -> None:
    """The turn of the optimizers tells after which of two steps with these weights."""
    whole = read(tmp_path / "a", course(TURNS, all_seen=False))
    rest = read(tmp_path / "b", course(TURNS[:6], 4, all_seen=False))
    assert [pair.offset for pair in pairs(whole, rest)] == [4]


@pytest.mark.parametrize(("optimizer", "number"), [("d", "0"), ("g", "1")])
@pytest.mark.parametrize("all_seen", [True, False])
def test_one_whose_weights_are_not_restored(optimizer: str, number: str, all_seen: bool, tmp_path: Path) -> None:
    other = {"weight": sha(7), "bias": weights(optimizer, 4, TURNS)["bias"]}
    changed: dict[str, Any] = {optimizer: other}
    whole = read(tmp_path / "a", course(TURNS, all_seen=all_seen))
    rest = read(tmp_path / "b", course(TURNS, 4, all_seen=all_seen, **changed))
    difference = first_difference(whole, rest, True)
    assert difference and (difference.step, difference.channel, difference.names) == (
        4,
        "initial weights",
        [f"{number}.weight"],
    )
    assert "match no step of the whole run" in str(reason(difference))
    assert distance(whole, rest, difference) is None  # no array was kept


def test_an_optimizer_that_is_done_is_not_asked_for(tmp_path: Path) -> None:
    """A second phase of training, with an optimizer of its own, which the resumed run alone makes."""
    whole, rest = read(tmp_path / "a", course("ggddd")), read(tmp_path / "b", course("ggddd", 3))
    assert first_difference(whole, rest, True) is None
    whole.processes[0].steps[5]["weights"]["1.bias"] = sha(7)
    difference = first_difference(whole, rest, True)
    assert difference and (difference.step, difference.channel, difference.names) == (5, "weights", ["1.bias"])


def test_one_that_both_make_later_starts_from_other_weights(tmp_path: Path) -> None:
    whole, rest = (
        read(tmp_path / "a", course("ggggdd")),
        read(tmp_path / "b", course("ggggdd", 2, d={"weight": sha(7)})),
    )
    assert [pair.offset for pair in pairs(whole, rest)] == [2]
    difference = first_difference(whole, rest, True)
    assert difference and (difference.step, difference.channel, difference.names[-1]) == (
        5,
        "initial weights",
        "1.weight",
    )
    assert first_difference(whole, read(tmp_path / "c", course("ggggdd", 2)), True) is None


def test_one_that_takes_no_step_any_more(tmp_path: Path) -> None:
    whole, rest = read(tmp_path / "a", course("dgdgdg")), read(tmp_path / "b", course("dgdddd", 2))
    difference = first_difference(whole, rest, True)
    assert difference and difference.names == ["1.momentum"]


def test_the_arrays_of_a_later_start(tmp_path: Path) -> None:
    whole, rest = read(tmp_path / "a", course(TURNS)), read(tmp_path / "b", course(TURNS, 4, g={"weight": sha(7)}))
    difference = first_difference(whole, rest, True)
    assert difference and difference.pair
    assert difference.pair.places(4, "initial weights", "1.weight") == ((4, "weights"), (2, "initial weights"))
    assert difference.pair.places(4, "initial weights", "0.weight") == ((4, "weights"), (0, "initial weights"))


def clipped(after: int = 0, clips: bool = True) -> Steps:
    """The lines of a run whose weight is clipped after each step; that of one which goes on from the clipped weight."""
    codes = {step: (sha(("weight", step)), sha(("clipped", step))) for step in range(9)}
    results: Steps = {0: {"initial weights": {"0.w": codes[after][after > 0]}}}
    for step in range(after + 1, 9):
        changed = {"0.w": codes[step - 1][1]} if clips and step > after + 1 else {}
        results[step - after] = {
            "changed weights": changed,
            "weights": {"0.w": codes[step][0], "0.v": sha(("v", step))},
        }
    return results


@pytest.mark.parametrize("after", [1, 5])
def test_weights_that_the_program_changes_between_two_steps(after: int, tmp_path: Path) -> None:
    """A checkpoint may hold them before that change, or after it."""
    whole = read(tmp_path / "a", clipped())
    for number, code in enumerate((sha(("weight", after)), sha(("clipped", after)))):
        steps = clipped(after)
        steps[0]["initial weights"]["0.w"] = code
        steps[1]["changed weights"] = {} if number else {"0.w": sha(("clipped", after))}
        rest = read(tmp_path / f"b{number}", steps)
        assert first_difference(whole, rest, True) is None
        assert [pair.offset for pair in pairs(whole, rest)] == [after]


def test_a_resumed_run_that_does_not_make_the_change(tmp_path: Path) -> None:
    whole, steps = read(tmp_path / "a", clipped()), clipped(5)
    steps[0]["initial weights"]["0.w"] = sha(("weight", 5))
    difference = first_difference(whole, read(tmp_path / "b", steps), True)
    assert (
        difference
        and difference.pair
        and (difference.step, difference.channel, difference.names) == (6, "changed weights", ["0.w"])
    )
    assert difference.pair.places(6, "changed weights", "0.w") == ((6, "changed weights"), (0, "initial weights"))
    assert "as a clip or a mask" in str(reason(difference))


def test_a_change_that_is_another_one_in_a_second_run(tmp_path: Path) -> None:
    whole, steps = read(tmp_path / "a", clipped()), clipped()
    steps[4]["changed weights"] = {"0.v": sha("other")}
    difference = first_difference(whole, read(tmp_path / "b", steps), False)
    assert difference and (difference.step, difference.channel, difference.names) == (
        4,
        "changed weights",
        ["0.v", "0.w"],
    )
    assert difference.pair and difference.pair.places(4, "changed weights", "0.w") == (
        (4, "changed weights"),
        (3, "weights"),
    )
    assert "something other than the optimizer" in str(reason(difference))


def test_a_record_that_does_not_look_for_changes_is_compared_without_them(tmp_path: Path) -> None:
    older = {
        step: {name: of for name, of in hashes.items() if name != "changed weights"}
        for step, hashes in clipped().items()
    }
    assert first_difference(read(tmp_path / "a", clipped()), read(tmp_path / "b", older), False) is None
