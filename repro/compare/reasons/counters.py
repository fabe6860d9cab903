"""Counters that a resumed run begins anew, where no number of a step differs: what they decide comes later."""

import re

from repro.compare.difference import Difference
from repro.compare.reasons.case import GUESS, HASHES, Case, Rule, rule
from repro.compare.reasons.scalars import counters_begun_anew

LEARNING_RATE = "learning_rate"
"""The end of the name that Keras' optimizers give it, among their state."""
OF_RATES = re.compile("LR|[Rr]ate|[Pp]lateau|[Ss]chedule")
"""Parts of the names of callbacks that set the learning rate."""
SAVE = "save the state of each callback with the checkpoint, and set it when resuming"


@rule(
    HASHES,
    "save what ends the training with the checkpoint: the number of epochs or steps, early stopping's best value",
)
def end_of_training_not_restored(case: Case) -> str | None:
    """All steps are equal, and a resumed run ends after another one: a counter begins anew, or it takes as many as a whole run."""
    lengths, offset = case.found.lengths, case.pair.offset
    if not lengths or not offset:
        return None
    a, b = case.pair.called
    counters = [one for one in counters_begun_anew(case, offset + 1) if "stop" in one.name.lower()]
    if counters:
        why = counters[0].sentence(case)
    elif lengths[1] - offset == lengths[0]:
        why = f"{b} takes {lengths[0]} steps, as many as {a} in all"
    else:
        return None
    return (
        f"all steps are equal until {a} ends after step {lengths[0]}, or {b} after step {lengths[1]}; {why}: "
        "what ends the training was not restored"
    )


@rule(HASHES, SAVE)
def callback_not_restored(case: Case) -> str | None:
    """The learning rate of Keras' optimizer alone differs, steps after resuming, and a counter of its callback begins anew."""
    names, first = case.found.names, case.pair.offset + 1
    later = case.pair.offset > 0 and case.step > first
    if case.channel != "optimizer" or not later or not all(name.endswith(LEARNING_RATE) for name in names):
        return None
    counters = [one for one in counters_begun_anew(case, first) if OF_RATES.search(one.name)]
    if not counters:
        return None
    return f"{case.names} differs at step {case.step}, and {counters[0].sentence(case)}: that callback was not restored"


@rule(GUESS, SAVE)
def files_of_a_callback(difference: Difference) -> str | None:
    """Outputs of a resumed run differ, all of its steps are equal, and a counter of a callback begins anew."""
    pair = difference.beside
    if pair is None or not pair.offset:
        return None
    case = Case(difference, pair, pair.offset + 1)
    counters = counters_begun_anew(case, case.step)
    if not counters:
        return None
    inside = difference.inside or "the files differ"
    return f"{inside}, though every weight that was hashed is equal; {counters[0].sentence(case)}: it was not restored, so another step may have been kept as the best"


RULES: tuple[Rule, ...] = (end_of_training_not_restored, callback_not_restored)
