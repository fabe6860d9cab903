"""Copies of the weights that differ, as averages."""

from repro.compare.reasons.case import GUESS, HASHES, Case, Rule, rule
from repro.record.lines import COPIES, STARTS
from repro.text import listed

SAVE = "save it with the checkpoint, with its counter of updates, and load it when resuming"


@rule(HASHES, SAVE)
def average_not_restored(case: Case) -> str | None:
    """A copy of the weights, as an average, is in a resumed run that of an earlier step, or the weights themselves."""
    both = case.pair.hashes(case.step, COPIES)
    if case.channel != COPIES or not case.first_resumed or not both:
        return None
    a, b = case.pair.called
    theirs = {name: both[1][name] for name in case.found.names}
    earlier = ((step, copies) for step, copies in sorted(case.pair.a.of(COPIES).items()) if step < case.step)
    old = next((step for step, copies in earlier if theirs.items() <= copies.items()), None)
    begun = {code for weights in case.pair.b.of(STARTS).values() for code in weights.values()}
    first = case.pair.a.of(COPIES).get(1, {})
    counters = {name for name, code in theirs.items() if code not in begun and first.get(name) == code}
    if counters < theirs.keys() and {theirs[name] for name in theirs.keys() - counters} <= begun:
        of_old = f"holds the weights that {b} starts from"
    elif old is not None:
        of_old = f"is that of step {old} of {a}"
    else:
        return None
    return f"the copy of the weights in {listed(case.found.names)} {of_old}: as an average, or as what computes, it was not restored"


@rule(GUESS, SAVE)
def other_copies(case: Case) -> str | None:
    """A copy of the weights, as an average, is another one."""
    if case.channel != COPIES:
        return None
    why = (
        "it was not restored, or its counter of updates was not" if case.first_resumed else "it is updated differently"
    )
    return f"the copy of the weights in {case.names} differs, though the weights are equal so far: {why}"


RULES: tuple[Rule, ...] = (average_not_restored, other_copies)
