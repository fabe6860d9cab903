"""Gradients that only one of two runs computes."""

from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.text import listed


@rule(HASHES, "train the same weights: set requires_grad, or what freezes layers, again when resuming")
def gradients_missing(case: Case) -> str | None:
    """Some weights have no gradient in one run, and all gradients that both have are equal."""
    both = case.pair.hashes(case.step, "gradients") if case.channel == "gradients" else None
    if both is None or case.pair.partial:
        return None
    names = {*case.found.names}
    (ours, theirs), (a, b) = both, case.pair.called
    if names <= {*ours} - {*theirs}:
        who, other = a, b
    elif names <= {*theirs} - {*ours}:
        who, other = b, a
    else:
        return None
    these = "these weights are" if len(names) > 1 else "this weight is"
    return (
        f"{other} computes no gradients of {listed(case.found.names)} at step {case.step}, as {who} does, and all others are equal: "
        f"{these} frozen there, or not used by the loss"
    )


RULES: tuple[Rule, ...] = (gradients_missing,)
