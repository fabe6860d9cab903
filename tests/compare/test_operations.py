"""repro.compare.operations: the operation that is named is the one that makes other results of equal ones."""

from typing import Any

from msgspec import structs

from repro.compare.operations import began
from repro.record.typed_lines import Operation


def made(name: str, inputs: str, outputs: str, at: int = 1, **other: Any) -> Operation:
    """An operation; a letter is a hash, and `at` is where its result is."""
    fields: dict[str, Any] = {"read_at": [], "written_at": [at], "in_place": False, "view": False, "module": None}
    fields |= {"line": None, "backward": False} | other
    return Operation(step=3, number=0, name=name, inputs=[*inputs], outputs=[*outputs], **fields)


def told(ours: list[Operation], theirs: list[Operation], seen: str) -> str:
    def numbered(operations: list[Operation]) -> list[Operation]:
        return [structs.replace(one, number=n) for n, one in enumerate(operations, 1)]

    return began(numbered(ours), numbered(theirs), [*seen])


def test_the_first_that_makes_other_results_of_equal_ones() -> None:
    where: dict[str, Any] = {"module": "layers.3", "line": "train.py:7", "backward": True}
    ours = [made("relu", "a", "b"), made("mm", "bc", "d", **where), made("sum", "d", "e")]
    theirs = [made("relu", "a", "b"), made("mm", "bc", "D"), made("sum", "D", "E")]
    assert told(ours, theirs, "e") == (
        "with mm, operation 2 of 3 in the backward pass of layers.3 (train.py:7): its inputs are equal, "
        "its results are not"
    )


def test_what_nobody_feels_is_passed_over() -> None:
    logged = [made("time", "", "t", at=7), made("copy_", "t", "t", at=8, in_place=True)]
    other = [made("time", "", "T", at=7), made("copy_", "T", "T", at=8, in_place=True)]
    ours = [*logged, made("mm", "ab", "c", at=8), made("sum", "c", "e", read_at=[8])]  # in memory that has become free
    theirs = [*other, made("mm", "ab", "C", at=8), made("sum", "C", "E", read_at=[8])]
    assert told(ours, theirs, "e").startswith("with mm, operation 3 of 4:")


def test_what_is_written_through_a_view_is_found_by_its_place() -> None:
    def run(x: str, whole: str, end: str) -> list[Operation]:
        return [
            made("zeros", "", "z", at=5),
            made("slice", "", "v", at=5, read_at=[5], view=True),
            made("mul_", "vq", x, at=5, in_place=True),
            made("sum", whole, end, read_at=[5], at=6),
        ]

    assert told(run("x", "w", "e"), run("X", "W", "E"), "e").startswith("with mul_, operation 3 of 4:")


def test_a_view_of_what_differs_is_not_where_it_begins() -> None:
    ours = [made("mm", "ab", "c", at=5), made("t", "", "d", at=5, read_at=[5], view=True), made("sum", "d", "e")]
    theirs = [made("mm", "ab", "C", at=5), made("t", "", "D", at=5, read_at=[5], view=True), made("sum", "D", "E")]
    assert told(ours, theirs, "e").startswith("with mm, operation 1 of 3:")
    assert told(ours[1:], theirs[1:], "e").startswith("before t, operation 1 of 2: its inputs already differ")


def test_what_no_operation_made() -> None:
    ours, theirs = [made("mm", "ab", "c"), made("sum", "x", "e")], [made("mm", "ab", "c"), made("sum", "X", "E")]
    assert told(ours, theirs, "e").startswith("before sum, operation 2 of 2: its inputs already differ")
    assert told(ours[:1], theirs[:1], "e").startswith("none of 1 operations that can be seen gives different results")


def test_other_operations() -> None:
    same = made("mm", "ab", "c")
    ours, theirs = [same, made("sum", "c", "e")], [same, made("mean", "c", "f")]
    assert told(ours, theirs, "e") == "from operation 2 on different operations are called: sum in A, mean in B"
    assert told(ours, [same], "e") == "from operation 2 on different operations are called: sum in A, none in B"
    parted = [made("mm", "ab", "C"), made("mean", "C", "f")]
    assert told(ours, parted, "e").startswith("with mm, operation 1 of 2:")  # which way is taken follows from it
