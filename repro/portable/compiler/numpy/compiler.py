"""Compiler of definitions for a CPU: it changes no bit.

Arrays are [outer, along, inner], of which the middle axis is reduced. For each outer index, and for some inner ones at a
time, loops along the axis follow one another, each of which reduces what the ones before found.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from repro.portable.compiler.numpy.nests import OneTurn, entered, is_row, ordered
from repro.portable.compiler.numpy.tracer import REDUCTIONS, Node, UnknownError
from repro.portable.kernels.machine import F32, F64, I8, I16, I32, I64, Loop, started
from repro.portable.numbers.constants import BELOW_TINY

Strides = tuple[int, int, int]
BOOL = ir.IntType(1)
TYPES = {
    np.dtype(each): type_
    for each, type_ in {
        np.bool_: BOOL,
        np.int8: I8,
        np.int16: I16,
        np.int32: I32,
        np.int64: I64,
        np.float32: F32,
        np.float64: F64,
    }.items()
}
LANES = 64
"""Inner elements at a time."""
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor"}
SIGNS = {"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!="}
INTRINSICS = {"rint": "llvm.rint", "floor": "llvm.floor", "sqrt": "llvm.sqrt"}


def stored(dtype: np.dtype) -> ir.Type:
    return I8 if dtype == np.bool_ else TYPES[dtype]


class Kernel:
    """The loops for arrays with these strides: of leaves, tables and results."""

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
        self.tables = [node for node in self.order if node.operation == "table"]
        given = [*leaves, *self.tables, *results]
        if any(node.dtype not in TYPES for node in self.order):
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
        found: dict[Node, int] = {}
        for node in self.order:
            before = [found[each] + (each.operation in REDUCTIONS) for each in node.inputs if isinstance(each, Node)]
            found[node] = max(before, default=0)
        return found

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
                    build.store(stored(node.dtype)(REDUCTIONS[node.operation]), self._slot(node, lane))
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
        """What follows from reductions alone, once for each lane."""
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
                value = self._computed(node)
                self.values[node] = value
                value = self.build.zext(value, I8) if value.type == BOOL else value
                self.build.store(value, self._slot(node, lane))
            self.values = before
        self.done.update(following)

    def _reduce(self, node: Node) -> None:
        build, slot = self.build, self._slot(node, self.lane)
        old, (source,) = build.load(slot), node.inputs
        value = self._value(source)
        if node.operation == "sum":
            new = build.fadd(old, value, flags=["reassoc"])  # exact: in any order
        elif node.operation == "largest":
            new = build.select(build.icmp_signed(">", old, value), old, value)
        else:
            new = self._intrinsic("llvm.maximum", old, value)
        build.store(new, slot)

    def _store(self, number: int) -> None:
        value = self._value(self.results[number])
        value = self.build.zext(value, I8) if value.type == BOOL else value
        where = self._at(self.targets[number], self.strides[len(self.leaves) + number])
        self.build.store(value, where)

    def _at(self, memory: ir.Value, strides: Strides) -> ir.Value:
        build, offset = self.build, I64(0)
        inner = build.add(self.first, self.lane) if self.inner > 1 else I64(0)
        for index, stride in zip((self.outer, self.index, inner), strides, strict=True):
            if stride:
                offset = build.add(offset, index if stride == 1 else build.mul(index, I64(stride)))
        return build.gep(memory, [offset])

    # --- elements -----------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> ir.Value:
        if node in self.values:
            return self.values[node]
        if node in self.held and (node.operation in REDUCTIONS or node in self.done):
            found = self.build.load(self._slot(node, self.lane))
            found = self.build.trunc(found, BOOL) if node.dtype == np.bool_ else found
        elif node in self.place:
            found = self.build.load(self._at(self.memory[node], self.place[node]))
            found = self.build.trunc(found, BOOL) if node.dtype == np.bool_ else found
        else:
            found = self._computed(node)
        self.values[node] = found
        return found

    def _as(self, given: Any, dtype: np.dtype) -> ir.Value:
        """The value of a node, or a number, in a type."""
        build, type_ = self.build, TYPES[dtype]
        if not isinstance(given, Node):
            return type_(float(np.float32(given)) if dtype == np.float32 else dtype.type(given).item())
        value, old = self._value(given), given.dtype
        if TYPES[old] == type_:
            return value
        if dtype.kind == "f":
            if old.kind == "f":
                return (build.fpext if dtype == np.float64 else build.fptrunc)(value, type_)
            return (build.uitofp if old.kind == "b" else build.sitofp)(value, type_)
        if old.kind == "f":
            return build.fptosi(value, type_)
        if type_.width < TYPES[old].width:
            return build.trunc(value, type_)
        return (build.zext if old.kind == "b" else build.sext)(value, type_)

    def _computed(self, node: Node) -> ir.Value:
        name, build = node.operation, self.build
        if name == "take":
            table, index = node.inputs
            return build.load(build.gep(self.memory[table], [self._as(index, np.dtype(np.int64))]))
        if name == "where":
            condition, a, b = node.inputs
            return build.select(self._value(condition), self._as(a, node.dtype), self._as(b, node.dtype))
        if name == "cast":
            return self._as(node.inputs[0], node.dtype)
        if name == "r32":
            x = self._as(node.inputs[0], np.dtype(np.float32))
            small = build.fcmp_ordered("<=", self._intrinsic("llvm.fabs", x), F32(BELOW_TINY))
            return build.select(small, F32(0.0), x)
        given = [self._as(each, node.common) for each in node.inputs]
        fraction = node.common.kind == "f"
        if name in FLOAT or name in INTEGER:
            return getattr(build, FLOAT[name] if fraction else INTEGER[name])(*given)
        if name in SIGNS:
            return self._compared(SIGNS[name], *given)
        if name == "clip":
            x, low, high = given  # NaN stays
            x = build.select(self._compared("<", x, low), low, x)
            return build.select(self._compared(">", x, high), high, x)
        if name == "neg":
            return build.fneg(*given) if fraction else build.neg(*given)
        if name in INTRINSICS:
            return self._intrinsic(INTRINSICS[name], *given)
        if name == "shift_left":
            return build.shl(*given)
        if name == "shift_right":
            return build.ashr(*given)
        if name == "bits":
            return build.bitcast(given[0], TYPES[node.dtype])
        raise UnknownError(name)

    def _compared(self, sign: str, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(a.type, ir.IntType):
            return self.build.icmp_signed(sign, a, b)
        return (self.build.fcmp_unordered if sign == "!=" else self.build.fcmp_ordered)(sign, a, b)

    def _intrinsic(self, name: str, *values: ir.Value) -> ir.Value:
        kinds = [value.type for value in values]
        function = self.build.module.declare_intrinsic(name, kinds[:1], ir.FunctionType(kinds[0], kinds))
        return self.build.call(function, values)
