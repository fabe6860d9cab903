"""The optimizer's state that a resumed run begins with, found elsewhere in the whole run."""

from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.text import listed


@rule(HASHES, "give the optimizer its parameters in one order: a sorted list, not a set")
def optimizer_state_of_other_parameters(case: Case) -> str | None:
    """Before its first step, the optimizer of a resumed run holds the right values for the wrong parameters."""
    ours, theirs = _slots(case)
    moved = [name for name in case.found.names if name in ours and name in theirs]
    if not moved or sorted(ours.values()) != sorted(theirs.values()):
        return None
    a, b = case.pair.called
    name = moved[0]
    owner = next(other for other, code in sorted(ours.items()) if code == theirs[name])
    return (
        f"before its first step the optimizer of {b} holds for `{name}` what that of {a} held for `{owner}` after step {case.step} "
        f"({len(moved)} such): each state went to another parameter, as they are in another order"
    )


@rule(HASHES, "save the weights and the optimizer's state after the same step")
def optimizer_state_of_another_step(case: Case) -> str | None:
    """Before its first step, the optimizer of a resumed run holds what it held after another step of the whole run."""
    ours, theirs = _slots(case)
    names = [name for name in case.found.names if name in ours and name in theirs]
    if not names or ours.keys() != theirs.keys():
        return None
    for step, held in sorted(case.pair.a.of("optimizer").items()):
        if all(held.get(name) == theirs[name] for name in names):
            a, b = case.pair.called
            return (
                f"before its first step the optimizer of {b} holds in {listed(names)} what that of {a} held after step {step}, "
                f"though it goes on after step {case.step}"
            )
    return None


RULES: tuple[Rule, ...] = (optimizer_state_of_other_parameters, optimizer_state_of_another_step)


def _slots(case: Case) -> tuple[dict[str, str], dict[str, str]]:
    """What both optimizers hold where a resumed run begins; nothing elsewhere."""
    begins = case.channel == "optimizer" and case.resumed and not case.first_resumed
    return (case.pair.hashes(case.step, "optimizer") if begins else None) or ({}, {})
