"""Threefry-2x32 with 20 rounds, the random numbers of JAX.

J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011.
"""

from functools import cache

from llvmlite import ir

from repro.portable.kernels.machine import I32, I64, Kernel, Loop, started

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA
"""What the third word of a key is made with, of the two others."""


@cache
def threefry(count: int, of_one_key: bool) -> Kernel:
    """Kernel over both words of keys and of counters, and those of the results: uint32 [count]; a single key has [1]."""
    build, function = started([I32] * 6)
    *given, first, second, begin, end = function.args
    with Loop(build, begin, end) as at:
        places = [I64(0) if of_one_key else at] * 2 + [at] * 2
        *key, x, y = (build.load(build.gep(each, [place])) for each, place in zip(given, places, strict=True))
        key.append(build.xor(build.xor(*key), I32(PARITY)))
        x, y = build.add(x, key[0]), build.add(y, key[1])
        for turn in range(5):
            for rotation in ROTATIONS[turn % 2]:
                x = build.add(x, y)
                y = build.xor(x, _rotated(build, y, rotation))
            x = build.add(x, key[(turn + 1) % 3])
            y = build.add(build.add(y, key[(turn + 2) % 3]), I32(turn + 1))
        build.store(x, build.gep(first, [at]))
        build.store(y, build.gep(second, [at]))
    build.ret_void()
    return Kernel(function, count, 8 * count, results=2)


def _rotated(build: ir.IRBuilder, x: ir.Value, bits: int) -> ir.Value:
    return build.or_(build.shl(x, I32(bits)), build.lshr(x, I32(32 - bits)))
