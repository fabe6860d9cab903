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

from repro.portable.kernels.machine import ADDRESS, I32, I64, SHARED, VOID, Kernel, Loop, code, entry, portion
from repro.portable.kernels.pytorch.threads import gnu_openmp


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as machine code, called with the addresses of its arrays."""

    share: Callable[..., None]
    address: int
    """The address of `share`."""
    turns: int
    most: int
    """Threads that are worth it, and possible."""

    def threads(self) -> int:
        """The number of threads that is worth it."""
        return min(torch._C.get_num_threads(), self.most)

    def __call__(self, addresses: Sequence[int], threads: int) -> None:
        given = (ctypes.c_void_p * len(addresses))(*addresses)
        if threads == 1:
            self.share(given, 0, self.turns, 0)
        else:
            job = (ctypes.c_void_p * 3)(self.address, ctypes.addressof(given), self.turns)
            _openmp().GOMP_parallel(_several(), job, threads, 0)  # type: ignore[union-attr]


def compiled(kernel: Kernel) -> CompiledKernel:
    """Compiles a kernel."""
    kernel.share()
    address = code(str(kernel.function.module), kernel.work)["share"]
    share = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)(address)
    return CompiledKernel(share, address, kernel.turns, kernel.most if _openmp() else 1)


class Chain:
    """Kernels one after the other on this thread, with the addresses of the first one's `counts[0]` arrays, and so on."""

    def __init__(self, kernels: Sequence[CompiledKernel], counts: Sequence[int]) -> None:
        self.kernels, number, total = kernels, len(kernels), sum(counts)
        functions = (ctypes.c_void_p * number)(*(each.address for each in kernels))
        starts = (ctypes.c_int64 * number)(*(sum(counts[:place]) for place in range(number)))
        turns = (ctypes.c_int64 * number)(*(each.turns for each in kernels))
        self.given, self.steps = ctypes.c_void_p * total, ctypes.c_int64 * total
        self.caller, self.how = _caller(), (functions, starts, turns, number, total)
        self.standing = self.steps()

    def __call__(self, addresses: Sequence[int]) -> None:
        if len(self.kernels) == 1:
            self.kernels[0].share(self.given(*addresses), 0, self.kernels[0].turns, 0)
        else:
            self.caller(*self.how, self.given(*addresses), self.standing, 1)

    def repeat(self, addresses: Sequence[int], steps: Sequence[int], turns: int) -> None:
        """Calls all of them `turns` times, with addresses that go on by so many bytes."""
        self.caller(*self.how, self.given(*addresses), self.steps(*steps), turns)


@cache
def _caller() -> Callable[..., None]:
    """A function that calls functions with their parts of an array of addresses, turn after turn."""
    module = ir.Module()
    numbers = I64.as_pointer()
    given = SHARED.as_pointer().as_pointer(), numbers, numbers, I64, I64, numbers, numbers, I64
    build, function = entry(module, "call", VOID, *given)
    functions, starts, turns, number, total, addresses, steps, times = function.args
    with Loop(build, I64(0), times):
        with Loop(build, I64(0), number) as index:
            start = build.gep(addresses, [build.load(build.gep(starts, [index]))])
            start = build.bitcast(start, ADDRESS.as_pointer())
            build.call(
                build.load(build.gep(functions, [index])),
                [start, I64(0), build.load(build.gep(turns, [index])), I64(0)],
            )
        with Loop(build, I64(0), total) as index:
            place = build.gep(addresses, [index])
            build.store(build.add(build.load(place), build.load(build.gep(steps, [index]))), place)
    build.ret_void()
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 2 + [ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *kinds)(code(str(module), 1)["call"])


@cache
def _several() -> int:
    """The address of what each thread of OpenMP calls, with a kernel's `share`, the addresses of its arrays, and its turns."""
    module = ir.Module()
    build, function = entry(module, "several", VOID, ADDRESS.as_pointer())
    share, addresses, turns = (build.load(build.gep(function.args[0], [I64(index)])) for index in range(3))
    asked = (ir.Function(module, ir.FunctionType(I32, []), name) for name in THREADS)
    thread, count = (build.sext(build.call(each, []), I64) for each in asked)
    turns_of_thread = portion(build, build.ptrtoint(turns, I64), thread, count)
    arrays = build.bitcast(addresses, ADDRESS.as_pointer())
    build.call(build.bitcast(share, SHARED.as_pointer()), [arrays, *turns_of_thread, thread])
    build.ret_void()
    return code(str(module), 1)["several"]


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
