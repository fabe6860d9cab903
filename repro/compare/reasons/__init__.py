"""Named rules that say why two records diverge.

Each rule looks at the first difference, and either knows the reason or leaves it to the next rule. A reason that the
hashes prove is stated; one that they only allow is called a guess.

case         rules, and what they look at
course       numbers of steps, and the weights that a run starts from
scalars      numbers of a step: backward passes, scale, rates
rounded      states of fewer bits
copies       averages of the weights
gradients    gradients that only one computes
counters     counters that begin anew, and decide later
later        a later step of a resumed run
generators   generators that were restored
draws        other batches, and generators in another state
states       states that a resumed run begins with
resumed      the first step of a resumed run
beginning    two runs from the beginning
whole        files, and another arithmetic
"""

from repro.compare.difference import Difference
from repro.compare.reasons import (
    beginning,
    copies,
    counters,
    course,
    draws,
    generators,
    gradients,
    later,
    resumed,
    rounded,
    scalars,
    states,
    whole,
)
from repro.compare.reasons.case import Case, Reason, Rule
from repro.compare.reasons.whole import other_numerics

__all__ = ["GROUPS", "RULES", "Reason", "Rule", "other_numerics", "reason"]

GROUPS = (
    counters,
    course,
    scalars,
    rounded,
    copies,
    states,
    gradients,
    later,
    generators,
    draws,
    resumed,
    beginning,
)
"""Files of rules in the order in which they are asked."""
RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS for rule in group.RULES)
"""The rules; the last one always knows a reason."""


def reason(difference: Difference) -> Reason:
    """The reason of a difference, by the first rule that knows one."""
    if difference.pair is None or difference.step is None:
        return next(known for rule in whole.RULES if (known := rule(difference)))
    case = Case(difference, difference.pair, difference.step)
    return next(known for rule in RULES if (known := rule(case)))
