"""Segments cover a training, and the chance that an altered one stays unseen is counted right."""

import itertools
from math import isclose

import pytest

from repro.receipt.segments import Segment, drawn, segments, unseen
from repro.record.checkpoints import Checkpoint


def at(*steps: int) -> list[Checkpoint]:
    return [Checkpoint(step, {}, frozenset()) for step in steps]


@pytest.mark.parametrize("after", [(), (3, 6), (3, 6, 10), (0, 4), (10,), (3, 12)])
def test_together_they_are_the_whole_training(after: tuple[int, ...]) -> None:
    made = segments(at(*after), 10)
    assert [step for segment in made for step in range(segment.after + 1, segment.last + 1)] == list(range(1, 11))
    assert made[0].start is None and all(segment.start for segment in made[1:])


def test_a_draw_is_that_of_its_seed_and_in_order() -> None:
    made = segments(at(*range(1, 100)), 100)
    ours, again, other = (drawn(made, 5, seed) for seed in (1, 1, 2))
    assert ours == again != other and [one.last for one in ours] == sorted(one.last for one in ours)
    assert drawn(made, 1000, 0) == made


def test_each_segment_is_drawn_as_often() -> None:
    made = segments(at(1, 2, 3), 4)
    counts = [sum(segment in drawn(made, 1, seed) for seed in range(4000)) for segment in made]
    assert all(850 < count < 1150 for count in counts)


@pytest.mark.parametrize(("total", "number", "altered"), [(6, 3, 1), (6, 3, 2), (7, 2, 5), (5, 5, 1), (6, 4, 3)])
def test_the_chance_is_that_of_counting_all_draws(total: int, number: int, altered: int) -> None:
    draws = list(itertools.combinations(range(total), number))
    missed = sum(not {*draw} & {*range(altered)} for draw in draws)
    assert isclose(unseen(total, number, altered), missed / len(draws), abs_tol=0)


def test_a_segment_says_which_steps_it_has() -> None:
    (first, last) = segments(at(4), 9)
    assert (first.name, first.steps, last.name, last.steps) == ("steps 1 to 4", 4, "steps 5 to 9", 5)
    assert isinstance(first, Segment)
