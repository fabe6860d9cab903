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

    one: Callable[..., None]
    address: int
    """The address of `one`."""
    several: int
    most: int

    def threads(self) -> int:
        """The number of threads that is worth it."""
        return min(torch._C.get_num_threads(), self.most) if self.several else 1

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
    addresses = code(str(module), kernel.work)
    one = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["one"])
    return CompiledKernel(one, addresses["one"], addresses.get("several", 0), kernel.most)


class Chain:
    """Kernels one after the other on this thread, with the addresses of the first one's `counts[0]` arrays, and so on."""

    def __init__(self, kernels: Sequence[CompiledKernel], counts: Sequence[int]) -> None:
        self.kernels, number, total = kernels, len(kernels), sum(counts)
        functions = (ctypes.c_void_p * number)(*(each.address for each in kernels))
        starts = (ctypes.c_int64 * number)(*(sum(counts[:place]) for place in range(number)))
        self.given, self.steps = ctypes.c_void_p * total, ctypes.c_int64 * total
        self.caller, self.how = _caller(), (functions, starts, number, total)
        self.standing = self.steps()

    def __call__(self, addresses: Sequence[int]) -> None:
        if len(self.kernels) == 1:
            self.kernels[0].one(self.given(*addresses))
        else:
            self.caller(*self.how, self.given(*addresses), self.standing, 1)

    def repeat(self, addresses: Sequence[int], steps: Sequence[int], turns: int) -> None:
        """Calls all of them `turns` times, with addresses that go on by so many bytes."""
        self.caller(*self.how, self.given(*addresses), self.steps(*steps), turns)


@cache
def _caller() -> Callable[..., None]:
    """A function that calls functions with their parts of an array of addresses, turn after turn."""
    module = ir.Module()
    pointer = ir.FunctionType(VOID, [ADDRESS.as_pointer()]).as_pointer()
    numbers = I64.as_pointer()
    build, function = entry(module, "call", VOID, pointer.as_pointer(), numbers, I64, I64, numbers, numbers, I64)
    functions, starts, number, total, addresses, steps, turns = function.args
    with Loop(build, I64(0), turns):
        with Loop(build, I64(0), number) as index:
            start = build.gep(addresses, [build.load(build.gep(starts, [index]))])
            build.call(build.load(build.gep(functions, [index])), [build.bitcast(start, ADDRESS.as_pointer())])
        with Loop(build, I64(0), total) as index:
            place = build.gep(addresses, [index])
            build.store(build.add(build.load(place), build.load(build.gep(steps, [index]))), place)
    build.ret_void()
    kinds = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 2 + [ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *kinds)(code(str(module), 1)["call"])


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
