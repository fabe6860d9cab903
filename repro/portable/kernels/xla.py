"""Kernels as functions that XLA calls.

XLA calls them on a CPU, in JAX and in TensorFlow.

They follow XLA's foreign function interface, whose structures are in xla/ffi/api/c_api.h, next to both frameworks'
libraries. Threads are XLA's own.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from repro.portable.kernels.machine import ADDRESS, I32, I64, SHARED, VOID, Kernel, Loop, code, entry, portion

SHARE = 2**18
"""Elements that are worth one of XLA's threads, which other parts of the program use as well."""

VERSION = (0, 2)
"""The version of the interface. Later ones with the same first number accept it, too."""
METADATA = 1
"""The extension of a call that asks for the version."""

POINTER = ADDRESS.as_pointer()
NEXT, DONE, USERS, COUNT, TURNS, FUNCTION, ARRAYS = range(0, 56, 8)
"""The places in a job: shares taken, shares done, threads that may still read it, all shares; a kernel's turns,
its function, its arrays."""
RUN = "repro_xla_run"
"""The name of what all handlers call: see _runtime()."""
RUNS = ir.FunctionType(ADDRESS, [ADDRESS, SHARED.as_pointer(), I64, I64, I64, I64])


@dataclass(frozen=True)
class Handler:
    """A function that XLA may call by this name."""

    name: str
    address: int


@cache
def handler(kernel: Kernel) -> Handler:
    """A handler for a kernel whose last arrays are results; the others are operands."""
    _runtime()
    module = kernel.function.module
    share, run = kernel.share(), ir.Function(module, RUNS, RUN)
    build, function = entry(module, "handler", ADDRESS, ADDRESS)
    most = max(1, min(kernel.work // SHARE, kernel.turns))
    operands = len(kernel.function.args) - 2 - kernel.results
    build.ret(build.call(run, [*function.args, share, *map(I64, (kernel.turns, operands, kernel.results, most))]))
    text = str(module)
    name = hashlib.sha256(text.encode()).hexdigest()[:20]
    return Handler(f"repro_{name}", code(text, kernel.work)["handler"])


@cache
def _runtime() -> None:
    """Compiles what all handlers have in common, and gives it a name for the modules that follow."""
    module = ir.Module()
    _run(module, _work(module))
    llvm.add_symbol(RUN, code(str(module), 1)["run"])


def _run(module: ir.Module, work: ir.Function) -> None:
    """Collects the addresses of the arrays, and calls the kernel; where that is worth it with XLA's other threads."""
    build, function = entry(module, "run", RUNS.return_type, *RUNS.args)
    frame, share, turns, operands, results, most = function.args
    arrays = build.add(operands, results)
    addresses = build.alloca(ADDRESS, arrays)
    result = build.alloca(I64)
    extension = _read(build, frame, 8)
    with build.if_then(build.icmp_unsigned("!=", extension, ADDRESS(None))):
        kind = build.load(_at(build, extension, 8, I32))
        with build.if_then(build.icmp_signed("==", kind, I32(METADATA))):
            metadata = _read(build, extension, 24)
            for offset, number in zip((24, 28), VERSION, strict=True):
                build.store(I32(number), _at(build, metadata, offset, I32))
            build.ret(ADDRESS(None))
    for offset, first, count in ((72, I64(0), operands), (112, operands, results)):
        with Loop(build, I64(0), count) as index:
            buffers = build.bitcast(_read(build, frame, offset), POINTER)
            buffer = build.load(build.gep(buffers, [index]))
            build.store(_read(build, buffer, 24), build.gep(addresses, [build.add(first, index)]))
    with build.if_then(build.icmp_signed(">", most, I64(1))):
        interface, context = _read(build, frame, 16), _read(build, frame, 24)
        build.store(I64(1), result)
        asked = _arguments(build, context, build.bitcast(result, ADDRESS))
        _call(build, interface, 144, asked)  # XLA_FFI_ThreadPool_NumThreads
        threads = build.load(result)
        count = build.select(build.icmp_signed("<", threads, most), threads, most)
        with build.if_then(build.icmp_signed(">", count, I64(1))):
            job = _job(build, module, (count, count, turns, share), addresses, arrays)
            task = _task(module, work)
            asked = _arguments(build, context, build.bitcast(task, ADDRESS), job)
            with Loop(build, I64(1), count):
                failed = _call(build, interface, 136, asked)  # XLA_FFI_ThreadPool_Schedule
                with build.if_then(failed):
                    _count(build, job, USERS, -1)
            build.call(work, [job])
            wait, ready = build.append_basic_block(), build.append_basic_block()
            build.branch(wait)
            build.position_at_end(wait)
            build.call(_extern(module, "sched_yield", I32), [])
            done = build.load_atomic(_at(build, job, DONE, I64), "acquire", 8)
            build.cbranch(build.icmp_signed("<", done, count), wait, ready)
            build.position_at_end(ready)
            _leave(build, module, job)
            build.ret(ADDRESS(None))
    build.call(share, [addresses, I64(0), turns, I64(0)])
    build.ret(ADDRESS(None))


def _work(module: ir.Module) -> ir.Function:
    """Does shares of a job as long as there are some."""
    build, function = entry(module, "work", VOID, ADDRESS)
    (job,) = function.args
    count = build.load(_at(build, job, COUNT, I64))
    share = build.load(_at(build, job, FUNCTION, SHARED.as_pointer()))
    again, some, none = (build.append_basic_block() for _ in range(3))
    build.branch(again)
    build.position_at_end(again)
    number = _count(build, job, NEXT, 1)
    build.cbranch(build.icmp_signed("<", number, count), some, none)
    build.position_at_end(some)
    turns = portion(build, build.load(_at(build, job, TURNS, I64)), number, count)
    build.call(share, [_at(build, job, ARRAYS, ADDRESS), *turns, number])
    _count(build, job, DONE, 1)
    build.branch(again)
    build.position_at_end(none)
    build.ret_void()
    return function


def _task(module: ir.Module, work: ir.Function) -> ir.Function:
    """The function that another thread runs; it may begin after all is done."""
    build, function = entry(module, "task", VOID, ADDRESS)
    build.call(work, function.args)
    _leave(build, module, function.args[0])
    build.ret_void()
    return function


def _job(
    build: ir.IRBuilder, module: ir.Module, given: Sequence[ir.Value], addresses: ir.Value, arrays: ir.Value
) -> ir.Value:
    size = build.add(build.mul(arrays, I64(8)), I64(ARRAYS))
    job = build.call(_extern(module, "malloc", ADDRESS, I64), [size])
    for place, value in enumerate((I64(0), I64(0), *given)):
        build.store(value, _at(build, job, 8 * place, value.type))
    there = _at(build, job, ARRAYS, ADDRESS)
    with Loop(build, I64(0), arrays) as index:
        build.store(build.load(build.gep(addresses, [index])), build.gep(there, [index]))
    return job


def _leave(build: ir.IRBuilder, module: ir.Module, job: ir.Value) -> None:
    """The last one frees the job."""
    with build.if_then(build.icmp_signed("==", _count(build, job, USERS, -1), I64(1))):
        build.call(_extern(module, "free", VOID, ADDRESS), [job])


def _count(build: ir.IRBuilder, job: ir.Value, place: int, step: int) -> ir.Value:
    """Adds to a counter of a job; returns its old value."""
    return build.atomic_rmw("add", _at(build, job, place, I64), I64(step), "acq_rel")


def _arguments(build: ir.IRBuilder, *fields: ir.Value) -> ir.Value:
    """A structure of these pointers, as XLA's functions take it: first comes its size, and that nothing extends it."""
    size = 16 + 8 * len(fields)
    address = build.bitcast(build.alloca(ir.ArrayType(I64, size // 8)), ADDRESS)
    build.store(I64(size), _at(build, address, 0, I64))
    for offset, value in zip(range(8, size, 8), (ADDRESS(None), *fields), strict=True):
        build.store(value, _at(build, address, offset, ADDRESS))
    return address


def _call(build: ir.IRBuilder, interface: ir.Value, offset: int, given: ir.Value) -> ir.Value:
    """Calls a function of XLA's; whether it failed."""
    kind = ir.FunctionType(ADDRESS, [ADDRESS]).as_pointer()
    error = build.call(build.bitcast(_read(build, interface, offset), kind), [given])
    failed = build.icmp_unsigned("!=", error, ADDRESS(None))
    with build.if_then(failed):
        build.call(
            build.bitcast(_read(build, interface, 64), kind), [_arguments(build, error)]
        )  # XLA_FFI_Error_Destroy
    return failed


def _extern(module: ir.Module, name: str, returned: ir.Type, *arguments: ir.Type) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(returned, arguments), name)


def _at(build: ir.IRBuilder, structure: ir.Value, offset: int, type_: ir.Type) -> ir.Value:
    return build.bitcast(build.gep(structure, [I64(offset)]), type_.as_pointer())


def _read(build: ir.IRBuilder, structure: ir.Value, offset: int) -> ir.Value:
    """A pointer in a structure."""
    return build.load(_at(build, structure, offset, ADDRESS))
