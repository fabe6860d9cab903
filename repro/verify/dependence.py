"""Tests of whether results depend on a generator.

A resumed run whose generator is in another state may differ for another reason, as its place in the data. So a run of the
whole command draws one more number where the resumed one continued: if the next batch, or the results of the next step,
then differ, the generator decides. If batches are equal though numbers were drawn early, it does not.
"""

from collections.abc import Callable

from repro.compare.difference import Difference
from repro.compare.pairs import Pair, pairs
from repro.compare.reasons.case import RUNS, Case
from repro.compare.reasons.draws import old_batches, old_state
from repro.compare.reasons.generators import of_another_process, undrawn
from repro.record.record import Record
from repro.text import listed
from repro.verify.questions import Change
from repro.verify.trial import Trial

NAME = "generator not restored, and it decides"
MEANING = "a run that draws one number more where the resumed one goes on has another next batch, or other results from an equal one"
REMEDY = "save the state of each random generator with the checkpoint, and set it when resuming"
EVIDENCE = RUNS
RESULTS = ("gradients", "optimizer", "weights")


def generators(difference: Difference) -> list[str]:
    """Generators that differ in the first step of a resumed run, and that a run can draw from."""
    pair, step = difference.pair, difference.step
    first = pair is not None and pair.offset and step == pair.offset + 1
    if pair is None or step is None or not first or difference.channel not in ("batch", "generator"):
        return []
    moving = pair.a.moving() | pair.b.moving()
    drawn = [name for name in pair.differing(step, "generator") if name in moving]
    return [name for name in drawn if name in ("torch", "numpy", "python") or name.startswith("cuda:")]


def said(difference: Difference, whole: Record, run: Callable[[Change], Trial]) -> str | None:
    """Tests by runs if a generator decides and was not restored, or if batches depend on none; None otherwise."""
    if difference.pair is None or difference.step is None:
        return None
    case, batches = Case(difference, difference.pair, difference.step), difference.channel == "batch"
    without: list[bool] = []
    if of_another_process(case) or (not batches and undrawn(case)):
        return None  # the hashes say more
    for name in generators(difference):
        drawn = _pairs(whole, run(_then(name, case.pair.offset)))
        if any(_decides(pair, name, case.step, batches) for pair in drawn):
            what = "the batch depends" if batches else "what the step computes depends"
            return f"when {case.pair.called[1]} goes on, the generator `{name}` {_state(case, name)}; {what} on it, as a run shows that drew one number more then; {REMEDY}"
        early = _pairs(whole, run(_early(name))) if batches else []
        without.append(bool(early) and all(_is_independent(pair, name) for pair in early))
    if not batches or not without or not all(without):
        return None
    named = listed(generators(difference))
    return f"{old_batches(case)}; the generator {named} does not decide: a run that drew more numbers from it had equal batches"


def _pairs(whole: Record, drawn: Trial) -> list[Pair]:
    return pairs(whole, drawn.record, False) if drawn.record else []


def _then(name: str, step: int) -> Change:
    """One number more where the resumed run goes on."""
    return Change(f"one number more from {name} after step {step}", (("REPRO_CHANGES", f"draw={name}@{step}"),))


def _early(name: str) -> Change:
    """One number more before any batch, and after the first step."""
    return Change(f"more numbers from {name} early", (("REPRO_CHANGES", f"draw_first={name},draw={name}@1"),))


def _state(case: Case, name: str) -> str:
    """Describes the state of a generator in the first resumed step."""
    old = old_state(case, [name])
    if old is None:
        return "is in another state: it was not restored, or something drew from it since"
    _, step = old
    if step == case.pair.offset:
        return f"is still in the state of step {step}: less was drawn from it, or it was restored after it was drawn from, or as it was before that step"
    if step < case.step:
        return f"is in the state of step {step} again: it was not restored"
    return f"is in the state of step {step} already: more was drawn from it since it was saved"


def _decides(pair: Pair, generator: str, step: int, batches: bool) -> bool:
    """True if another batch, or other results from an equal batch, follow at once from another state."""
    if next((one for one in pair.steps() if generator in pair.differing(one, "generator")), None) != step:
        return False
    batch = bool(pair.differing(step, "batch"))
    return batch if batches else not batch and any(pair.differing(step, channel) for channel in RESULTS)


def _is_independent(pair: Pair, generator: str) -> bool:
    """True if all batches are equal though the generator is in another state."""
    drew = any(generator in pair.differing(step, "generator") for step in pair.steps())
    return drew and not any(pair.differing(step, "batch") for step in pair.steps())
