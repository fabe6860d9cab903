"""Named rules that say why two sides of a port do not agree.

A rule computes what both sides should have, by two formulas of which each is one side's: it speaks only where each side's
arrays follow from its own formula, and not from the other one.

case         rules, and what they look at
formulas     formulas of which each side must follow from its own one
data         the batch: order, normalization, classes
initial      initial weights: distributions, layouts
images       padding, pooling, resizing
layers       a layer, or what lies between two: norms, activations, dropout, layouts
attention    attention: rotary embeddings, precision; the norm's place
recurrent    the order of gates
losses       the loss: sums, masks, smoothing
steps        optimizers: bias correction, epsilon, decay, clipping, the first rate
running      running averages: momentum, variance
"""

from repro.port.causes import attention, data, images, initial, layers, losses, recurrent, running, steps
from repro.port.causes.case import Case, Reason, Rule

__all__ = ["GROUPS", "RULES", "Case", "Reason", "Rule", "reason"]

GROUPS = (data, initial, recurrent, images, layers, attention, losses, steps, running)
"""Files of rules in the order in which they are asked."""
RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS for rule in group.RULES)


def reason(case: Case) -> Reason | None:
    """The cause by the first rule that knows one; None where none does."""
    return next((known for rule in RULES if (known := rule(case))), None)
