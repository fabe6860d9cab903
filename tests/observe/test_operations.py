"""Operations of one step in PyTorch.

All that makes the gradients and weights is seen, and no bit changes.
"""

from pathlib import Path
from typing import Any

import pytest

from support.observed import SCRIPTS, alone, ended, interpreter, lines, notes, start, steps

LOOPS = str(SCRIPTS / "pytorch_loops.py")

Line = dict[str, Any]


def traced(folder: Path, step: int, *scenarios: str) -> tuple[list[Line], list[Line]]:
    """The operations of a step, and all lines; the script prints what it prints alone."""
    printed = ended(start([interpreter("pytorch"), LOOPS, *scenarios], folder, REPRO_OBSERVE_NARROW=str(step)))
    assert printed == alone("pytorch", LOOPS, *scenarios)
    (written,) = lines(folder).values()
    return [line for line in written if line["kind"] == "operation"], written


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Line], list[Line]]:
    return traced(tmp_path_factory.mktemp("second"), 2, "adamw")


def test_all_that_makes_the_weights_of_one_step(second: tuple[list[Line], list[Line]]) -> None:
    operations, written = second
    assert {line["step"] for line in operations} == {2}
    assert [line["number"] for line in operations] == [*range(1, len(operations) + 1)]
    made = {code for line in operations for code in line["outputs"]}
    seen = steps(written)
    assert {*seen[2]["gradients"].values()} <= made
    assert {*seen[2]["weights"].values()} <= {
        code for line in operations if line["in_place"] for code in line["outputs"]
    }
    assert not {*seen[3]["gradients"].values()} & made
    order: list[int] = [line["step"] for line in written if line["kind"] in ("step", "operation")]
    assert order == sorted(order)  # the step's own line comes after its operations


def test_each_operation_has_its_place(second: tuple[list[Line], list[Line]]) -> None:
    operations, _ = second
    linear = [line for line in operations if line["name"] == "aten.addmm.default"]
    assert [line["module"] for line in linear] == ["0", "3"]
    (product,) = [line for line in operations if line["name"] == "aten.mm.default" and line["module"] == "0"]
    assert product["backward"] and not linear[0]["backward"]
    source = Path(LOOPS).read_text().splitlines()
    path, number = linear[0]["line"].rsplit(":", 1)
    assert path == LOOPS and "model(x)" in source[int(number) - 1] and product["line"] == linear[0]["line"]


def test_what_has_no_values_yet_is_not_hashed(second: tuple[list[Line], list[Line]]) -> None:
    operations, _ = second
    (empty,) = [line for line in operations if line["name"].startswith("aten.empty")]  # dropout fills it
    (drawn,) = [line for line in operations if line["name"].startswith("aten.bernoulli_")]
    assert empty["outputs"] == [] and empty["written_at"] == drawn["written_at"]
    assert drawn["inputs"] == []


@pytest.mark.deep
@pytest.mark.parametrize("scenario", ["workers", "fused"])
def test_the_first_step_begins_with_the_optimizer(scenario: str, tmp_path: Path) -> None:
    operations, written = traced(tmp_path, 1, scenario)
    made = {code for line in operations for code in line["outputs"]}
    assert {*steps(written)[1]["weights"].values()} <= made and not notes(written)


@pytest.mark.parametrize(
    ("step", "scenario", "seen"),
    [
        pytest.param(
            1, "compiled", True, marks=pytest.mark.slow
        ),  # this backend compiles nothing, and calls the operations
        pytest.param(3, "compiled optimizer", True, marks=pytest.mark.slow),
        pytest.param(1, "inductor", False, marks=pytest.mark.slow),
        pytest.param(3, "inductor, optimizer", True, marks=pytest.mark.slow),
    ],
)
def test_what_is_compiled_stays_compiled_and_is_noted(step: int, scenario: str, seen: bool, tmp_path: Path) -> None:
    operations, written = traced(tmp_path, step, scenario)
    assert any(line["name"] == "aten.addmm.default" for line in operations) == seen
    assert any("the operations in them are not seen" in note for note in notes(written))
