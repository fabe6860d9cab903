"""Whether results depend on a generator.

A resumed run whose generator is in another state may differ for another reason. In one more run of the whole command one
number more is drawn from that generator: if the batches, or the results of a step, are others then, they depend on it.
"""

from collections.abc import Callable

from repro.compare.difference import Difference
from repro.compare.pairs import Pair, pairs
from repro.compare.reasons.case import RUNS, Case
from repro.compare.reasons.draws import old_batches, old_state
from repro.record.record import Record
from repro.text import listed
from repro.verify.command_runs import Trial
from repro.verify.questions import Change

NAME = "generator not restored, and it decides"
MEANING = "a run that draws one number more from the generator has other batches, or other results from equal batches"
REMEDY = "save the state of each random generator with the checkpoint, and set it when resuming"
EVIDENCE = RUNS
RESULTS = ("gradients", "optimizer", "weights")


def generators(difference: Difference) -> list[str]:
    """Those that differ in the first step of a resumed run, and that a run can draw from."""
    pair, step = difference.pair, difference.step
    first = pair is not None and pair.offset and step == pair.offset + 1
    if pair is None or step is None or not first or difference.channel not in ("batch", "generator"):
        return []
    moving = pair.a.moving() | pair.b.moving()
    drawn = [name for name in pair.differing(step, "generator") if name in moving]
    return [name for name in drawn if name in ("torch", "numpy", "python") or name.startswith("cuda:")]


def said(difference: Difference, whole: Record, run: Callable[[Change], Trial]) -> str | None:
    """What runs show: that a generator decides, and was not restored, or that batches depend on none of them."""
    if difference.pair is None or difference.step is None:
        return None
    case, batches = Case(difference, difference.pair, difference.step), difference.channel == "batch"
    without = []
    for name in generators(difference):
        drawn = run(_change(name, batches)).record
        found = [_depends(pair, name, batches) for pair in pairs(whole, drawn, False)] if drawn else []
        if any(found):
            what = "the batches depend" if batches else "what a step computes depends"
            return f"when {difference.pair.called[1]} goes on, the generator `{name}` {_state(case, name)}; {what} on it, as a run shows that drew one number more; {REMEDY}"
        without += [False in found]
    if not batches or not without or not all(without):
        return None
    named = listed(generators(difference))
    return f"{old_batches(case)}; the generator {named} does not decide: a run that drew one number more from it had equal batches"


def _change(name: str, batches: bool) -> Change:
    """One number more, before the first batch where batches are asked about, or else after the first step."""
    how, when = ("draw_first", ", before any batch") if batches else ("draw", "")
    return Change(f"one number more from {name}{when}", (("REPRO_CHANGES", f"{how}={name}"),))


def _state(case: Case, name: str) -> str:
    """What is known of the state of a generator in the first resumed step."""
    old = old_state(case, [name])
    if old is None:
        return "is in another state: it was not restored, or something drew from it since"
    _, step = old
    if step < case.step:
        return f"is in the state of step {step} again: it was not restored"
    return f"is in the state of step {step} already: more was drawn from it since it was saved"


def _depends(pair: Pair, generator: str, batches: bool) -> bool | None:
    """Whether batches differ, or else the first results from equal batches; None where nothing more was drawn."""
    if not any(generator in pair.differing(step, "generator") for step in pair.steps()):
        return None
    for step in pair.steps():
        if pair.differing(step, "batch"):
            return batches
        if not batches and any(pair.differing(step, channel) for channel in RESULTS):
            return True
    return False
