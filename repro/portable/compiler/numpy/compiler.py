"""Compiler of definitions for a CPU: it changes no bit.

Arrays are [outer, along, inner], of which the middle axis is reduced. For each outer index, and for some inner ones at a
time, loops along the axis follow one another, each of which reduces what the ones before found.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from repro.portable.compiler.instructions import COMBINED, NEUTRAL, TYPES, Elements, stored
from repro.portable.compiler.nodes import REDUCTIONS, Node, UnknownError
from repro.portable.compiler.numpy.nests import OneTurn, entered, is_row, ordered
from repro.portable.kernels.machine import I64, Loop, started

Strides = tuple[int, int, int]
LANES = 64
"""The number of inner elements at a time."""


class AxisKernel(Elements):
    """A kernel for arrays with these strides: leaves, tables and results."""

    def __init__(
        self,
        leaves: Sequence[Node],
        results: Sequence[Node],
        strides: Sequence[Strides],
        axes: tuple[int, ...],
        along: int,
        inner: int,
    ) -> None:
        self.leaves, self.results, self.along, self.inner = leaves, results, along, inner
        self.order = ordered(results)
        self.tables = [node for node in self.order if node.operation == "constant"]
        given = [*leaves, *self.tables, *results]
        if any(str(node.dtype) not in TYPES.keys() - {"uint8"} for node in self.order):  # its comparisons are signed
            raise UnknownError("a type")
        self.build, function = started([stored(node.dtype) for node in given])
        *memory, begin, end = function.args
        self.memory = dict(zip(given, memory[: len(leaves) + len(self.tables)], strict=False))
        self.targets = memory[len(leaves) + len(self.tables) :]
        self.strides = list(strides)
        self.place = {node: self.strides[number] for number, node in enumerate(leaves)}
        self.rows = {node: along == 1 or is_row(node, axes) for node in self.order}
        self.stage = self._stages()
        self.blocks = 1 if inner == 1 else -(-inner // LANES)
        self.entry = self.build.block
        self.done: set[Node] = set()
        """What is held though no reduction: it was computed for all lanes."""
        self.held: dict[Node, ir.Value] = {}
        """Memory of what is one for each lane, or of a reduction."""
        self.values: dict[Node, ir.Value] = {}
        with Loop(self.build, begin, end) as unit:
            self._unit(unit)
        self.build.ret_void()
        self.module = function.module
        entered(function)

    def _stages(self) -> dict[Node, int]:
        """The loop that can compute a node: the number of reductions that it waits for."""
        stages: dict[Node, int] = {}
        for node in self.order:
            before = [stages[each] + (each.operation in REDUCTIONS) for each in node.inputs if isinstance(each, Node)]
            stages[node] = max(before, default=0)
        return stages

    # --- loops --------------------------------------------------------------------------------------------------------

    def _unit(self, unit: ir.Value) -> None:
        build = self.build
        self.outer = build.sdiv(unit, I64(self.blocks)) if self.blocks > 1 else unit
        self.first: ir.Value = I64(0)
        self.width: ir.Value = I64(self.inner)
        if self.blocks > 1:
            self.first = build.mul(build.srem(unit, I64(self.blocks)), I64(LANES))
            rest = build.sub(I64(self.inner), self.first)
            self.width = build.select(build.icmp_signed("<", rest, I64(LANES)), rest, I64(LANES))
        last, results = max(self.stage.values()), self.results
        for stage in range(last + 1):
            sums = [node for node in self.order if node.operation in REDUCTIONS and self.stage[node] == stage]
            wanted = [number for number, node in enumerate(results) if not self.rows[node]] if stage == last else []
            if not sums and not wanted:
                continue
            for node in sums:
                self._hold(node)
                with self._lanes() as lane:
                    build.store(stored(node.dtype)(NEUTRAL[node.operation]), self._slot(node, lane))
            with Loop(build, I64(0), I64(self.along)) as index, self._lanes() as lane:
                self.index, self.lane, before = index, lane, dict(self.values)
                for node in sums:
                    self._reduce(node)
                for number in wanted:
                    self._store(number)
                self.values = before
            self._finish(sums)
        with self._lanes() as lane:
            self.index, self.lane, before = I64(0), lane, dict(self.values)
            for number, node in enumerate(results):
                if self.rows[node]:
                    self._store(number)
            self.values = before

    def _lanes(self) -> Any:
        return Loop(self.build, I64(0), self.width) if self.inner > 1 else OneTurn()

    def _hold(self, node: Node) -> None:
        if node not in self.held:
            with self.build.goto_entry_block():
                self.held[node] = self.build.alloca(stored(node.dtype), LANES if self.inner > 1 else 1)

    def _slot(self, node: Node, lane: ir.Value) -> ir.Value:
        return self.build.gep(self.held[node], [lane]) if self.inner > 1 else self.held[node]

    def _finish(self, sums: Sequence[Node]) -> None:
        """Computes what follows from reductions alone, once for each lane."""
        if not sums:
            return
        stage = self.stage[sums[0]] + 1
        following = [
            node
            for node in self.order
            if self.rows[node] and self.stage[node] == stage and node.operation not in REDUCTIONS and node.inputs
        ]
        for node in following:
            self._hold(node)
        with self._lanes() as lane:
            self.index, self.lane, before = I64(0), lane, dict(self.values)
            for node in following:
                self.values[node] = self.computed(node)
                self.store(self.values[node], self._slot(node, lane))
            self.values = before
        self.done.update(following)

    def _reduce(self, node: Node) -> None:
        build, slot = self.build, self._slot(node, self.lane)
        (source,) = node.inputs
        build.store(COMBINED[node.operation](build, build.load(slot), self.cast(source, node.dtype)), slot)

    def _store(self, number: int) -> None:
        where = self._at(self.targets[number], self.strides[len(self.leaves) + number])
        self.store(self.value(self.results[number]), where)

    def _at(self, memory: ir.Value, strides: Strides) -> ir.Value:
        build, offset = self.build, I64(0)
        inner = build.add(self.first, self.lane) if self.inner > 1 else I64(0)
        for index, stride in zip((self.outer, self.index, inner), strides, strict=True):
            if stride:
                offset = build.add(offset, index if stride == 1 else build.mul(index, I64(stride)))
        return build.gep(memory, [offset])

    # --- elements -----------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> ir.Value:
        if node in self.values:
            return self.values[node]
        if node in self.held and (node.operation in REDUCTIONS or node in self.done):
            value = self.load(self._slot(node, self.lane), node.dtype)
        elif node in self.place:
            value = self.load(self._at(self.memory[node], self.place[node]), node.dtype)
        else:
            value = self.computed(node)
        self.values[node] = value
        return value
