"""Machine code for this processor, by LLVM, from loops in its intermediate representation: no C++ compiler is needed.

LLVM is given no leave to change the arithmetic: every operation rounds for itself, as IEEE 754 says.
"""

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import torch
from llvmlite import ir

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()

SHARE = 2**15
"""Elements that are worth a thread."""
SMALL = 2**8
"""Elements for which better code takes longer to make than it saves."""


class Loop:
    """A loop of one turn or more, as a context: the index that instructions in it may use."""

    def __init__(self, builder: ir.IRBuilder, begin: ir.Value, end: ir.Value) -> None:
        self.builder, self.begin, self.end = builder, begin, end

    def __enter__(self) -> ir.Value:
        build = self.builder
        before, self.block = build.block, build.append_basic_block()
        build.branch(self.block)
        build.position_at_end(self.block)
        self.index = build.phi(I64)
        self.index.add_incoming(self.begin, before)
        return self.index

    def __exit__(self, *_: object) -> None:
        build = self.builder
        following = build.add(self.index, I64(1))
        self.index.add_incoming(following, build.block)
        after = build.append_basic_block()
        build.cbranch(build.icmp_signed("<", following, self.end), self.block, after)
        build.position_at_end(after)


def started(types: Sequence[ir.Type]) -> tuple[ir.IRBuilder, ir.Function]:
    """A function of arrays of these types, none of which overlap, and of the turns to begin and to end with."""
    module = ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [*(type_.as_pointer() for type_ in types), I64, I64])
    function = ir.Function(module, kind, "loops")
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args[: len(types)]:
        argument.add_attribute("noalias")
    return ir.IRBuilder(function.append_basic_block()), function


@dataclass(frozen=True)
class Compiled:
    """A function of started() as machine code, called with the addresses of its arrays."""

    engine: llvm.ExecutionEngine
    """Which owns the code."""
    one: Callable[..., None]
    several: int
    turns: int
    work: int

    def threads(self) -> int:
        """How many are worth it."""
        most = min(self.work // SHARE, self.turns)
        return min(torch.get_num_threads(), most) if most > 1 and self.several else 1

    def __call__(self, addresses: Sequence[int], threads: int) -> None:
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        if threads == 1:
            self.one(given)
        else:
            _openmp().GOMP_parallel(self.several, given, threads, 0)  # type: ignore[union-attr]


def compiled(function: ir.Function, turns: int, work: int, own: Mapping[int, int] = {}) -> Compiled:
    """For so many turns and elements; `own`: numbers that each thread has of its own, of arrays that all write to."""
    _entry(function, "one", turns, own)
    if _openmp():
        _entry(function, "several", turns, own)
    return _compiled(str(function.module), turns, work)


def _entry(loops: ir.Function, name: str, turns: int, own: Mapping[int, int]) -> None:
    """A function of an array of addresses: `one` does all turns, `several` a thread's share of them."""
    function = ir.Function(loops.module, ir.FunctionType(ir.VoidType(), [I64.as_pointer()]), name)
    build = ir.IRBuilder(function.append_basic_block())
    begin, end, thread = I64(0), I64(turns), I64(0)
    if name == "several":
        thread, count = (
            build.sext(build.call(ir.Function(loops.module, ir.FunctionType(I32, []), asked), []), I64)
            for asked in ("omp_get_thread_num", "omp_get_num_threads")
        )
        begin = build.sdiv(build.mul(I64(turns), thread), count)
        end = build.sdiv(build.mul(I64(turns), build.add(thread, I64(1))), count)
    addresses = []
    for index, argument in enumerate(loops.args[:-2]):
        address = build.inttoptr(build.load(build.gep(function.args[0], [I64(index)])), argument.type)
        addresses.append(build.gep(address, [build.mul(thread, I64(own[index]))]) if index in own else address)
    build.call(loops, [*addresses, begin, end])
    build.ret_void()


@cache
def _compiled(code: str, turns: int, work: int) -> Compiled:
    module = llvm.parse_assembly(code)
    module.verify()
    machine = _machine(level=0 if work < SMALL else 2)
    if work >= SMALL:
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    one = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("one"))
    return Compiled(engine, one, engine.get_function_address("several") if _openmp() else 0, turns, work)


def _machine(level: int) -> llvm.TargetMachine:
    """This processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level, jit=True)


@cache
def vector_bits() -> int:
    """Of this processor's widest registers."""
    features = llvm.get_host_cpu_features()
    return 512 if features.get("avx512f") else 256 if features.get("avx") else 128


@cache
def _openmp() -> ctypes.CDLL | None:
    """The threads that PyTorch's own operations run on, where they are those of GNU OpenMP."""
    own = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))
    try:
        library = ctypes.CDLL(str(own[0]) if own else "libgomp.so.1", mode=os.RTLD_NOLOAD)
        for name in ("omp_get_thread_num", "omp_get_num_threads"):
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    except (OSError, AttributeError):
        return None
    return library
