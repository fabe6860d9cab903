"""Machine code from kernels in LLVM's intermediate representation.

Kernels are compiled for this processor; no C++ compiler is needed.

LLVM is given no leave to change the arithmetic: every operation rounds for itself, as IEEE 754 says.
"""

import hashlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
ADDRESS = I8.as_pointer()
VOID = ir.VoidType()
SHARED = ir.FunctionType(VOID, [ADDRESS.as_pointer(), I64, I64, I64])
"""Kernel.share(): a function of the addresses of all arrays, the turns to begin and to end with, and a thread."""

SHARE = 2**15
"""Elements that are worth a thread."""
SMALL = 2**8
"""Elements for which better code takes longer to make than it saves."""


class Loop:
    """A loop from `begin` to before `end`, as a context: the index that instructions in it may use.

    With `end` not above `begin` it has no turn.
    """

    def __init__(self, builder: ir.IRBuilder, begin: ir.Value, end: ir.Value) -> None:
        self.builder, self.begin, self.end = builder, begin, end

    def __enter__(self) -> ir.Value:
        build = self.builder
        before, self.block, self.after = build.block, build.append_basic_block(), build.append_basic_block()
        build.cbranch(build.icmp_signed("<", self.begin, self.end), self.block, self.after)
        build.position_at_end(self.block)
        self.index = build.phi(I64)
        self.index.add_incoming(self.begin, before)
        return self.index

    def __exit__(self, *_: object) -> None:
        build = self.builder
        following = build.add(self.index, I64(1))
        self.index.add_incoming(following, build.block)
        build.cbranch(build.icmp_signed("<", following, self.end), self.block, self.after)
        build.position_at_end(self.after)


def started(types: Sequence[ir.Type]) -> tuple[ir.IRBuilder, ir.Function]:
    """A function of arrays of these types, none of which overlap, and of the turns to begin and to end with."""
    module = ir.Module()
    kind = ir.FunctionType(VOID, [*(type_.as_pointer() for type_ in types), I64, I64])
    function = ir.Function(module, kind, "kernel")
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args[: len(types)]:
        argument.add_attribute("noalias")
    return ir.IRBuilder(function.append_basic_block()), function


def splat(build: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector of one and the same number."""
    undefined = ir.VectorType(value.type, lanes)(ir.Undefined)
    single = build.insert_element(undefined, value, I32(0))
    return build.shuffle_vector(single, undefined, ir.VectorType(I32, lanes)([0] * lanes))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of started(), which threads may share: `turns` turns, over `work` elements."""

    function: ir.Function
    turns: int
    work: int
    own: Mapping[int, int] = field(default_factory=dict)
    """Numbers that each thread has of its own, of arrays that all write to."""
    results: int = 1
    """The last arrays, which are written."""

    @property
    def most(self) -> int:
        """Threads that are worth it."""
        return max(1, min(self.work // SHARE, self.turns))

    def share(self) -> ir.Function:
        """Adds the function that does some of the turns. It is the same for kernels that differ in turns alone."""
        build, function = entry(self.function.module, "share", VOID, *SHARED.args)
        addresses, begin, end, thread = function.args
        given = []
        for index, argument in enumerate(self.function.args[:-2]):
            address = build.load(build.gep(addresses, [I64(index)]))
            given.append(build.bitcast(address, argument.type))
            if index in self.own:
                given[-1] = build.gep(given[-1], [build.mul(thread, I64(self.own[index]))])
        build.call(self.function, [*given, begin, end])
        build.ret_void()
        return function


def portion(build: ir.IRBuilder, turns: ir.Value, thread: ir.Value, count: ir.Value) -> list[ir.Value]:
    """The turns that one of `count` threads begins and ends with."""
    return [build.sdiv(build.mul(turns, number), count) for number in (thread, build.add(thread, I64(1)))]


@cache
def nothing() -> Kernel:
    """A kernel that does nothing, with an array."""
    build, function = started([I8])
    build.ret_void()
    return Kernel(function, 1, 0)


def entry(module: ir.Module, name: str, returned: ir.Type, *arguments: ir.Type) -> tuple[ir.IRBuilder, ir.Function]:
    """A new function of a module."""
    function = ir.Function(module, ir.FunctionType(returned, arguments), name)
    return ir.IRBuilder(function.append_basic_block()), function


_code: dict[bytes, Mapping[str, int]] = {}
_compiling = threading.RLock()
_number = itertools.count()


def code(module: str, work: int) -> Mapping[str, int]:
    """The addresses of a module's functions, by name, as machine code for `work` elements; it stays for good.

    All modules are objects of one engine: an engine of its own takes a megabyte for each.
    """
    fast = work >= SMALL
    key = hashlib.sha256(f"{fast} {module}".encode()).digest()
    with _compiling:
        if key not in _code:
            _code[key] = _compiled(module, f".{next(_number)}", fast)
        return _code[key]


def _compiled(module: str, suffix: str, fast: bool) -> Mapping[str, int]:
    """Compiles a module, with names of its functions that no other has."""
    parsed = llvm.parse_assembly(module)
    parsed.verify()
    functions = [each for each in parsed.functions if not each.is_declaration and each.linkage == llvm.Linkage.external]
    names = [each.name for each in functions]
    for each in functions:
        each.name += suffix
    machine = _machine(2 if fast else 0)
    if fast:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = True
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(parsed, passes)
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine.emit_object(parsed)))
    engine.finalize_object()
    return {name: engine.get_function_address(name + suffix) for name in names}


@cache
def _engine() -> llvm.ExecutionEngine:
    """The owner of all machine code."""
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine.__wrapped__(2))


@cache
def _machine(level: int) -> llvm.TargetMachine:
    """This processor, with the features in use."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # In this order: what is off at the end is off with all that is built on it, whatever comes before.
    given = sorted(features().items(), key=lambda feature: not feature[1])
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in given)
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=text, opt=level, jit=True)


# --- processors -------------------------------------------------------------------------------------------------------

ABSENT: Mapping[int, tuple[str, ...]] = {512: (), 256: ("avx512",), 128: ("avx",)}
"""Prefixes of the features that a processor lacks whose widest vectors have this many bits."""
_widest = 512


def limit(bits: int) -> None:
    """Compile as for a processor whose vectors have 512, 256 or 128 bits; this one must have them.

    RuntimeError once a feature was asked for: what is compiled, or decided, stays as it is.
    """
    global _widest
    if features.cache_info().currsize:
        raise RuntimeError(f"limit({bits}) comes too late: the features of this processor are in use")
    _widest = bits
    if vector_bits() != bits:
        raise RuntimeError(f"this processor has no vectors of {bits} bits: its widest have {vector_bits()}")


@cache
def features() -> Mapping[str, bool]:
    """The features of this processor that are in use, by the names that LLVM gives them."""
    features = llvm.get_host_cpu_features()
    return {name: on and not name.startswith(ABSENT[_widest]) for name, on in features.items()}


def vector_bits() -> int:
    """The number of bits of the widest registers in use."""
    return 512 if features().get("avx512f") else 256 if features().get("avx") else 128
