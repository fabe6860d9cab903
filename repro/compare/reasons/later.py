"""A later step of a resumed run."""

from repro.compare.reasons.case import GUESS, Case, Rule, rule
from repro.text import listed


@rule(GUESS, "save the order of the epoch that comes next, the schedule and every counter with the checkpoint")
def resumed_and_differs_later(case: Case) -> str | None:
    """The first steps of a resumed run are equal, and a later one is not."""
    steps = [step for step in case.pair.steps() if step < case.step] if case.pair.offset else []
    if not steps or case.found.lengths:
        return None
    a, b = case.pair.called
    drawn = f", where the generator {listed(case.generators)} is in another state" if case.generators else ""
    return (
        f"{b} is equal to {a} until step {steps[-1]}, and differs at step {case.step}, in the {case.channel}{drawn}: "
        "what was not restored is used only then, as the order of another epoch, a schedule or a counter; or chance decides"
    )


RULES: tuple[Rule, ...] = (resumed_and_differs_later,)
