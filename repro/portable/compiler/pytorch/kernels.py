"""Kernels over the elements of tensors, as nested loops.

For each element they evaluate nodes, and store what they find or reduce it.
"""

import itertools
import math
from collections.abc import Sequence

from llvmlite import ir

from repro.portable.compiler.instructions import COMBINED, NEUTRAL, Elements, stored
from repro.portable.compiler.nodes import COMPILED, REDUCTIONS, Node, nodes_in
from repro.portable.kernels import machine
from repro.portable.kernels.machine import I64, Loop, started
from repro.portable.kernels.pytorch.openmp import compiled


class SpaceKernel(Elements):
    """A kernel over a space that reads leaves and writes targets: tensors with the strides of their nodes.

    What a target needs is computed from leaves, or from another target, element by element.
    """

    def __init__(self, space: tuple[int, ...], targets: Sequence[Node], leaves: Sequence[Node]) -> None:
        self.targets, self.nodes = targets, (*leaves, *targets)
        tables = _tables(targets)
        strides = [[0] * len(space) if leaf in tables else _strides(leaf, space) for leaf in leaves]
        strides += [_target_strides(target, space) for target in targets]
        self.sizes, ordered = _ordered(space, strides)
        self.strides = dict(zip(self.nodes, ordered, strict=True))
        self.filled = [target for target in targets if target.operation in REDUCTIONS and not self._whole(target)]
        """Reductions to which several turns of the outermost loop add: of these each thread needs one of its own."""
        self.build, function = started([stored(node.dtype) for node in self.nodes])
        *memory, begin, self.end = function.args
        self.memory = dict(zip(self.nodes, memory, strict=True))
        self.entry = self.build.block
        self.indices: list[ir.Value] = []
        self.registers: dict[Node, ir.Value] = {}
        self.values: dict[Node, ir.Value] = {}
        self.leaves = set(leaves)
        for target in self.filled:
            with Loop(self.build, I64(0), I64(math.prod(target.shape))) as index:
                self.build.store(_neutral(target), self.build.gep(self.memory[target], [index]))
        self._loop(0, begin)
        self.build.ret_void()
        own = {number: math.prod(node.shape) for number, node in enumerate(self.nodes) if node in self.filled}
        self.compiled = compiled(machine.Kernel(function, self.sizes[0], math.prod(space), own))

    # --- loops --------------------------------------------------------------------------------------------------------

    def _loop(self, axis: int, begin: ir.Value) -> None:
        """The loops from this axis on. What all of them reduce is held in a register."""
        here = [target for target in self.targets if self._innermost(target) == axis < len(self.sizes)]
        for target in here:
            with self.build.goto_block(self.entry):
                self.registers[target] = self.build.alloca(stored(target.dtype))
            self.build.store(_neutral(target), self.registers[target])
        if axis == len(self.sizes):
            self._body()
        else:
            with Loop(self.build, begin, I64(self.sizes[axis]) if axis else self.end) as index:
                self.indices.append(index)
                self._loop(axis + 1, I64(0))
                self.indices.pop()
        for target in here:
            value, place = self.build.load(self.registers.pop(target)), self._place(target)
            if not self._whole(target):
                value = COMBINED[target.operation](self.build, self.build.load(place), value)
            self.build.store(value, place)

    def _innermost(self, target: Node) -> int | None:
        """The axis from which on all are reduced; None for what is stored."""
        if target.operation not in REDUCTIONS:
            return None
        last = itertools.takewhile(lambda stride: stride == 0, reversed(self.strides[target]))
        return len(self.sizes) - len(list(last))

    def _whole(self, target: Node) -> bool:
        """True if each result is complete after the innermost loops, and these are not all loops."""
        innermost = self._innermost(target)
        return innermost not in (0, len(self.sizes)) and 0 not in self.strides[target][:innermost]

    def _body(self) -> None:
        """Write the body of the innermost loop."""
        self.values.clear()
        for target in self.targets:
            place = self._place(target)
            if target.operation == "stack":
                step = target.strides[target.attributes["axis"]]
                for number, part in enumerate(target.inputs):
                    self.store(self.cast(part, target.dtype), self.build.gep(place, [I64(number * step)]))
            elif target.operation in REDUCTIONS:
                place, (source,) = self.registers.get(target, place), target.inputs
                element = self.cast(source, target.dtype)
                self.build.store(COMBINED[target.operation](self.build, self.build.load(place), element), place)
            else:
                self.store(self.value(target), place)

    def _place(self, node: Node) -> ir.Value:
        """The address of an element."""
        offset: ir.Value = I64(0)
        for index, stride in zip(self.indices, self.strides[node], strict=False):
            if stride:
                offset = self.build.add(offset, self.build.mul(index, I64(stride)))
        return self.build.gep(self.memory[node], [offset])

    # --- elements -----------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> ir.Value:
        """The value of a node in this turn of the loop."""
        if node not in self.values:
            if node in self.leaves:
                self.values[node] = self.load(self._place(node), node.dtype)
            else:
                self.values[node] = self.computed(node)
        return self.values[node]


def _neutral(target: Node) -> ir.Constant:
    return stored(target.dtype)(NEUTRAL[target.operation])


# --- axes -------------------------------------------------------------------------------------------------------------


def _tables(targets: Sequence[Node]) -> set[Node]:
    """The nodes that are read by indices."""
    tables, ahead, seen = set(), list(targets), set()
    while ahead:
        node = ahead.pop()
        if node not in seen and node.operation in COMPILED:
            seen.add(node)
            ahead += nodes_in(node.inputs)
            if node.operation == "take":
                tables.add(node.inputs[0])
    return tables


def _strides(node: Node, space: tuple[int, ...]) -> list[int]:
    """Strides of a tensor that is broadcast to a space."""
    own = [0 if size == 1 else stride for size, stride in zip(node.shape, node.strides, strict=True)]
    return [0] * (len(space) - len(own)) + own


def _target_strides(node: Node, space: tuple[int, ...]) -> list[int]:
    """Strides of a result. The parts of a stack lie beside one another."""
    own = _strides(node, node.shape)
    if node.operation == "stack":
        del own[node.attributes["axis"]]
    return [0] * (len(space) - len(own)) + own


def _ordered(space: tuple[int, ...], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Sizes and strides of the axes in the order of memory, outermost first; as one those that lie in a row.

    There is one at least: a single element is one turn.
    """
    widest = max(reversed(strides), key=lambda each: sum(map(bool, each)))
    sizes: list[int] = []
    ordered: list[list[int]] = [[] for _ in strides]
    for axis in sorted(range(len(space)), key=lambda axis: -widest[axis]):
        size = space[axis]
        if size == 1:
            continue
        if sizes and all(new[-1] == old[axis] * size for new, old in zip(ordered, strides, strict=True)):
            sizes[-1] *= size
            for new, old in zip(ordered, strides, strict=True):
                new[-1] = old[axis]
        else:
            sizes.append(size)
            for new, old in zip(ordered, strides, strict=True):
                new.append(old[axis])
    return (sizes, ordered) if sizes else ([1], [[0] for _ in strides])
