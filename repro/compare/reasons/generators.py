"""Generators of a resumed run that were restored, and yet are not as in the whole one."""

from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.record.lines import Process
from repro.text import listed


@rule(HASHES, "set the network to train mode after each evaluation, and draw in a resumed run what the whole run draws")
def nothing_is_drawn(case: Case) -> str | None:
    """A generator of a resumed run stays in the state that it was saved in, from equal batches: its steps do not draw from it."""
    names = undrawn(case)
    if case.channel != "generator" or not names:
        return None
    a, b = case.pair.called
    return (
        f"the generator {listed(names)} was restored: {b} has it in the state of step {case.pair.offset} of {a}, but draws nothing from it in its steps, "
        "as the whole run does: dropout is off, as in a network that is left in eval mode, or something else is left out"
    )


@rule(HASHES, "save the generators of each rank, and give each its own when resuming")
def generator_of_another_process(case: Case) -> str | None:
    """A generator of a resumed run is in the state that another process of the whole run has, such as another rank."""
    other = of_another_process(case)
    if not case.draws or other is None:
        return None
    name, process = other
    a, b = case.pair.called
    whose = "another process" if process.rank is None else f"rank {process.rank}"
    return f"the generator `{name}` at step {case.step - case.pair.offset} of {b} is that of {whose} of {a} at step {case.step}: the state of another process was restored"


RULES: tuple[Rule, ...] = (nothing_is_drawn, generator_of_another_process)


def of_another_process(case: Case) -> tuple[str, Process] | None:
    """A generator of the first resumed step with the state that another process of the whole run has at this step."""
    both = case.pair.hashes(case.step, "generator") if case.first_resumed else None
    for name in case.generators if both else ():
        for process in case.pair.beside:
            if both and process.of("generator").get(case.step, {}).get(name) == both[1].get(name, ""):
                return name, process
    return None


def undrawn(case: Case) -> list[str]:
    """The generators that draw nothing in the first two steps of a resumed run, though they are as after the step before."""
    whole, rest = case.pair.a.of("generator"), case.pair.b.of("generator")
    steps = [case.pair.offset + later for later in (0, 1, 2)]
    if not case.first_resumed or not {*steps} <= whole.keys() or not {1, 2} <= rest.keys():
        return []

    def stays(name: str) -> bool:
        ours, theirs = [whole[step].get(name) for step in steps], {rest[step].get(name) for step in (1, 2)}
        return theirs == {ours[0]} and len({*ours}) == len(ours)

    return [name for name in case.generators if stays(name)]
