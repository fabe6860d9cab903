"""Threads without Python, which share a kernel's units.

Each waits at a box of its own for a function, its arrays, and its share of the units. Neither Python's lock nor a queue is
between a call and its threads.
"""

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from llvmlite import ir

from repro.portable.kernels import machine
from repro.portable.kernels.machine import ADDRESS, I32, I64, VOID, Loop, entry

WORD = I64.as_pointer()
GO, DONE, FUNCTION, ARRAYS, BEGIN, END, SIZE = 0, 4, 8, 9, 10, 11, 16
"""The words of a box, of 64 bits: two semaphores of 32 bytes, and what is called. The first box is no thread's: its words
are 1 while the threads work for a call, and the number of threads."""

libc = ctypes.CDLL(None)
libm = ctypes.CDLL("libm.so.6")
current = ctypes.c_int64()
"""The address of the boxes of this process's threads; 0 before they are started."""


class Workers:
    """A number of threads, for one call at a time. They end with the process."""

    all: ClassVar[list["Workers"]] = []

    def __init__(self, number: int) -> None:
        self.all.append(self)  # whose boxes they read
        addresses = _code()
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self.function = kind(addresses["share"])
        self.boxes = (ctypes.c_int64 * (SIZE * (number + 1)))()
        self.boxes[1] = number
        for index in range(1, number + 1):
            box = ctypes.addressof(self.boxes) + 8 * SIZE * index
            for word in (GO, DONE):
                libc.sem_init(ctypes.c_void_p(box + 8 * word), 0, 0)
            thread, work = ctypes.c_void_p(), ctypes.c_void_p(addresses["work"])
            failed = libc.pthread_create(ctypes.byref(thread), None, work, ctypes.c_void_p(box))
            if failed:
                raise OSError(failed, f"no thread could be started: {os.strerror(failed)}")
        current.value = ctypes.addressof(self.boxes)

    def share(self, address: int, arrays: Any, units: int, shares: int) -> bool:
        """Calls the function at an address; False where the threads work for another call."""
        return bool(self.function(address, arrays, units, self.boxes, shares - 1))


@cache
def workers(number: int) -> Workers:
    return Workers(number)


def _forget() -> None:
    """A process has no threads of the one that it was forked from."""
    workers.cache_clear()
    current.value = 0


os.register_at_fork(after_in_child=_forget)


def share() -> int:
    """The address of a function that shares a call's units: see Workers.share."""
    return _code()["share"]


def outside(build: ir.IRBuilder, library: ctypes.CDLL, name: str, returned: ir.Type, *given: ir.Value) -> ir.Value:
    """Calls a function of a library that this process has loaded."""
    address = I64(ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    kind = ir.FunctionType(returned, [each.type for each in given])
    return build.call(build.inttoptr(address, kind.as_pointer()), given)


@cache
def _code() -> Mapping[str, int]:
    """Compiles what a thread does, and of a call that shares its units."""
    module = ir.Module()
    called = ir.FunctionType(VOID, [ADDRESS, I64, I64]).as_pointer()

    def system(build: ir.IRBuilder, library: ctypes.CDLL, name: str, given: ir.Value) -> ir.Value:
        return outside(build, library, name, I32, build.bitcast(given, ADDRESS))

    def field(build: ir.IRBuilder, box: ir.Value, word: int) -> ir.Value:
        return build.gep(box, [I64(word)])

    def post(build: ir.IRBuilder, box: ir.Value, word: int) -> None:
        system(build, libc, "sem_post", field(build, box, word))

    def wait(build: ir.IRBuilder, box: ir.Value, word: int) -> None:
        again, after = build.append_basic_block(), build.append_basic_block()
        build.branch(again)
        build.position_at_end(again)
        failed = system(build, libc, "sem_wait", field(build, box, word))
        build.cbranch(build.icmp_signed("!=", failed, I32(0)), again, after)  # by a signal
        build.position_at_end(after)

    build, work = entry(module, "work", VOID, WORD)
    (box,) = work.args
    system(build, libm, "fesetenv", build.inttoptr(I64(-1), ADDRESS))  # IEEE 754's: see dispatch.computed
    forever = build.append_basic_block()
    build.branch(forever)
    build.position_at_end(forever)
    wait(build, box, GO)
    function, arrays, *share = (build.load(field(build, box, word)) for word in (FUNCTION, ARRAYS, BEGIN, END))
    build.call(build.inttoptr(function, called), [build.inttoptr(arrays, ADDRESS), *share])
    post(build, box, DONE)
    build.branch(forever)

    build, share = entry(module, "share", I64, ADDRESS, ADDRESS, I64, WORD, I64)
    function, arrays, units, boxes, others = share.args
    with build.if_then(build.icmp_signed(">", others, build.load(build.gep(boxes, [I64(1)])))):
        build.ret(I64(0))
    free = build.extract_value(build.cmpxchg(boxes, I64(0), I64(1), "acq_rel", "acquire"), 1)
    with build.if_then(build.not_(free)):
        build.ret(I64(0))
    shares = build.add(others, I64(1))

    def end(number: ir.Value) -> ir.Value:
        return build.sdiv(build.mul(units, build.add(number, I64(1))), shares)

    with Loop(build, I64(0), others) as number:
        following = build.add(number, I64(1))
        box = build.gep(boxes, [build.mul(following, I64(SIZE))])
        given = [build.ptrtoint(function, I64), build.ptrtoint(arrays, I64), end(number), end(following)]
        for word, value in zip((FUNCTION, ARRAYS, BEGIN, END), given, strict=True):
            build.store(value, field(build, box, word))
        post(build, box, GO)
    build.call(build.bitcast(function, called), [arrays, I64(0), end(I64(0))])
    with Loop(build, I64(0), others) as number:
        wait(build, build.gep(boxes, [build.mul(build.add(number, I64(1)), I64(SIZE))]), DONE)
    build.store_atomic(I64(0), boxes, "release", 8)
    build.ret(I64(1))
    return machine.code(str(module), machine.SMALL)
