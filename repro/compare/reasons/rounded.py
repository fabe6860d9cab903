"""States that a resumed run begins with, rounded to fewer bits."""

from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.record.lines import COPIES, STARTS, Process
from repro.text import listed

TYPES = ("bfloat16", "float16")


@rule(HASHES, "write the checkpoint in the type that is trained, and cast a copy for other uses")
def rounded_by_the_checkpoint(case: Case) -> str | None:
    """What differs where a resumed run begins holds only numbers of bfloat16 or float16, though its type is float32, and in the whole run it does not."""
    held = _held(case)
    if held is None:
        return None
    what, names = held
    kind = rounded_to(case, names)
    if kind is None:
        return None
    a, b = case.pair.called
    return (
        f"{what} that {b} begins with hold only numbers of {kind} ({listed(names)}), those of {a} do not: "
        f"rounded to {kind} in the checkpoint, or as it is read"
    )


def rounded_to(case: Case, names: list[str], side: int = 1) -> str | None:
    """The type whose numbers alone some arrays of the first difference hold in one run, the second, and none in the other."""
    places = {name: case.pair.places(case.step, case.channel, name) for name in names}
    for kind in TYPES:
        both = [
            {name for name, sides in places.items() if name in _rounded(process, kind, *sides[number])}
            for number, process in enumerate((case.pair.a, case.pair.b))
        ]
        if both[side] == {*names} and not both[1 - side]:
            return kind
    return None


def _held(case: Case) -> tuple[str, list[str]] | None:
    """What a resumed run begins with, in words, and the names that differ; None where something else differs."""
    names = [name for name in case.found.names if not _is_of_the_beginning(case, name)]
    whole = len(names) == len(case.found.names)
    if not names or not whole:
        return None
    if case.resumed and case.channel == STARTS:
        return "the weights", names
    if case.resumed and not case.first_resumed and case.channel == "optimizer":
        return "the optimizer's states", names
    return ("the copies of the weights", names) if case.first_resumed and case.channel == COPIES else None


def _is_of_the_beginning(case: Case, name: str) -> bool:
    """True if the resumed run has what the whole one began with, such as ones."""
    both = case.pair.hashes(case.step, case.channel)
    first = next((of[name] for _, of in sorted(case.pair.a.of(case.channel).items()) if name in of), None)
    return both is not None and both[1].get(name, "") in (first, "")


def _rounded(process: Process, kind: str, step: int, channel: str) -> set[str]:
    """The names in a channel of a step that hold only numbers of a type."""
    line = process.lines.get(step)
    return {*getattr(line, kind).get(channel, [])} if line else set()


RULES: tuple[Rule, ...] = (rounded_by_the_checkpoint,)
