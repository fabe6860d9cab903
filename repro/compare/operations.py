"""The operation where two steps diverge.

It makes other bits of equal ones, and the end of the step depends on it.
"""

from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path

from repro.compare.difference import Difference
from repro.files import read_lines
from repro.record.lines import STEPS
from repro.record.record import Record
from repro.record.typed_lines import Operation, read_line

UNSEEN = (
    "its inputs already differ, and no operation that can be seen made them: they come from code that torch.compile "
    "made, from NumPy, or from another library"
)


Pairs = list[tuple[Operation, Operation]]


def read(file: Path, step: int) -> list[Operation]:
    """The operations of a step in the file of a process, in their order."""
    lines = (read_line(line) for line in read_lines(file) if line.endswith(b"\n"))
    return [line for line in lines if isinstance(line, Operation) and line.step == step]


def recorded(a: Record, b: Record, difference: Difference) -> str | None:
    """Describes where a step diverges whose operations both records hold; None where one of them does not."""
    pair, step = difference.pair, difference.step
    if pair is None or step is None:
        return None
    sides = (a, pair.a, step), (b, pair.b, step - pair.offset)
    files = [(record.path / STEPS / f"{process.name}.jsonl", at) for record, process, at in sides]
    ours, theirs = (read(file, at) if file.is_file() else [] for file, at in files)
    if not ours or not theirs:
        return None
    hashes = pair.hashes(step, difference.channel) or ({}, {})
    return began(ours, theirs, [hashes[0].get(name, "") for name in difference.names])


def began(ours: Sequence[Operation], theirs: Sequence[Operation], seen: Collection[str]) -> str:
    """Describes where two runs of one step diverge. `seen`: the hashes of ours that differ after the step."""
    pairs: Pairs = []
    for a, b in zip_longest(ours, theirs):
        if a is None or b is None or a.name != b.name:
            break
        pairs.append((a, b))
    rest = ours[len(pairs) :]
    needed = {*seen, *(code for operation in rest for code in operation.inputs)}
    felt = _felt(pairs, needed) or _felt(pairs, needed, in_place=True)
    if not felt:
        if len(pairs) == len(ours) == len(theirs):
            return f"none of {len(ours)} operations that can be seen gives different results; {UNSEEN}"
        names = [many[len(pairs)].name if len(pairs) < len(many) else "none" for many in (ours, theirs)]
        return f"from operation {len(pairs) + 1} on different operations are called: {names[0]} in A, {names[1]} in B"
    a, b = felt[0]
    called = " ".join([f"with {a.name}, operation {a.number} of {len(ours)}", a.place]).strip()
    if a.view or _differing(a.inputs, b.inputs):
        return f"before {called.removeprefix('with ')}: {UNSEEN}"
    return f"{called}: its inputs are equal, its results are not"


def _felt(pairs: Pairs, seen: Collection[str], in_place: bool = False) -> Pairs:
    """The operations that give other results, as far as the end of the step feels it.

    Others may: memory that nobody has filled yet, a time that is logged. Followed back from the end, by the hashes of
    what was taken, and by its place in memory: what is written to through a view has another hash as a whole.
    `in_place`: what is written in place counts in any case.
    """
    result: Pairs = []
    hashes, places = set(seen), set[int]()
    for a, b in reversed(pairs):
        others = _differing(a.outputs, b.outputs)
        felt = others and (others & hashes or (not a.view and places.intersection(a.written_at)))
        if not a.view and not a.in_place:
            places.difference_update(a.written_at)  # they are made here; before, the memory held something else
        if felt or (others and in_place and a.in_place):
            result.append((a, b))
            taken = _differing(a.inputs, b.inputs)
            hashes |= taken
            places.update(a.read_at if taken or a.view else ())
    return result[::-1]


def _differing(ours: list[str], theirs: list[str]) -> set[str]:
    """The hashes of the first that are others in the second."""
    return {str(a) for a, b in zip_longest(ours, theirs) if a != b}
