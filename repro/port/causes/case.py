"""What rules about ports look at."""

from dataclasses import dataclass, field

import numpy as np

from repro.compare.reasons.case import ARRAYS, GUESS, Reason, Rule, rule
from repro.port.forward import Forward, Place
from repro.port.matching import Match, Matching
from repro.port.side import Side
from repro.port.updates import Update

__all__ = ["ARRAYS", "GUESS", "Case", "Reason", "Rule", "Steps", "round_number", "rule"]

BATCH, INITIAL, FORWARD, LOSS = "batch", "initial weights", "forward pass", "loss"
GRADIENTS, OPTIMIZER, WEIGHTS, BUFFERS = "gradients", "optimizer", "weights of step 2", "buffers"
QUANTITIES = (BATCH, INITIAL, FORWARD, LOSS, GRADIENTS, OPTIMIZER, WEIGHTS, BUFFERS)
"""What is compared, in this order."""

Steps = list[tuple[Match, Update, Update]]
"""The first step of weights that belong together: of A, and of B in A's layout."""


@dataclass
class Case:
    """The first quantity that two sides do not agree in, and all that is known of both."""

    quantity: str
    sides: tuple[Side, Side]
    matching: Matching
    names: list[str] = field(default_factory=list)
    """What differs in it, by A's names."""
    batch: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    """Parts of the batch that do not agree, B's in A's layout where the shapes allow that."""
    forward: Forward | None = None
    place: Place | None = None
    losses: tuple[float, float] | None = None
    logits: tuple[np.ndarray, np.ndarray] | None = None
    """The results of both models, which agree."""
    inputs: tuple[list[np.ndarray], list[np.ndarray]] = ((), ())  # type: ignore[assignment]
    """All that both models and steps were given."""
    steps: Steps = field(default_factory=list)
    buffers: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    """Buffers that do not agree: name, before, and after of both sides."""

    def in_words(self, ours: str, theirs: str) -> str:
        return f"{ours} in A, {theirs} in B"


def round_number(value: float, digits: int = 2, tolerance: float = 2e-4) -> float | None:
    """The number of few digits that somebody would have typed, if one is as near as rounding allows; else None."""
    if not np.isfinite(value) or value == 0:
        return None
    near = float(f"{value:.{digits - 1}e}")
    return near if abs(near - value) <= tolerance * abs(value) else None
