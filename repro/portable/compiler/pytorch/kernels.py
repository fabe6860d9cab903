"""Kernels: compiled loops over the elements of tensors.

For each element they evaluate nodes, and store what they find or reduce it.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from llvmlite import ir

from repro.portable.compiler.pytorch.nodes import COMPILED, REDUCTIONS, Node, nodes_in
from repro.portable.kernels import machine
from repro.portable.kernels.machine import F32, F64, I8, I16, I32, I64, Loop, started
from repro.portable.kernels.pytorch.openmp import compiled
from repro.portable.numbers.constants import BELOW_TINY

BOOL = ir.IntType(1)
TYPES: dict[torch.dtype, ir.Type] = {
    torch.bool: BOOL,
    torch.uint8: I8,
    torch.int8: I8,
    torch.int16: I16,
    torch.int32: I32,
    torch.int64: I64,
    torch.float32: F32,
    torch.float64: F64,
}
STORED = TYPES | {torch.bool: I8}
UNSIGNED = {torch.bool, torch.uint8}

NEUTRAL = {"sum": 0.0, "largest": 0, "maximum_of": -math.inf}
"""What reductions begin with."""
ARITHMETIC = {
    "add": ("fadd", "add"),
    "sub": ("fsub", "sub"),
    "mul": ("fmul", "mul"),
    "truediv": ("fdiv", "sdiv"),
    "and_": ("and_", "and_"),
    "or_": ("or_", "or_"),
    "xor": ("xor", "xor"),
}
COMPARISONS = {"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!="}
INTRINSICS = {"rint": "llvm.rint", "floor": "llvm.floor", "sqrt": "llvm.sqrt"}


class Kernel:
    """The loops over a space that read leaves and write targets: tensors with the strides of their nodes.

    What a target needs is computed from leaves, or from another target, element by element.
    """

    def __init__(self, space: tuple[int, ...], targets: Sequence[Node], leaves: Sequence[Node]) -> None:
        self.targets, self.nodes = targets, (*leaves, *targets)
        tables = _tables(targets)
        strides = [[0] * len(space) if leaf in tables else _strides(leaf, space) for leaf in leaves]
        strides += [_target_strides(target, space) for target in targets]
        self.sizes, found = _ordered(space, strides)
        self.strides = dict(zip(self.nodes, found, strict=True))
        self.filled = [target for target in targets if target.operation in REDUCTIONS and not self._whole(target)]
        """Reductions to which several turns of the outermost loop add: of these each thread needs one of its own."""
        self.build, function = started([STORED[node.dtype] for node in self.nodes])
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
        self.compiled = compiled(machine.Loops(function, self.sizes[0], math.prod(space), own))

    # --- loops --------------------------------------------------------------------------------------------------------

    def _loop(self, axis: int, begin: ir.Value) -> None:
        """The loops from this axis on. What all of them reduce is held in a register."""
        here = [target for target in self.targets if self._innermost(target) == axis < len(self.sizes)]
        for target in here:
            with self.build.goto_block(self.entry):
                self.registers[target] = self.build.alloca(STORED[target.dtype])
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
                value = self._combined(target, self.build.load(place), value)
            self.build.store(value, place)

    def _innermost(self, target: Node) -> int | None:
        """The axis from which on all are reduced; None for what is stored."""
        if target.operation not in REDUCTIONS:
            return None
        last = itertools.takewhile(lambda stride: stride == 0, reversed(self.strides[target]))
        return len(self.sizes) - len(list(last))

    def _whole(self, target: Node) -> bool:
        """Whether each result is complete after the innermost loops, which are not all there are."""
        innermost = self._innermost(target)
        return innermost not in (0, len(self.sizes)) and 0 not in self.strides[target][:innermost]

    def _body(self) -> None:
        """Of the innermost loop."""
        self.values.clear()
        for target in self.targets:
            place = self._place(target)
            if target.operation == "stack":
                step = target.strides[target.attributes["axis"]]
                for number, part in enumerate(target.inputs):
                    self._store(self._as(part, target.dtype), self.build.gep(place, [I64(number * step)]))
            elif target.operation in REDUCTIONS:
                place = self.registers.get(target, place)
                self.build.store(self._combined(target, self.build.load(place), self._summand(target)), place)
            else:
                self._store(self._value(target), place)

    def _store(self, value: ir.Value, place: ir.Value) -> None:
        self.build.store(self.build.zext(value, I8) if value.type == BOOL else value, place)

    def _place(self, node: Node) -> ir.Value:
        """The address of an element."""
        offset: ir.Value = I64(0)
        for index, stride in zip(self.indices, self.strides[node], strict=False):
            if stride:
                offset = self.build.add(offset, self.build.mul(index, I64(stride)))
        return self.build.gep(self.memory[node], [offset])

    def _summand(self, target: Node) -> ir.Value:
        """What an element adds to a reduction."""
        (source,) = target.inputs
        return self._as(source, target.dtype)

    def _combined(self, target: Node, a: ir.Value, b: ir.Value) -> ir.Value:
        if target.operation == "sum":
            return self.build.fadd(a, b, flags=["reassoc"])  # exact: in any order
        if target.operation == "largest":
            return self.build.select(self.build.icmp_signed(">", a, b), a, b)
        return self._intrinsic("llvm.maximum", a, b)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> ir.Value:
        """Of this turn."""
        if node not in self.values:
            if node in self.leaves:
                found = self.build.load(self._place(node))
                self.values[node] = self.build.trunc(found, BOOL) if node.dtype == torch.bool else found
            else:
                self.values[node] = self._computed(node)
        return self.values[node]

    def _computed(self, node: Node) -> ir.Value:
        name, build = node.operation, self.build
        if name == "take":
            table, index = node.inputs
            return build.load(build.gep(self.memory[table], [self._as(index, torch.int64)]))
        if name == "where":
            condition, a, b = node.inputs
            return build.select(self._value(condition), self._as(a, node.dtype), self._as(b, node.dtype))
        if name in ("pattern", "number"):
            return build.bitcast(self._value(node.inputs[0]), TYPES[node.dtype])
        common = node.attributes.get("common", node.dtype)
        given = [self._as(each, common) for each in node.inputs]
        if name in ("f64", "f32", "integer", "int64", "int8", "int16"):
            return given[0]
        if name in ARITHMETIC:
            return getattr(build, ARITHMETIC[name][not common.is_floating_point])(*given)
        if name in COMPARISONS:
            return self._compared(COMPARISONS[name], *given)
        if name == "clip":
            x, low, high = given  # NaN stays
            x = build.select(self._compared("<", x, low), low, x)
            return build.select(self._compared(">", x, high), high, x)
        if name == "neg":
            return build.fneg(*given) if common.is_floating_point else build.neg(*given)
        if name in INTRINSICS:
            return self._intrinsic(INTRINSICS[name], *given)
        return OTHERS[name](self, *given)

    def _compared(self, sign: str, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(a.type, ir.IntType):
            return self.build.icmp_signed(sign, a, b)
        return (self.build.fcmp_unordered if sign == "!=" else self.build.fcmp_ordered)(sign, a, b)

    def _as(self, given: Node | float, dtype: torch.dtype) -> ir.Value:
        """The value of a node, or a number, in a type."""
        if not isinstance(given, Node):
            if dtype.is_floating_point:
                return TYPES[dtype](float(np.float32(given) if dtype == torch.float32 else given))
            return TYPES[dtype](int(given))
        value, old, build, type_ = self._value(given), given.dtype, self.build, TYPES[dtype]
        if TYPES[old] == type_:
            return value
        if dtype.is_floating_point:
            if old.is_floating_point:
                return (build.fpext if dtype == torch.float64 else build.fptrunc)(value, type_)
            return (build.uitofp if old in UNSIGNED else build.sitofp)(value, type_)
        if old.is_floating_point:
            return build.fptosi(value, type_)
        if type_.width < TYPES[old].width:
            return build.trunc(value, type_)
        return (build.zext if old in UNSIGNED else build.sext)(value, type_)

    def _intrinsic(self, name: str, *values: ir.Value) -> ir.Value:
        kinds = [value.type for value in values]
        function = self.build.module.declare_intrinsic(name, kinds[:1], ir.FunctionType(kinds[0], kinds))
        return self.build.call(function, values)

    # --- as in backends/pytorch.py --------------------------------------------------------------------------------------

    def _r32(self, x: ir.Value) -> ir.Value:
        small = self.build.fcmp_ordered("<=", self._intrinsic("llvm.fabs", x), F32(BELOW_TINY))
        return self.build.select(small, F32(0.0), x)

    def _multiply_add(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.build.fadd(self.build.fmul(a, b), c)

    def _shift_left(self, x: ir.Value, bits: ir.Value) -> ir.Value:
        return self.build.shl(x, bits)

    def _shift_right(self, x: ir.Value, bits: ir.Value) -> ir.Value:
        return self.build.ashr(x, bits)


OTHERS: dict[str, Callable[..., ir.Value]] = {
    "r32": Kernel._r32,
    "multiply_add": Kernel._multiply_add,
    "shift_left": Kernel._shift_left,
    "shift_right": Kernel._shift_right,
}


def _neutral(target: Node) -> ir.Constant:
    return STORED[target.dtype](NEUTRAL[target.operation])


# --- axes -------------------------------------------------------------------------------------------------------------


def _tables(targets: Sequence[Node]) -> set[Node]:
    """What is read by indices."""
    found, ahead, seen = set(), list(targets), set()
    while ahead:
        node = ahead.pop()
        if node not in seen and node.operation in COMPILED:
            seen.add(node)
            ahead += nodes_in(node.inputs)
            if node.operation == "take":
                found.add(node.inputs[0])
    return found


def _strides(node: Node, space: tuple[int, ...]) -> list[int]:
    """Of a tensor that is broadcast to a space."""
    own = [0 if size == 1 else stride for size, stride in zip(node.shape, node.strides, strict=True)]
    return [0] * (len(space) - len(own)) + own


def _target_strides(node: Node, space: tuple[int, ...]) -> list[int]:
    """Of what is written; the parts of a stack lie beside one another."""
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
    found: list[list[int]] = [[] for _ in strides]
    for axis in sorted(range(len(space)), key=lambda axis: -widest[axis]):
        size = space[axis]
        if size == 1:
            continue
        if sizes and all(new[-1] == old[axis] * size for new, old in zip(found, strides, strict=True)):
            sizes[-1] *= size
            for new, old in zip(found, strides, strict=True):
                new[-1] = old[axis]
        else:
            sizes.append(size)
            for new, old in zip(found, strides, strict=True):
                new.append(old[axis])
    return (sizes, found) if sizes else ([1], [[0] for _ in strides])
