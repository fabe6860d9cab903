"""Parts of kernels that put numbers on grids."""

from llvmlite import ir

from repro.portable.kernels.machine import F32, I16, I32, I64, Loop
from repro.portable.numbers.constants import BELOW_TINY, SMALLEST

MAGNITUDE = 0x7FFFFFFF
LANES = 16
"""Columns, or numbers of a row, that are taken together."""
VECTOR, NUMBERS = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)
NAN = I32(0x7FC00000)


class Lanes:
    """Numbers that a function has for each lane, on its stack."""

    def __init__(self, build: ir.IRBuilder, function: ir.Function, vectors: int) -> None:
        self.build, self.entry, self.count = build, function.entry_basic_block, vectors * LANES
        self.most = self.array(I32)

    def array(self, type_: ir.Type) -> ir.Value:
        return self.build.alloca(type_, self.count)

    def fill(self, array: ir.Value, value: ir.Value) -> None:
        with Loop(self.build, I64(0), I64(self.count)) as lane:
            self.build.store(value, self.build.gep(array, [lane]))

    def store(self, vector: ir.Value, number: int = 0) -> None:
        """The largest magnitudes of a vector's lanes."""
        where = self.build.gep(self.most, [I64(number * LANES)])
        self.build.store(vector, self.build.bitcast(where, VECTOR.as_pointer()), align=4)

    def zero(self, array: ir.Value) -> None:
        self.fill(array, ir.Constant(array.type.pointee, 0))

    def raise_most(self, lane: ir.Value, address: ir.Value) -> None:
        """Raises the largest magnitude of a lane to that of a number; magnitudes are in order as integers."""
        build = self.build
        bits = build.and_(build.bitcast(build.load(address), I32), I32(MAGNITUDE))
        here = build.gep(self.most, [lane])
        most = build.load(here)
        build.store(build.select(build.icmp_signed(">", bits, most), bits, most), here)

    def largest(self) -> ir.Value:
        """The largest number of all lanes."""
        build = self.build
        result = build.load(self.most)
        for lane in range(1, self.count):
            each = build.load(build.gep(self.most, [I64(lane)]))
            result = build.select(build.icmp_signed(">", each, result), each, result)
        return result


class steps:  # noqa: N801
    """A loop to before `end`, in steps, as a context."""

    def __init__(self, build: ir.IRBuilder, end: int, step: int) -> None:
        self.build, self.step = build, step
        self.loop = Loop(build, I64(0), I64(end // step))

    def __enter__(self) -> ir.Value:
        return self.build.mul(self.loop.__enter__(), I64(self.step))

    def __exit__(self, *given: object) -> None:
        self.loop.__exit__(*given)


def grid(build: ir.IRBuilder, most: ir.Value, bits: int) -> tuple[ir.Value, ir.Value]:
    """Computes 2^(bits - e) and p for the largest magnitude of a group, given as bits of float32."""
    e = build.sub(build.ashr(most, I32(23)), I32(126))
    e = build.select(build.icmp_signed("<", e, I32(SMALLEST)), I32(SMALLEST), e)
    e = build.select(build.icmp_signed(">", e, I32(128)), I32(128), e)
    beyond = build.icmp_signed(">", e, I32(127))
    up = build.bitcast(build.shl(build.sub(I32(bits + 127), e), I32(23)), F32)
    up = build.select(beyond, F32(0.0), up)
    scale = build.select(beyond, NAN, build.shl(build.add(e, I32(127)), I32(23)))
    return up, build.bitcast(scale, F32)


def vector_at(build: ir.IRBuilder, x: ir.Value, at: ir.Value) -> ir.Value:
    return build.load(build.bitcast(build.gep(x, [at]), NUMBERS.as_pointer()), align=4)


def raise_most(build: ir.IRBuilder, most: ir.Value, numbers: ir.Value) -> None:
    """Raise the largest numbers so far, as Lanes.raise_most does, for a vector."""
    bits = build.and_(build.bitcast(numbers, VECTOR), VECTOR([MAGNITUDE] * LANES))
    old = build.load(most)
    build.store(build.select(build.icmp_signed(">", bits, old), bits, old), most)


def integers(build: ir.IRBuilder, numbers: ir.Value, ups: ir.Value) -> ir.Value:
    """Quantize a vector to int32, as quantized does for one number."""
    name = f"llvm.rint.v{LANES}f32"
    rint = build.module.globals.get(name) or ir.Function(build.module, ir.FunctionType(NUMBERS, [NUMBERS]), name)
    return build.fptosi(build.call(rint, [build.fmul(numbers, ups)]), VECTOR)


def rint(build: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return build.call(build.module.declare_intrinsic("llvm.rint", [x.type]), [x])


def quantized(build: ir.IRBuilder, x: ir.Value, up: ir.Value) -> ir.Value:
    """Quantizes to int16: below 2^13 but for infinities and NaN, whose products are NaN as p is."""
    result = build.fptosi(rint(build, build.fmul(x, up)), I32)
    return build.trunc(result, I16)


def rounded(build: ir.IRBuilder, total: ir.Value) -> ir.Value:
    """Round a float64 total to float32, as r32 does."""
    result = build.fptrunc(total, F32)
    above, below = F32(-BELOW_TINY), F32(BELOW_TINY)
    small = build.and_(build.fcmp_ordered(">=", result, above), build.fcmp_ordered("<=", result, below))
    return build.select(small, F32(0.0), result)
