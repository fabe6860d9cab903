"""Results and gradients of one training step's operations."""

from typing import Any

import numpy as np

from repro.trainers.loop import layout

LAYERS = ("conv", "dense")  # operations that have weights


class OperationRecorder:
    """A trainer's arithmetic that also holds the result of each of its operations, in the order of the calls.

    `taps`, where given, are added to the results: zeros, with respect to which JAX differentiates.
    """

    def __init__(self, ops: Any, taps: dict[str, Any] | None = None) -> None:
        self.ops, self.taps = ops, taps
        self.seen: dict[str, Any] = {}

    def __getattr__(self, name: str):
        operation = getattr(self.ops, name)

        def recorded(*operands):
            key = f"{len(self.seen) + 1}. {name}"
            result = operation(*operands)
            self.seen[key] = result if self.taps is None else result + self.taps[key]
            return self.seen[key]

        return recorded


def in_order(forward: dict[str, np.ndarray], backward: dict[str, np.ndarray], weights: dict[str, np.ndarray]):
    """All arrays of a step, {what it is: array}, in the order in which they are computed.

    `forward` holds what the operations returned, `backward` the gradients with respect to that, by the same names, and
    `weights` the gradients with respect to the weights, which follow upon that of their layer's result.
    """
    arrays = dict(forward)
    layers = list(dict.fromkeys(name.split(".")[0] for name in weights))
    for name in reversed(forward):
        if name in backward:
            arrays[f"gradient of {name}"] = backward[name]
        if name.split(". ")[1] in LAYERS:
            layer = layers.pop()
            arrays |= {
                f"gradient of {key}": weights[key] for key in layout.weights_of(weights) if key.startswith(f"{layer}.")
            }
    return arrays
