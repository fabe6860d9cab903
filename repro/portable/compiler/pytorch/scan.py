"""A definition turn after turn, each of which begins with the state that the one before it left."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from repro.portable.compiler.pytorch import plan

Moving = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Scan:
    """Runs `function(Backend, name, moving, state, fixed)` -> the next state and results, tuples of tensors, for each turn.

    moving: [T, ...] each, of which a turn has its own part; state: the first one's; fixed: tensors for all. What is
    None stays None.
    """

    function: Callable[..., Any]
    name: Any
    moving: Moving
    state: tuple[Tensor, ...]
    fixed: Any
    backwards: bool = False
    """True if the last turn comes first."""

    def run(self) -> tuple[list[Tensor], list[Tensor]]:
        """The states, [T + 1, ...] with the first one, and the results, [T, ...]; both by the turn's place in `moving`."""
        length = next(len(each) for each in self.moving if each is not None)
        places = range(length)[::-1] if self.backwards else range(length)
        after, before = (0, 1) if self.backwards else (1, 0)
        states = [each.new_empty((length + 1, *each.shape)) for each in self.state]
        for stack, first in zip(states, self.state, strict=True):
            stack[places[0] + before] = first
        results: list[Tensor] = []
        for turn, at in enumerate(places):
            given = self._of_turn(at, [stack[at + before] for stack in states])
            if results and self._repeat(places[turn:], given, states, results):
                break
            state, found = plan.run(self.function, *given)
            results = results or [each.new_empty((length, *each.shape)) for each in found]
            for stack, each in zip(states, state, strict=True):
                stack[at + after] = each
            for stack, each in zip(results, found, strict=True):
                stack[at] = each
        return states, results

    def _of_turn(self, at: int, state: Sequence[Tensor]) -> tuple[Any, ...]:
        return self.name, tuple(each if each is None else each[at] for each in self.moving), tuple(state), self.fixed

    def _repeat(self, places: range, given: tuple[Any, ...], states: list[Tensor], results: list[Tensor]) -> bool:
        """Runs all turns that are left in machine code; False where the definition is more than one piece of it."""
        ready, tensors = plan.ready(self.function, *given)
        if ready is None or not (kernels := ready.kernels()) or not kernels.alone(len(places)):
            return False
        out, found = ready.result(list(range(len(ready.start))))
        stacks = [*zip(out, states, strict=True), *zip(found, results, strict=True)]
        made = {index: strides for index, _, strides, _ in kernels.made}
        if len(dict(stacks)) < len(stacks) or any(made.get(index) != stack.stride()[1:] for index, stack in stacks):
            return False
        sign, (before, after) = places.step, (1, 0) if self.backwards else (0, 1)
        moved = [each for each in self.moving if each is not None] + states
        shifts = [0] * (len(moved) - len(states)) + [before] * len(states)
        table = ready.start.copy()
        moving: dict[int, tuple[int, int]] = {}
        for number, (index, tensor) in enumerate(zip(ready.inputs, tensors, strict=True)):
            table[index] = tensor
            if number < len(moved):
                moving[index] = _address(moved[number], places[0] + shifts[number], sign)
        for number, (index, stack) in enumerate(stacks):
            moving[index] = _address(stack, places[0] + (after if number < len(states) else 0), sign)
        kernels.repeat(table, moving, len(places))
        return True


def _address(stack: Tensor, at: int, sign: int) -> tuple[int, int]:
    """The place of a part of a stack in memory, and the bytes to the next one."""
    step = stack.stride(0) * stack.element_size()
    return stack.data_ptr() + at * step, sign * step
