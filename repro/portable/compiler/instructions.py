"""Instructions of elements: one table from operation and type to the code that LLVM takes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from repro.portable.compiler.nodes import CASTS, Node, UnknownError
from repro.portable.kernels.machine import F32, F64, I8, I16, I32, I64
from repro.portable.numbers.constants import BELOW_TINY

BOOL = ir.IntType(1)
TYPES = {
    "bool": BOOL,
    "uint8": I8,
    "int8": I8,
    "int16": I16,
    "int32": I32,
    "int64": I64,
    "float32": F32,
    "float64": F64,
}
UNSIGNED = {"bool", "uint8"}
NEUTRAL = {"sum": 0.0, "largest": 0, "maximum_of": -math.inf}
"""Initial values of reductions."""


def name(dtype: Any) -> str:
    """The name of a framework's type."""
    return str(dtype).removeprefix("torch.")


def stored(dtype: Any) -> ir.Type:
    """A type in memory."""
    return I8 if name(dtype) == "bool" else TYPES[name(dtype)]


# --- operations, of values of one type --------------------------------------------------------------------------------

Code = Callable[..., ir.Value]


def _of_type(fraction: str, integer: str) -> Code:
    def code(build: ir.IRBuilder, *given: ir.Value) -> ir.Value:
        return getattr(build, integer if isinstance(given[0].type, ir.IntType) else fraction)(*given)

    return code


def _compared(sign: str) -> Code:
    def code(build: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        if isinstance(a.type, ir.IntType):
            return build.icmp_signed(sign, a, b)
        return (build.fcmp_unordered if sign == "!=" else build.fcmp_ordered)(sign, a, b)

    return code


def _intrinsic(function: str) -> Code:
    def code(build: ir.IRBuilder, *given: ir.Value) -> ir.Value:
        kinds = [value.type for value in given]
        declared = build.module.declare_intrinsic(function, kinds[:1], ir.FunctionType(kinds[0], kinds))
        return build.call(declared, given)

    return code


_less, _greater, _magnitude = _compared("<"), _compared(">"), _intrinsic("llvm.fabs")


def _clip(build: ir.IRBuilder, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    x = build.select(_less(build, x, low), low, x)  # NaN stays
    return build.select(_greater(build, x, high), high, x)


def _r32(build: ir.IRBuilder, x: ir.Value) -> ir.Value:
    small = build.fcmp_ordered("<=", _magnitude(build, x), F32(BELOW_TINY))
    return build.select(small, F32(0.0), x)


TABLE: dict[str, Code] = {
    "add": _of_type("fadd", "add"),
    "sub": _of_type("fsub", "sub"),
    "mul": _of_type("fmul", "mul"),
    "truediv": _of_type("fdiv", "sdiv"),
    "neg": _of_type("fneg", "neg"),
    "and_": ir.IRBuilder.and_,
    "or_": ir.IRBuilder.or_,
    "xor": ir.IRBuilder.xor,
    "lt": _less,
    "gt": _greater,
    "le": _compared("<="),
    "ge": _compared(">="),
    "eq": _compared("=="),
    "ne": _compared("!="),
    "rint": _intrinsic("llvm.rint"),
    "floor": _intrinsic("llvm.floor"),
    "sqrt": _intrinsic("llvm.sqrt"),
    "clip": _clip,
    "r32": _r32,
    "shift_left": ir.IRBuilder.shl,
    "shift_right": ir.IRBuilder.ashr,
}
COMBINED: dict[str, Code] = {
    "sum": lambda build, a, b: build.fadd(a, b, flags=["reassoc"]),  # exact: in any order
    "largest": lambda build, a, b: build.select(_greater(build, a, b), a, b),
    "maximum_of": _intrinsic("llvm.maximum"),
}
"""Code that combines two numbers of a reduction."""


# --- nodes ------------------------------------------------------------------------------------------------------------


class Elements:
    """The values of nodes, element by element: a kernel says where those are that it reads."""

    build: ir.IRBuilder
    memory: dict[Node, ir.Value]
    """The addresses of arrays."""

    def value(self, node: Node) -> ir.Value:
        """The value of a node in this turn."""
        raise NotImplementedError

    def computed(self, node: Node) -> ir.Value:
        """The value of a node, from those of its inputs."""
        operation, build = node.operation, self.build
        if operation == "take":
            table, index = node.inputs
            return build.load(build.gep(self.memory[table], [self.cast(index, "int64")]))
        if operation == "where":
            condition, a, b = node.inputs
            return build.select(self.value(condition), self.cast(a, node.dtype), self.cast(b, node.dtype))
        if operation in CASTS:
            return self.cast(node.inputs[0], node.dtype)
        if operation in ("pattern", "number"):
            return build.bitcast(self.value(node.inputs[0]), TYPES[name(node.dtype)])
        if operation not in TABLE:
            raise UnknownError(operation)
        return TABLE[operation](build, *(self.cast(each, node.common) for each in node.inputs))

    def cast(self, given: Any, dtype: Any) -> ir.Value:
        """The value of a node, or a number, in a type."""
        build, new = self.build, name(dtype)
        type_ = TYPES[new]
        if not isinstance(given, Node):
            if isinstance(type_, ir.IntType):
                return type_(int(given))
            return type_(float(np.float32(given) if type_ is F32 else given))
        value, old = self.value(given), name(given.dtype)
        if value.type == type_:
            return value
        if isinstance(type_, ir.IntType):
            if not isinstance(value.type, ir.IntType):
                return build.fptosi(value, type_)
            if type_.width < value.type.width:
                return build.trunc(value, type_)
            return (build.zext if old in UNSIGNED else build.sext)(value, type_)
        if isinstance(value.type, ir.IntType):
            return (build.uitofp if old in UNSIGNED else build.sitofp)(value, type_)
        return (build.fpext if type_ is F64 else build.fptrunc)(value, type_)

    def load(self, address: ir.Value, dtype: Any) -> ir.Value:
        value = self.build.load(address)
        return self.build.trunc(value, BOOL) if name(dtype) == "bool" else value

    def store(self, value: ir.Value, address: ir.Value) -> None:
        self.build.store(self.build.zext(value, I8) if value.type == BOOL else value, address)
