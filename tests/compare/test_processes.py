"""Records of several processes that are no ranks."""

from pathlib import Path

import pytest

from repro.compare.comparison import known
from repro.compare.difference import first_difference, race
from repro.compare.reasons import reason
from repro.record import record
from repro.report.comparison import told
from support.commands import Steps, sha, straight, write


def read(path: Path, *processes: Steps) -> record.Record:
    recorded = record.read(write(path, *processes))
    for number, process in enumerate(recorded.processes):
        process.name = str(10 + number)
    return recorded


def second(after: int) -> Steps:
    """A process that trains the weights that another one has trained so far."""
    return straight(initial_weights={0: sha(("weights", after))}, gradients={1: after}, weights={1: (after, 1)})


def test_one_that_starts_from_the_weights_of_another(tmp_path: Path) -> None:
    """As in Hogwild: there are two, and now one is first, now the other."""
    a, b = read(tmp_path / "a", straight(), second(2)), read(tmp_path / "b", straight(), second(3))
    difference = first_difference(a, b, False)
    assert difference and (difference.step, difference.channel, str(difference.among)) == (
        0,
        "initial weights",
        "process 2 of 2",
    )
    assert str(reason(difference)) == (
        "process 2 of the first run starts from the weights after step 2 of process 1: "
        "they train the same weights, or one reads what the other has written, and which comes first changes from run to run"
    )


def test_it_is_told_of_the_process_that_differs(tmp_path: Path) -> None:
    a, b = read(tmp_path / "a", second(2), straight()), read(tmp_path / "b", straight(), straight())
    difference = first_difference(a, b, False)
    assert difference and (difference.channel, str(difference.among)) == ("initial weights", "process 1 of 2")
    assert "process 1 of the first run starts from the weights after step 2 of process 2" in str(reason(difference))


@pytest.mark.parametrize("after", [2, 4])
def test_one_that_goes_on_where_another_has_ended_is_no_race(after: int, tmp_path: Path) -> None:
    """As in `pretrain.py && finetune.py`, from the last or from the best checkpoint: in both runs the same step."""
    a = read(tmp_path / "a", straight(), second(after))
    b = read(tmp_path / "b", straight(gradients={3: 7}, weights={3: 7}), second(after))
    difference = first_difference(a, b, False)
    assert difference and (difference.step, str(difference.among)) == (3, "process 1 of 2")
    assert str(reason(difference)).startswith("equal weights and an equal batch, other gradients")


@pytest.mark.parametrize(
    ("earlier", "said"), [(True, "after step 4 of process 2, which was started later"), (False, "")]
)
def test_a_race_shows_in_one_run_where_the_earlier_process_comes_later(
    earlier: bool, said: str, tmp_path: Path
) -> None:
    run = read(tmp_path / "a", second(4), straight())
    for number, process in enumerate(run.processes if earlier else reversed(run.processes)):
        process.about.pid = 10 + number
    assert said in (race(run) or "") and bool(said) == bool(race(run))


def test_one_that_finds_other_last_weights_is_no_race(tmp_path: Path) -> None:
    """The second process of the second run reads what is not of its own first one."""
    a, b = read(tmp_path / "a", straight(), second(4)), read(tmp_path / "b", straight(), second(9))
    difference = first_difference(a, b, False)
    assert difference and "which of them comes first" not in str(reason(difference))


def test_processes_with_the_same_initial_weights_may_be_trained_apart(tmp_path: Path) -> None:
    a = read(tmp_path / "a", straight(), straight())
    b = read(tmp_path / "b", straight(), straight(gradients={2: 7}, weights={2: 7}))
    difference = first_difference(a, b, False)
    assert difference and str(difference.among) == "process 2 of 2"
    assert "at step 2, in process 2 of 2, in the gradients" in told(known(a, b, difference))
    assert "adds in another order, or another process that trains the same weights (a guess)" in str(reason(difference))


@pytest.mark.parametrize(("ours", "theirs"), [([straight()], []), ([straight(), straight(3)], [straight()])])
def test_one_that_takes_no_step_in_the_second_run(ours: list[Steps], theirs: list[Steps], tmp_path: Path) -> None:
    a, b = read(tmp_path / "a", *ours), read(tmp_path / "b", *theirs)
    for one, other in ((a, b), (b, a)):
        difference = first_difference(one, other, False)
        assert difference and (difference.step, difference.channel, difference.names) == (1, "weights", [])
        assert str(reason(difference)) == f"one run took no step, the other {len(ours[-1]) - 1}"
