"""Copies of arrays whose numbers do not lie in a row."""

from functools import cache

import numpy as np
from llvmlite import ir

from repro.portable.kernels.machine import ADDRESS, I64, VOID, Loop, entry
from repro.portable.kernels.numpy.programs import listening
from repro.portable.kernels.numpy.threads import Code, compiling


def copy(x: np.ndarray, result: np.ndarray) -> None:
    """Copies an array that is not empty into one whose numbers lie in a row."""
    outer, (inner, step) = _axes(x)
    layout = np.array([len(outer), inner, step, *(word for axis in reversed(outer) for word in axis)], np.int64)
    if listening.recorder is not None:
        listening.recorder.constants.append(layout)
    with compiling:
        code = _code(x.itemsize)
    code([x, result, layout], x.size // inner, x.size)


def _axes(x: np.ndarray) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Sizes and steps, in numbers, of as few axes as possible: the outer ones, and the last one."""
    axes = [(1, 0)]
    for size, stride in zip(x.shape, x.strides, strict=True):
        step = stride // x.itemsize
        before, apart = axes[-1]
        if size == 1:
            continue
        if before == 1 or apart == step * size:
            axes[-1] = before * size, step
        else:
            axes.append((size, step))
    return axes[:-1], axes[-1]


@cache
def _code(itemsize: int) -> Code:
    """A kernel over an array, its copy, and the layout: a number of outer axes; size and step of each, the last one first."""
    module, number = ir.Module(), ir.IntType(8 * itemsize)
    build, call = entry(module, "call", VOID, ADDRESS.as_pointer(), I64, I64)
    addresses, begin, end = call.args
    rest, place = build.alloca(I64), build.alloca(I64)
    given = [build.load(build.gep(addresses, [I64(index)])) for index in range(3)]
    x, result, layout = (
        build.bitcast(each, (number, number, I64)[index].as_pointer()) for index, each in enumerate(given)
    )
    outer, inner, step = (build.load(build.gep(layout, [I64(index)])) for index in range(3))
    with Loop(build, begin, end) as unit:
        build.store(unit, rest)
        build.store(I64(0), place)
        with Loop(build, I64(0), outer) as axis:
            words = build.gep(layout, [build.add(build.mul(axis, I64(2)), I64(3))])
            size, apart = build.load(words), build.load(build.gep(words, [I64(1)]))
            index = build.urem(build.load(rest), size)
            build.store(build.add(build.load(place), build.mul(index, apart)), place)
            build.store(build.udiv(build.load(rest), size), rest)
        source = build.gep(x, [build.load(place)])
        target = build.gep(result, [build.mul(unit, inner)])
        with build.if_else(build.icmp_signed("==", step, I64(1))) as (row, apart):
            with row, Loop(build, I64(0), inner) as at:
                build.store(build.load(build.gep(source, [at])), build.gep(target, [at]))
            with apart, Loop(build, I64(0), inner) as at:
                build.store(build.load(build.gep(source, [build.mul(at, step)])), build.gep(target, [at]))
    build.ret_void()
    return Code(module)
