"""Points at which a command is stopped."""

from collections.abc import Sequence

import pytest

from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.questions import Change
from repro.verify.stops import Stop, gone_on, targets, with_stops

QUESTIONS = {question.name: question for question in COMMAND_QUESTIONS}


def steps_of(change: Change, steps: int, borders: Sequence[int] = ()) -> list[int]:
    return [stop.step for stop in targets(change, steps, borders)]


@pytest.mark.parametrize(
    ("name", "count", "steps"),
    [
        ("resume", None, [[15]]),
        ("kill", 1, [[20]]),
        ("resume_twice", None, [[10, 10]]),
        ("kill", 3, [[1], [10], [20]]),
        ("resume_twice", 3, [[1, 9], [10, 6], [20, 3]]),
        ("threads", 3, [[], []]),
    ],
)
def test_points_are_spread_over_the_steps(name: str, count: int | None, steps: list[list[int]]) -> None:
    question = with_stops(QUESTIONS[name], count)
    assert [steps_of(change, 30) for change in question.changes] == steps
    assert len({change.label for change in question.changes}) == len(steps)


def test_the_second_point_is_where_an_epoch_begins_if_that_is_seen() -> None:
    changes = with_stops(QUESTIONS["resume_twice"], 3).changes
    assert [steps_of(change, 30, [9, 17, 25]) for change in changes] == [[1, 9], [9, 6], [20, 3]]
    (_, second, _) = with_stops(QUESTIONS["kill"], 3).changes
    assert (steps_of(second, 30, [12]), steps_of(second, 30)) == ([12], [10])


def test_the_third_point_is_within_an_accumulation_window_if_there_are_any() -> None:
    changes = with_stops(QUESTIONS["resume_twice"], 4).changes
    assert [targets(change, 40, windows=True)[0] for change in changes] == [Stop(1), Stop(10), Stop(20, 10), Stop(30)]
    assert targets(changes[2], 40, windows=True)[1] == targets(changes[2], 40)[1] == Stop(6)
    assert targets(changes[2], 40)[0] == Stop(20)


def test_what_is_killed_once_is_killed_within_a_window_if_there_are_any() -> None:
    """Right after a checkpoint that is written in one, from a third of the steps on; otherwise between two passes."""
    (change,) = with_stops(QUESTIONS["kill"], None).changes
    assert targets(change, 30, windows=True) == [Stop(20, 10)]
    assert targets(change, 30) == targets(with_stops(QUESTIONS["kill"], 1).changes[0], 30) == [Stop(20)]
    (stopped,) = QUESTIONS["resume"].changes
    assert targets(stopped, 30, windows=True) == [Stop(15)]


def test_a_command_of_few_steps_is_stopped_after_the_first() -> None:
    (change,) = QUESTIONS["resume_twice"].changes
    assert steps_of(change, 2) == [1, 1]


def test_after_which_steps_runs_went_on() -> None:
    assert gone_on([[3]]) == "went on after step 3"
    assert gone_on([[3, 9], [10, 15]]) == "went on after step 3 and 9, 10 and 15"
