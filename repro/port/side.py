"""One side of a port: what a record holds of the first step, as arrays."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from repro.errors import UsageError
from repro.record import arrays
from repro.record.lines import CHANNELS, STARTS, Process
from repro.record.record import KEPT, Record
from repro.record.typed_lines import Call

Arrays = dict[str, np.ndarray]

LOSS = "loss"
"""The type of the call that stands for the loss."""


@dataclass(frozen=True)
class Called:
    """A call of a module in the forward pass of the first step."""

    number: int
    """The order in which calls began, from 1."""
    name: str
    """The module's path in its model; empty for the model itself."""
    kind: str
    """The name of its class."""
    settings: dict[str, str]
    inputs: Arrays
    outputs: Arrays
    exact: Arrays
    """The outputs in float64, with the same weights and inputs of the model, where they were computed."""
    weights: dict[str, str]
    """The names among the side's weights, by the module's own names."""
    buffers: Arrays

    @property
    def label(self) -> str:
        return f"{self.name or 'the model'} ({self.kind})"

    def holds(self, other: "Called") -> bool:
        """True if another module is a part of this one, by its path."""
        return self is not other and (not self.name or other.name.startswith((f"{self.name}.", f"{self.name}/")))


class Side:
    """The first step of one record: batch, weights, calls, loss, gradients, and what the optimizer made of them."""

    def __init__(self, record: Record, letter: str):
        self.record, self.letter = record, letter
        trained = [process for process in record.processes if process.last]
        if not trained:
            raise UsageError(f"compare: {record.path} holds no step of a training; --port needs one of each side")
        self.process: Process = trained[0]
        if not self.weights:
            raise UsageError(
                f"compare: {record.path} keeps no arrays of weights; record it anew with --modules 1, or with --keep"
            )

    def of(self, channel: str, step: int = 1) -> Arrays:
        """The arrays of a channel at a step, as far as they were kept."""
        assert channel in CHANNELS
        return self.record.arrays(self.process, step, channel)

    def array(self, digest: str) -> np.ndarray | None:
        return arrays.array(self.record.path / KEPT, digest)

    def _arrays(self, hashes: dict[str, str]) -> Arrays:
        found = {name: self.array(digest) for name, digest in hashes.items()}
        return {name: array for name, array in found.items() if array is not None}

    @property
    def framework(self) -> str:
        """The framework that made it, in words."""
        known = self.process.about.frameworks
        named = {"torch": "PyTorch", "keras": "Keras", "jax": "JAX"}
        return next((f"{word} {known[name]}" for name, word in named.items() if name in known), "no framework")

    @cached_property
    def weights(self) -> Arrays:
        """The weights before the first step, of all optimizers, in the framework's order; else those after the first that holds any."""
        return self.initial or self.after(min(self.process.of("weights"), default=0))

    @cached_property
    def initial(self) -> Arrays:
        """The weights before the first step, of all optimizers."""
        starts = (self.of(STARTS, step) for step in sorted(self.process.steps) if step <= 1)
        return {name: array for of in starts for name, array in of.items()}

    def after(self, step: int) -> Arrays:
        """The weights after a step."""
        return self.of("weights", step)

    @cached_property
    def _digests(self) -> dict[str, str]:
        steps = [self.process.steps[step] for step in sorted(self.process.steps) if step <= 1]
        return {name: digest for hashes in steps for name, digest in hashes.get(STARTS, {}).items()}

    @cached_property
    def calls(self) -> list[Called]:
        """The calls of modules in the first step, in the order in which they began."""
        lines = [call for call in self.process.calls if call.step == 1 and call.type != LOSS]
        return [self._called(call) for call in sorted(lines, key=lambda call: call.number)]

    def _called(self, call: Call) -> Called:
        return Called(
            call.number,
            call.module,
            call.type,
            call.settings,
            self._arrays(call.inputs),
            self._arrays(call.outputs),
            self._arrays(call.exact),
            self._names(call),
            self._arrays(call.buffers),
        )

    def _names(self, call: Call) -> dict[str, str]:
        """The names of a call's own weights among those of the side: of equal values, the one with the likest name."""
        names = {}
        for local, digest in call.weights.items():
            path = [part for part in f"{call.module}.{local}".replace("/", ".").split(".") if part]
            equal = [name for name, other in self._digests.items() if other == digest]
            if equal:
                names[local] = max(equal, key=lambda name: _likeness(path, name.replace("/", ".").split(".")))
        return names

    @cached_property
    def losses(self) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """The losses of the step, each beside its float64 value where that was computed."""
        lines = [call for call in self.process.calls if call.step == 1 and call.type == LOSS]
        both = [(self._arrays(call.outputs), self._arrays(call.exact)) for call in lines]
        return [(value[""], exact.get("")) for value, exact in both if "" in value]

    @cached_property
    def gradients(self) -> Arrays:
        """Gradients as the backward pass made them; without those, as the optimizer got them."""
        lines = [line for line in self.process.backward if line.step == 1]
        made = {name: array for line in lines for name, array in self._arrays(line.gradients).items()}
        return made or self.of("gradients")

    @cached_property
    def exact_gradients(self) -> Arrays:
        lines = [line for line in self.process.backward if line.step == 1]
        return {name: array for line in lines for name, array in self._arrays(line.exact).items()}

    @property
    def rounds_operands(self) -> bool:
        """True if it was recorded in portable numerics with operands of 13 bits."""
        options = self.record.facts.get("portable_numerics")
        return isinstance(options, dict) and options.get("precision") == "high"

    def owner(self, weight: str) -> Called | None:
        """The first call of the module that holds a weight."""
        return next((call for call in self.calls if weight in call.weights.values()), None)

    def called_order(self) -> list[str]:
        """The weights in the order in which the modules that hold them were called; the others last."""
        order = {name: place for place, call in enumerate(self.calls) for name in reversed(call.weights.values())}
        late = len(self.calls)
        names = list(self.weights)
        return sorted(names, key=lambda name: (order.get(name, late), names.index(name)))


def _likeness(path: list[str], name: list[str]) -> tuple[int, int]:
    """How alike two paths are: the parts that their ends share, then all parts that they share."""
    ends = next(
        (n for n, (a, b) in enumerate(zip(path[::-1], name[::-1], strict=False)) if a != b), min(len(path), len(name))
    )
    return ends, len({*path} & {*name})


def outermost(calls: Iterable[Called]) -> Called | None:
    """The model itself: the first call that is a part of no other."""
    return min(calls, key=lambda call: (len(call.name), call.number), default=None)
