"""Threads of PyTorch for kernels.

A kernel is a function of the addresses of tensors, and runs on the threads of PyTorch's own operations.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
import torch
from llvmlite import ir

from repro.portable.kernels.machine import ADDRESS, I32, I64, VOID, Kernel, Loop, code, entry
from repro.portable.kernels.pytorch.threads import gnu_openmp


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as machine code, called with the addresses of its arrays."""

    engine: llvm.ExecutionEngine
    """The owner of the code."""
    one: Callable[..., None]
    address: int
    """The address of `one`."""
    several: int
    most: int

    def threads(self) -> int:
        """The number of threads that is worth it."""
        return min(torch._C.get_num_threads(), self.most) if self.several else 1

    def alone(self, addresses: Sequence[int]) -> None:
        """Runs all of it on this thread."""
        self.one((ctypes.c_void_p * len(addresses))(*addresses))

    def __call__(self, addresses: Sequence[int], threads: int) -> None:
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        if threads == 1:
            self.one(given)
        else:
            _openmp().GOMP_parallel(self.several, given, threads, 0)  # type: ignore[union-attr]


def compiled(kernel: Kernel) -> CompiledKernel:
    """Compiles a kernel: `one` is all of it, `several` is what each thread of OpenMP calls."""
    module = kernel.function.module
    build, function = entry(module, "one", VOID, ADDRESS.as_pointer())
    kernel.share(build, function.args[0], I64(0), I64(1))
    build.ret_void()
    if _openmp():
        build, function = entry(module, "several", VOID, ADDRESS.as_pointer())
        asked = (ir.Function(module, ir.FunctionType(I32, []), name) for name in THREADS)
        kernel.share(build, function.args[0], *(build.sext(build.call(each, []), I64) for each in asked))
        build.ret_void()
    engine = code(str(module), kernel.work)
    address = engine.get_function_address("one")
    one = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    return CompiledKernel(engine, one, address, engine.get_function_address("several") if _openmp() else 0, kernel.most)


def chain(kernels: Sequence[CompiledKernel], counts: Sequence[int]) -> Callable[[Sequence[int]], None]:
    """A call of kernels one after the other, with the addresses of the first one's `counts[0]` arrays, and so on."""
    number = len(kernels)
    functions = (ctypes.c_void_p * number)(*(each.address for each in kernels))
    starts = (ctypes.c_int64 * number)(*(sum(counts[:place]) for place in range(number)))
    given, caller = ctypes.c_void_p * sum(counts), _caller()

    def call(addresses: Sequence[int], _: Sequence[CompiledKernel] = kernels) -> None:
        caller(functions, starts, number, given(*addresses))

    return call if number > 1 else kernels[0].alone


@cache
def _caller() -> Callable[..., None]:
    """A function that calls functions with their parts of an array."""
    module = ir.Module()
    pointer = ir.FunctionType(VOID, [ADDRESS.as_pointer()]).as_pointer()
    build, function = entry(module, "call", VOID, pointer.as_pointer(), I64.as_pointer(), I64, ADDRESS.as_pointer())
    functions, starts, number, addresses = function.args
    with Loop(build, I64(0), number) as index:
        start = build.load(build.gep(starts, [index]))
        build.call(build.load(build.gep(functions, [index])), [build.gep(addresses, [start])])
    build.ret_void()
    engine = code(str(module), 1)
    caller = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("call")
    )
    caller.engine = engine  # type: ignore[attr-defined]
    return caller


THREADS = "omp_get_thread_num", "omp_get_num_threads"


@cache
def _openmp() -> ctypes.CDLL | None:
    """GNU's OpenMP with the functions that kernels call, if PyTorch has it."""
    library = gnu_openmp()
    try:
        for name in THREADS:
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]  # type: ignore[union-attr]
    except AttributeError:
        return None
    return library
