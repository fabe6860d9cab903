"""Numbers of a step that differ.

Backward passes, the scale of the loss, the options of each group; the counters of schedules say why.
"""

from collections import Counter
from dataclasses import dataclass

from repro.compare.difference import decides
from repro.compare.names import number_of
from repro.compare.pairs import Pair, natural
from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.compare.reasons.draws import batches_of_others
from repro.record.lines import PASSES, SCALARS, SCALE, Process

SCALER = "scaler."
UNKNOWN = "a number that cannot be read"


@dataclass(frozen=True)
class Number:
    """A number that differs at a step: in both runs, and where the first run had the second one's value."""

    name: str
    step: int
    a: str
    b: str
    old: int | None
    """The first step until which the whole run had come, and before this one, with the value that the resumed one has."""

    def sentence(self, case: Case) -> str:
        """`0.group 0.lr` at step 9 of the resumed run is 0.1, that of step 1 of the whole run, not 0.05."""
        a, b = case.pair.called
        of_old = f", that of step {self.old} of {a}" if self.old else ""
        return f"`{self.name}` at step {self.step - case.pair.offset} of {b} is {self.b}{of_old}, not {self.a}"


@rule(HASHES, "save GradScaler's state_dict with the checkpoint, and load it after the scaler was made")
def loss_scale_not_restored(case: Case) -> str | None:
    """A resumed run begins with another scale of the loss, or counts anew until the scale grows.

    Where it skips steps for that, their batches are gone, and its first one is of a later step.
    """
    first = case.pair.offset + 1
    skipped = case.first_resumed and case.channel == "batch" and _is_of_later_batches(case.pair, first)
    names = case.pair.differing(first, SCALARS) if skipped else case.found.names
    if not (skipped or _resumed(case)) or not {SCALE, PASSES} & {*names}:
        return None
    a, b = case.pair.called
    ours, theirs = (_first_scale(case, process, step) for process, step in ((case.pair.a, first), (case.pair.b, 1)))
    if ours is not None and theirs is not None and ours != theirs:
        of_old = f", as {a} began" if theirs == _first_scale(case, case.pair.a, 1) else ""
        return f"{b} begins with the loss scaled by {theirs}{of_old}, where {a} scales it by {ours}: GradScaler was not restored"
    if skipped or SCALE not in names or PASSES in case.pair.differing(first, SCALARS):
        return None
    counters = _differing(case, first, SCALER)
    return f"{counters[0].sentence(case)}: GradScaler was not restored" if counters else None


@rule(HASHES, "write checkpoints only after an optimizer's step, or save the gradients that were accumulated")
def accumulation_window_not_saved(case: Case) -> str | None:
    """The first step of a resumed run has fewer backward passes, and all later steps of both have as many as always."""
    if not case.first_resumed or case.channel != SCALARS or PASSES not in case.found.names:
        return None
    pair, following = case.pair, [step for step in case.pair.steps() if step > case.step]
    ours, theirs = _passes(pair, case.step)
    usual = Counter(code for step in pair.a.of(SCALARS).values() if (code := step.get(PASSES))).most_common(1)
    both = pair.hashes(case.step, SCALARS)
    if not usual or not both or both[0].get(PASSES) != usual[0][0] or not 0 < theirs < ours:
        return None
    if not following or any(PASSES in pair.differing(step, SCALARS) for step in following):
        return None
    if pair.hashes(case.step, "gradients") and not pair.differing(case.step, "gradients"):
        return None
    a, b = pair.called
    return (
        f"the first step of {b} was made of {theirs} backward pass{'es' if theirs > 1 else ''}, in {a} of {ours}: "
        "the gradients of a half-done accumulation window were not saved"
    )


@rule(HASHES, "save the schedule's state_dict with the checkpoint, and load it after the schedule was made")
def schedule_not_restored(case: Case) -> str | None:
    """An option of the optimizer is that of another step, or its schedule counts from another one, in a resumed run."""
    options = [name for name in case.found.names if number_of(name)]
    if not _resumed(case) or not options:
        return None
    first = _number(case, options[0], case.step)
    counters = counters_begun_anew(case, case.pair.offset + 1) or counters_begun_anew(case, case.step)
    if not counters and (first.old is None or not _moves(case, first.name)):
        return None
    late = " or was saved before its step" if first.old and _had(case, first.name, case.pair.offset, first.b) else ""
    counter = f", and {counters[0].sentence(case)}" if counters else ""
    return f"{first.sentence(case)}{counter}: the schedule was not restored{late}"


@rule(HASHES, "let the schedule hold the optimizer that trains: load its state into one that was made with it")
def rate_stays(case: Case) -> str | None:
    """An option of the optimizer stays as it is in a resumed run, from its first step on, though in the whole run it changes."""
    name = next((name for name in case.found.names if number_of(name)), None)
    if name is None or not _resumed(case):
        return None
    first = _number(case, name, case.pair.offset + 1)
    values = {numbers.get(name) for step, numbers in case.pair.b.of(SCALARS).items() if step}
    if case.step == case.pair.offset + 1 or first.a != first.b or len(values) > 1 or len(case.pair.b.of(SCALARS)) < 3:
        return None
    a, b = case.pair.called
    return (
        f"`{name}` is {first.b} in all steps of {b}, which goes on with the value of {a}, where it changes: "
        "no schedule sets it any more, or one that acts on another optimizer"
    )


@rule(HASHES, "give both runs the same options")
def other_numbers_of_a_step(case: Case) -> str | None:
    """A step has another number of backward passes, another learning rate or another scale of the loss."""
    if case.channel != SCALARS:
        return None
    a, b = case.pair.called
    number = _number(case, case.found.names[0], case.step)
    return f"`{number.name}` of step {case.step} is {number.a} in {a}, and {number.b} in {b}"


def _is_of_later_batches(pair: Pair, first: int) -> bool:
    """True if the first step of a resumed run has the batch of a later step, or several, the first of which is right."""
    if batches_of_others(pair, first)[0] > first:
        return True
    ours, theirs = (process.of("batch").get(step, {}) for process, step in ((pair.a, first), (pair.b, 1)))
    right = {name: code for name, code in theirs.items() if name.partition(".")[0] == "0"}
    return bool(right) and len(theirs) > len(ours) and right.items() <= ours.items()


def _resumed(case: Case) -> bool:
    """True if a number differs in a resumed run, at any of its steps."""
    return case.channel == SCALARS and case.pair.offset > 0 and case.step > case.pair.offset


def _number(case: Case, name: str, step: int) -> Number:
    ours, theirs = case.pair.hashes(step, SCALARS) or ({}, {})
    code = theirs.get(name, "")
    earlier = (old for old in sorted(case.pair.a.of(SCALARS)) if 0 < old <= case.pair.offset)
    old = next((old for old in earlier if case.pair.a.of(SCALARS)[old].get(name) == code), None)
    texts = case.pair.a.texts.get(ours.get(name, ""), UNKNOWN), case.pair.b.texts.get(code, UNKNOWN)
    return Number(name, step, *texts, old)


def _differing(case: Case, step: int, prefix: str = "") -> list[Number]:
    names = case.pair.differing(step, SCALARS)
    return [_number(case, name, step) for name in sorted(names, key=natural) if name.startswith(prefix)]


def counters_begun_anew(case: Case, step: int) -> list[Number]:
    """Counters of schedules and callbacks that count from an earlier step. What is private to a class may begin anew in a right one."""
    numbers = _differing(case, step)
    return [
        one
        for one in numbers
        if one.old and not decides(one.name) and not one.name.startswith(SCALER) and "._" not in one.name
    ]


def _first_scale(case: Case, process: Process, step: int) -> float | None:
    """The scale with which the passes of a step began: each step that was skipped for infinite gradients lowered it.

    None where other passes came in between: a step that is skipped has GradScaler count from 0.
    """
    numbers = {name: process.texts.get(code, "") for name, code in process.of(SCALARS).get(step, {}).items()}
    usual = Counter(texts.get(PASSES) for texts in case.pair.a.of(SCALARS).values()).most_common(1)[0][0]
    try:
        scale, factor = float(numbers[SCALE]), float(numbers["scaler.backoff_factor"])
        skipped, odd = divmod(int(numbers[PASSES]), int(case.pair.a.texts[usual or ""]))
        if odd or skipped < 1 or (skipped > 1 and numbers["scaler.growth_tracker"] != "0"):
            return None
        return scale / factor ** (skipped - 1)
    except (KeyError, ValueError, ArithmeticError):
        return None


def _passes(pair: Pair, step: int) -> tuple[int, int]:
    """The number of backward passes of a step, in both."""
    ours, theirs = pair.hashes(step, SCALARS) or ({}, {})
    texts = pair.a.texts.get(ours.get(PASSES, ""), ""), pair.b.texts.get(theirs.get(PASSES, ""), "")
    a, b = (int(text) if text.isdecimal() else 0 for text in texts)
    return a, b


def _moves(case: Case, name: str) -> bool:
    """True if a number changes in the course of the whole run."""
    return len({numbers.get(name) for numbers in case.pair.a.of(SCALARS).values()}) > 1


def _had(case: Case, name: str, step: int, text: str) -> bool:
    """True if a number had this value at a step of the whole run."""
    code = case.pair.a.of(SCALARS).get(step, {}).get(name, "")
    return case.pair.a.texts.get(code) == text


RULES: tuple[Rule, ...] = (
    loss_scale_not_restored,
    accumulation_window_not_saved,
    schedule_not_restored,
    rate_stays,
    other_numbers_of_a_step,
)
