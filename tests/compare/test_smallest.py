"""The smallest set that makes a difference, by delta debugging."""

import pytest

from repro.compare.smallest import smallest


@pytest.mark.parametrize("wanted", [{0}, {7}, {2, 3}, {0, 7}, {1, 4, 6}, set(range(8)), {3, 4}])
def test_the_set_of_which_nothing_can_be_left_out(wanted: set[int]) -> None:
    asked: list[tuple[int, ...]] = []

    def makes(items: list[int]) -> bool:
        asked.append(tuple(items))
        return wanted <= set(items)

    assert smallest(range(8), makes) == sorted(wanted)
    assert len(set(asked)) == len(asked)


def test_either_of_two_is_enough() -> None:
    assert smallest("abcd", lambda items: "b" in items or "d" in items) in (["b"], ["d"])


def test_a_set_that_works_only_whole_or_alone() -> None:
    """Not monotone: what is left is still one of which nothing can be left out."""
    assert smallest("abc", lambda items: len(items) in (1, 3) and items[0] == "a") == ["a"]


def test_one_is_not_asked_about() -> None:
    assert smallest("a", lambda items: False) == ["a"]
