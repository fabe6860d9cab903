"""Machine code of a node: it finds the program for the arrays that it is given, and runs it."""

import ctypes
from functools import cache
from pathlib import Path

import tensorflow as tf
from llvmlite import ir

from repro.portable.kernels.machine import ADDRESS, I32, I64, VOID, Loop, entry
from repro.portable.kernels.numpy import programs, workers
from repro.portable.kernels.numpy.programs import ALIGNMENT
from repro.portable.kernels.numpy.workers import WORD, libc, libm, outside

I1 = ir.IntType(1)
FIRST, BY_VALUE, CALLS, WORDS = range(4)
"""The words of a definition: its first program; a bit for each array whose numbers its programs depend on; the number of calls
that programs made."""
INPUTS, RESULTS, RANK, BYTES = 16, 8, 8, 128
"""The largest number of arrays, of results and of axes, and bytes of an array that programs depend on."""
LONGEST = 1 + INPUTS * (1 + RANK + BYTES // 8)
"""Words of a signature: the setting, and of each array its rank, its shape and, if programs depend on them, its bytes."""
ENVIRONMENT = 64
"""Bytes of a floating-point environment, at least."""
MISSED = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)
"""A function of the addresses of a context, a definition and tensors, their number, the address of a signature and its length,
0 of one that is too long, and the address of a status."""

EXHAUSTED = 8
"""TensorFlow's number of the error that there is no memory."""
_full = ctypes.create_string_buffer(b"no memory for what a definition computes on the way")

setting = ctypes.c_int64()
"""What programs depend on beside arrays: a number that is the same where definitions compute alike."""


@cache
def library() -> ctypes.CDLL:
    """TensorFlow's C interface."""
    return ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / "libtensorflow_framework.so.2"))


def _tf(build: ir.IRBuilder, name: str, returned: ir.Type, *given: ir.Value) -> ir.Value:
    return outside(build, library(), name, returned, *given)


def _word(build: ir.IRBuilder, words: ir.Value, index: int) -> ir.Value:
    return build.load(build.gep(words, [I64(index)]))


def _words(build: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return build.inttoptr(address, WORD)


def _held(build: ir.IRBuilder, number: ctypes.c_int64) -> ir.Value:
    """A number that Python may change."""
    return build.load(_words(build, I64(ctypes.addressof(number))))


def compute(module: ir.Module, missed: int) -> None:
    """Computes a node's results by the program for its arrays; without one, by the function at an address."""
    find, execute = _find(module), run(module)
    build, function = entry(module, "compute", VOID, ADDRESS, ADDRESS)
    kernel, context = build.bitcast(function.args[0], WORD), function.args[1]
    tensors, begins = build.alloca(ADDRESS, INPUTS), build.alloca(I64, INPUTS + RESULTS + 2)
    signature, length = build.alloca(I64, LONGEST), build.alloca(I64)
    environment = build.alloca(I64, ENVIRONMENT // 8)
    status = _tf(build, "TF_NewStatus", ADDRESS)
    number = build.sext(_tf(build, "TF_NumInputs", I32, context), I64)
    definition = build.load(kernel)
    by_value = _word(build, _words(build, definition), BY_VALUE)
    build.store(_held(build, setting), signature)
    build.store(I64(1), length)
    with Loop(build, I64(0), number) as index:
        slot = build.gep(tensors, [index])
        _tf(build, "TF_GetInput", VOID, context, build.trunc(index, I32), slot, status)
        data = _tf(build, "TF_TensorData", ADDRESS, build.load(slot))
        build.store(build.ptrtoint(data, I64), build.gep(begins, [index]))
        _sign(build, build.load(slot), data, build.trunc(build.lshr(by_value, index), I1), signature, length)
    size = build.load(length)
    size = build.select(build.icmp_signed(">", size, I64(LONGEST)), I64(0), size)
    program = build.call(find, [kernel, signature, size])
    with build.if_else(build.icmp_signed("==", program, I64(0))) as (none, some):
        with none:
            pointers = (build.ptrtoint(each, I64) for each in (context, tensors, signature, status))
            where, arrays, signed, state = pointers
            called = build.inttoptr(I64(missed), ir.FunctionType(VOID, [I64] * 7).as_pointer())
            build.call(called, [where, definition, arrays, number, signed, size, state])
        with some:
            words = _words(build, program)
            ready = _allocated(build, words, context, number, begins, status)
            with build.if_then(ready):
                outside(build, libm, "fegetenv", I32, environment)
                outside(build, libm, "fesetenv", I32, build.inttoptr(I64(-1), ADDRESS))  # see dispatch.computed
                build.call(execute, [program, begins])
                outside(build, libm, "fesetenv", I32, environment)
            memory = build.gep(begins, [build.add(number, _word(build, words, programs.OUTPUTS))])
            outside(build, libc, "free", VOID, build.load(memory))
            build.atomic_rmw("add", build.gep(_words(build, definition), [I64(CALLS)]), I64(1), "monotonic")
    with Loop(build, I64(0), number) as index:
        _tf(build, "TF_DeleteTensor", VOID, build.load(build.gep(tensors, [index])))
    _tf(build, "TF_DeleteStatus", VOID, status)
    build.ret_void()


def _sign(
    build: ir.IRBuilder, tensor: ir.Value, data: ir.Value, by_value: ir.Value, signature: ir.Value, length: ir.Value
) -> None:
    """Adds an array to a signature; what is too long for it makes the length of the signature impossible."""
    rank = build.sext(_tf(build, "TF_NumDims", I32, tensor), I64)
    with build.if_then(build.icmp_signed(">", rank, I64(RANK))):
        build.store(I64(LONGEST + 1), length)
    with build.if_then(build.icmp_signed("<=", build.load(length), I64(LONGEST))):
        begin = build.gep(signature, [build.load(length)])
        build.store(rank, begin)
        with Loop(build, I64(0), rank) as axis:
            size = _tf(build, "TF_Dim", I64, tensor, build.trunc(axis, I32))
            build.store(size, build.gep(begin, [build.add(axis, I64(1))]))
        build.store(build.add(build.load(length), build.add(rank, I64(1))), length)
        with build.if_then(by_value):
            size = _tf(build, "TF_TensorByteSize", I64, tensor)
            end = build.gep(signature, [build.load(length)])
            more = build.sdiv(build.add(size, I64(7)), I64(8))
            short = build.icmp_signed("<=", size, I64(BYTES))
            with build.if_then(build.and_(short, build.icmp_signed(">", size, I64(0)))):
                build.store(I64(0), build.gep(end, [build.sub(more, I64(1))]))
                outside(build, libc, "memcpy", ADDRESS, end, data, size)
            build.store(build.select(short, build.add(build.load(length), more), I64(LONGEST + 1)), length)


def _find(module: ir.Module) -> ir.Function:
    """The address of the program for a signature: the kernel's last one or another of its definition; 0 where there is none."""
    build, matches = entry(module, "matches", I1, I64, WORD, I64)
    address, signature, length = matches.args
    words = _words(build, address)
    with build.if_then(build.icmp_signed("!=", _word(build, words, programs.LENGTH), length)):
        build.ret(I1(0))
    shared = build.icmp_signed("!=", _word(build, words, programs.SHARED), I64(0))
    with build.if_then(build.and_(shared, build.icmp_signed("==", _held(build, workers.current), I64(0)))):
        build.ret(I1(0))  # Python starts the threads of a process that was forked
    own = _words(build, _word(build, words, programs.SIGNATURE))
    differ = outside(build, libc, "memcmp", I32, own, signature, build.mul(length, I64(8)))
    build.ret(build.icmp_signed("==", differ, I32(0)))

    build, find = entry(module, "find", I64, WORD, WORD, I64)
    kernel, signature, length = find.args
    last = build.gep(kernel, [I64(1)])
    known = build.load(last)
    some = build.icmp_signed("!=", known, I64(0))
    with build.if_then(some), build.if_then(build.call(matches, [known, signature, length])):
        build.ret(known)
    first = build.gep(_words(build, build.load(kernel)), [I64(FIRST)])
    before = build.block
    begin = build.load_atomic(first, "acquire", 8)
    again, look, right, wrong, none = (build.append_basic_block() for _ in range(5))
    build.branch(again)
    build.position_at_end(again)
    program = build.phi(I64)
    program.add_incoming(begin, before)
    build.cbranch(build.icmp_signed("==", program, I64(0)), none, look)
    build.position_at_end(look)
    build.cbranch(build.call(matches, [program, signature, length]), right, wrong)
    build.position_at_end(wrong)
    program.add_incoming(_word(build, _words(build, program), programs.NEXT), wrong)
    build.branch(again)
    build.position_at_end(right)
    build.store(program, last)
    build.ret(program)
    build.position_at_end(none)
    build.ret(I64(0))
    return find


def _allocated(
    build: ir.IRBuilder, program: ir.Value, context: ir.Value, number: ir.Value, begins: ir.Value, status: ir.Value
) -> ir.Value:
    """Makes room for results and between, and notes where it begins; false where TensorFlow has no memory, and says so."""
    ready = build.alloca(I1)
    build.store(I1(1), ready)
    count, results = _word(build, program, programs.OUTPUTS), _words(build, _word(build, program, programs.RESULTS))
    after = build.gep(begins, [number])
    with Loop(build, I64(0), count) as index:
        result = build.gep(results, [build.mul(index, I64(programs.RESULT))])
        kind, rank, shape, size = (_word(build, result, word) for word in range(programs.RESULT))
        given = build.trunc(index, I32), build.trunc(kind, I32), _words(build, shape), build.trunc(rank, I32), size
        tensor = _tf(build, "TF_AllocateOutput", ADDRESS, context, *given, status)
        with build.if_else(build.icmp_unsigned("==", tensor, ADDRESS(None))) as (failed, made):
            with failed:
                _tf(build, "TF_OpKernelContext_Failure", VOID, context, status)
                build.store(I1(0), ready)
            with made:
                data = build.ptrtoint(_tf(build, "TF_TensorData", ADDRESS, tensor), I64)
                build.store(data, build.gep(after, [index]))
                _tf(build, "TF_DeleteTensor", VOID, tensor)
    between, scratch = build.gep(after, [count]), _word(build, program, programs.SCRATCH)
    memory = outside(build, libc, "aligned_alloc", I64, I64(ALIGNMENT), scratch)
    build.store(memory, between)
    missing = build.and_(build.icmp_signed("==", memory, I64(0)), build.icmp_signed(">", scratch, I64(0)))
    with build.if_then(missing):
        text = build.inttoptr(I64(ctypes.addressof(_full)), ADDRESS)
        _tf(build, "TF_SetStatus", VOID, status, I32(EXHAUSTED), text)
        _tf(build, "TF_OpKernelContext_Failure", VOID, context, status)
        build.store(I1(0), ready)
    build.store(I64(0), build.gep(after, [build.add(count, I64(1))]))
    return build.load(ready)


def run(module: ir.Module) -> ir.Function:
    """Runs the calls of a program, with the addresses where all memory begins."""
    build, function = entry(module, "run", VOID, I64, WORD)
    program, begins = _words(build, function.args[0]), function.args[1]
    addresses = build.alloca(I64, programs.MOST)
    calls = _words(build, _word(build, program, programs.CALLS))
    given = build.bitcast(addresses, ADDRESS)
    with Loop(build, I64(0), _word(build, program, programs.COUNT)) as number:
        call = build.gep(calls, [build.mul(number, I64(programs.CALL))])
        kernel, units, shares, count, places = (_word(build, call, word) for word in range(programs.CALL))
        with Loop(build, I64(0), count) as index:
            place = build.gep(_words(build, places), [build.mul(index, I64(2))])
            begin = build.load(build.gep(begins, [_word(build, place, 0)]))
            build.store(build.add(begin, _word(build, place, 1)), build.gep(addresses, [index]))
        alone, shared, after = (build.append_basic_block() for _ in range(3))
        build.cbranch(build.icmp_signed(">", shares, I64(1)), shared, alone)
        build.position_at_end(shared)
        boxes = _words(build, _held(build, workers.current))
        asked = [build.inttoptr(kernel, ADDRESS), given, units, boxes, build.sub(shares, I64(1))]
        share = ir.FunctionType(I64, [each.type for each in asked]).as_pointer()
        done = build.call(build.inttoptr(I64(workers.share()), share), asked)
        build.cbranch(build.icmp_signed("==", done, I64(0)), alone, after)
        build.position_at_end(alone)
        kind = ir.FunctionType(VOID, [ADDRESS, I64, I64]).as_pointer()
        build.call(build.inttoptr(kernel, kind), [given, I64(0), units])
        build.branch(after)
        build.position_at_end(after)
    build.ret_void()
    return function
