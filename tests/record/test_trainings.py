"""Trainings that follow one another in a process."""

import pytest

from repro.record.lines import Process
from repro.record.trainings import begins
from support.commands import Steps


def process(*stepping: str, changed: tuple[int, ...] = ()) -> Process:
    """A process in whose steps these optimizers step, `01` both; before those that are `changed` all weights do."""
    steps: Steps = {0: {"initial weights": {f"{number}.w": "0" for number in stepping[0]}}}
    seen = {*stepping[0]}
    for step, numbers in enumerate(stepping, 1):
        names = {f"{number}.w": "0" for number in numbers}
        new = {f"{number}.w": "0" for number in numbers if number not in seen}
        seen |= {*numbers}
        steps[step] = {"gradients": names, "weights": names, "changed weights": names if step in changed else {}}
        steps[step] |= {"initial weights": new} if new else {}
    return Process("10", steps=steps)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (process("0", "0", "0"), [1]),
        (process("0", "0", "1", "1", "2"), [1, 3, 5]),
        (process("0", "1", "0", "1", "2", "3", "2"), [1, 5]),  # two optimizers in turn, then two others
        (process("0", "1", "0"), [1]),
        (process("01", "01", "23", "23"), [1, 3]),
        (process("0", "0", "0", "0", "0", "0", changed=(4,)), [1, 4]),  # a function of JAX that begins again
        (process("0", "0", "0", "0", changed=(2, 3, 4)), [1]),  # weights that are clipped
        (process("0"), [1]),
        (Process("10"), []),
    ],
)
def test_a_training_begins_where_weights_are_new(seen: Process, expected: list[int]) -> None:
    assert begins(seen) == expected
