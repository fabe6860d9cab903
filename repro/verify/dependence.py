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
from repro.verify.command_runs import Trial
from repro.verify.questions import Change

NAME = "generator not restored, and it decides"
MEANING = "a run that draws one number more from the generator has other batches, or other results from equal batches"
REMEDY = "save the state of each random generator with the checkpoint, and set it when resuming"
EVIDENCE = RUNS
LABEL = "one number more from {}"
UNKNOWN = "is in another state: it was not restored, or something drew from it since"
RESULTS = ("gradients", "optimizer", "weights")


def change(difference: Difference) -> Change | None:
    """What to run; None where no generator differs in the first step of a resumed run, or one that nobody can draw from."""
    pair, step = difference.pair, difference.step
    if pair is None or step is None or not pair.offset or step != pair.offset + 1:
        return None
    drawn = [name for name in pair.differing(step, "generator") if name in pair.a.moving() | pair.b.moving()]
    named = [name for name in drawn if name in ("torch", "numpy", "python") or name.startswith("cuda:")]
    if not named or difference.channel not in ("batch", "generator"):
        return None
    how = "draw_first" if difference.channel == "batch" else "draw"
    label = LABEL.format(named[0]) + (", before any batch" if how == "draw_first" else "")
    return Change(label, (("REPRO_CHANGES", f"{how}={named[0]}"),))


def said(difference: Difference, whole: Record, run: Callable[[Change], Trial]) -> str | None:
    """What a run shows: that the generator decides, and was not restored, or that batches do not depend on it."""
    made = change(difference)
    if made is None or difference.pair is None or difference.step is None:
        return None
    drawn, batches = run(made).record, difference.channel == "batch"
    generator = made.environment[0][1].partition("=")[2]
    found = [_depends(pair, generator, batches) for pair in pairs(whole, drawn, False)] if drawn else []
    case = Case(difference, difference.pair, difference.step)
    if any(found):
        _, b = difference.pair.called
        what = "the batches depend" if batches else "what a step computes depends"
        old = old_state(case)
        state = _state(old[1], difference.step) if old else UNKNOWN
        return f"when {b} goes on, the generator `{generator}` {state}; {what} on it, as a run shows that drew one number more; {REMEDY}"
    if batches and False in found:
        return f"{old_batches(case)}; the generator `{generator}` does not decide: a run that drew one number more from it had equal batches"
    return None


def _state(found: int, step: int) -> str:
    """What is known of a generator that is in the state of another step."""
    if found < step:
        return f"is in the state of step {found} again: it was not restored"
    return f"is in the state of step {found} already: more was drawn from it since it was saved"


def _depends(pair: Pair, generator: str, batches: bool) -> bool | None:
    """Whether batches differ, or else results from equal batches, where they first do; None where nothing more was drawn."""
    drew = False
    for step in pair.steps():
        drew = drew or generator in pair.differing(step, "generator")
        if drew and pair.differing(step, "batch"):
            return batches
        if drew and any(pair.differing(step, channel) for channel in RESULTS):
            return not batches
    return False if drew else None
