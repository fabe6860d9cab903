"""Names of arrays that another run calls otherwise.

A model that is loaded may have other names, as Keras' `dense/bias` for `sequential/dense/bias`, and so has a layer that
was renamed. Those names that only one of two runs has are paired in the order of the framework, optimizer by optimizer,
and believed to be of the same arrays where half of them or more have equal hashes. So an array that differs keeps its
name, and two that were swapped differ.
"""

from collections.abc import Iterable, Mapping

from repro.record.lines import CHANGED, STARTS, Process

WEIGHTS = (STARTS, "weights", "gradients", CHANGED)
FAMILIES = (WEIGHTS, ("optimizer",), ("buffers",), ("generator",))
"""Channels in which one array has one name, those first that have all arrays. Of the generators, those that layers have."""

Names = dict[str, dict[str, str]]
"""The names of the first run, by channel and by name of the second run."""


def number_of(name: str) -> str:
    """The number of the optimizer that a name begins with; none where repro.watch saw it."""
    number, dot, _ = name.partition(".")
    return number if dot and number.isdecimal() else ""


def renumbered(name: str, number: str) -> str:
    """The name with another number of its optimizer."""
    return f"{number}.{name.partition('.')[2]}" if number_of(name) else name


def without_counterpart(same: Mapping[str, str], own: Iterable[str]) -> dict[str, str]:
    """The names whose counterpart is not among `own`, and those that are nobody's counterpart, in order.

    None where these are not equally many.
    """
    known, wanted = dict.fromkeys(own), {*same.values()}
    new, old = [name for name in same if same[name] not in known], [name for name in known if name not in wanted]
    return dict(zip(new, old, strict=True)) if len(new) == len(old) else {}


def renamed(a: Process, b: Process, after: int) -> Names:
    """The names of `b`, whose first step comes after this one of `a`, that have another one there."""
    result: Names = {}
    numbers: set[str] = set()
    for family in FAMILIES:
        pairs: dict[str, str] = {}
        ours, theirs = _by_optimizer(a, family, after), _by_optimizer(b, family, 0)
        for number in ours.keys() & theirs.keys():
            new = without_counterpart({name: name for name in theirs[number]}, ours[number])
            fitting = sum(_fits(a, b, after, family, *names) for names in new.items())
            if new and (number in numbers or 2 * fitting >= len(new)):
                pairs |= new
                numbers |= {number} if family is WEIGHTS else set()
        result |= dict.fromkeys(family, pairs) if pairs else {}
    return result


def _by_optimizer(process: Process, family: Iterable[str], after: int) -> dict[str, dict[str, None]]:
    """The names in some channels from a step on, by optimizer, in the order in which they come."""
    families: dict[str, dict[str, None]] = {}
    for step in sorted(step for step in process.steps if step >= after):
        for channel in family:
            for name in process.steps[step].get(channel, {}):
                if channel != "generator" or number_of(name):
                    families.setdefault(number_of(name), {})[name] = None
    return families


def _fits(a: Process, b: Process, after: int, family: Iterable[str], theirs: str, ours: str) -> bool:
    """True if two names have an equal hash where `b` begins, or where it first has this one."""
    begun = b.steps.get(0, {}).get(STARTS, {}).get(theirs)
    places = [(after, "weights"), (after + 1, CHANGED), (after, STARTS)] if begun and family is WEIGHTS else []
    if any(a.steps.get(step, {}).get(channel, {}).get(ours) == begun for step, channel in places):
        return True
    firsts = [
        (channel, next((step for step, names in sorted(b.of(channel).items()) if step and theirs in names), None))
        for channel in family
    ]
    return any(
        a.steps.get(after + step, {}).get(channel, {}).get(ours) == b.steps[step][channel][theirs]
        for channel, step in firsts
        if step is not None
    )
