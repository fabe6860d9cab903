"""Products of matrices, and sums of products by Einstein's notation."""

import math
from functools import partial
from typing import Any

import numpy as np

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import integers, matrices
from repro.portable.compiler.numpy.copies import contiguous, reshaped
from repro.portable.compiler.numpy.plan import run
from repro.portable.definitions import products
from repro.portable.definitions.grids import product_of_slices, scaled
from repro.portable.kernels.numpy.programs import Unheard
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, Function, define
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back
from repro.portable.modes.tensorflow.operations.sums import total
from repro.portable.numbers.constants import BITS


def product(a: Array, b: Array, slices: int) -> Array:
    """[..., M, K] and [..., K, N] -> [..., M, N], of float32 or float64."""
    if not a.size or not b.size:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros((*outer, a.shape[-2], b.shape[-1]), a.dtype)
    if integers.fits(a, a.shape[-1]):
        return _by_kernels(a, b, slices)
    multiply = products.matmul if a.ndim == b.ndim == 2 else products.batched
    return multiply(Backend, a, b, slices=slices)


def of_any_form(a: Array, b: Array, slices: int) -> Array:
    """product(), where the first factor may be weights: see repro.portable.definitions.products."""
    found = products.are_weights(Backend, a) if a.size and b.size else np.zeros(1, bool)
    with Unheard():  # other numbers have other kernels
        if found.all():
            return _weighted(a, b, slices)
        y = product(a, b, slices)
        return np.where(found, _weighted(a, b, slices), y) if found.any() else y


def _weighted(a: Array, b: Array, slices: int) -> Array:
    if not integers.fits(a, a.shape[-1]):
        return products.weighted(Backend, a, b, slices)
    outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (reshaped(np.broadcast_to(x, (*outer, *x.shape[-2:])), (-1, *x.shape[-2:])) for x in (a, b))
    second, s = integers.quantized(b, (-1,), slices)
    first, p = integers.quantized(a * s.swapaxes(-1, -2), (-1,), slices)
    total = product_of_slices(integers.multiply, first, second)
    return run((-2,), _rounded, total, p).reshape(*outer, a.shape[-2], b.shape[-1])


def _rounded(xp: Any, total: Any, p: Any) -> Any:
    return xp.r32(scaled(xp, total, 2 * BITS, p))


def as_stored(a: Array, b: Array, last: tuple[bool, bool], slices: int) -> Array:
    """The product. `last`: for each factor, if the axis that is summed over is the last one, as the program has it.

    Dense layers, whose weight has no batch, pay nothing.
    """
    if min(a.ndim, b.ndim) == 2:
        return product(a, b, slices)
    if last == (True, False):
        return of_any_form(a, b, slices)
    if last == (False, True):
        return of_any_form(b.swapaxes(-1, -2), a.swapaxes(-1, -2), slices).swapaxes(-1, -2)
    return product(a, b, slices)


def _by_kernels(a: Array, b: Array, slices: int) -> Array:
    """A product by kernels of int16. Each operand is stored by rows or by columns."""
    rows, columns = a.shape[-2], b.shape[-1]
    if b.ndim == 2:
        outer = a.shape[:-2]
        a, b = a[None] if a.ndim == 2 else reshaped(a, (1, -1, a.shape[-1])), b[None]
    else:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (reshaped(np.broadcast_to(x, (*outer, *x.shape[-2:])), (-1, *x.shape[-2:])) for x in (a, b))
    if slices == 1:
        return matrices.product(a, b).reshape(*outer, rows, columns)
    (first, p, a_turned), (second, s, b_turned) = _operand(a, -1, slices), _operand(b, -2, slices)
    total = product_of_slices(lambda x, y: integers.multiply(x, y, a_turned, b_turned), first, second)
    return run((-2,), _finished, total, p, s).reshape(*outer, rows, columns)


def _operand(x: Array, axis: int, slices: int) -> tuple[list[Array], Array, bool]:
    """Slices of matrices on a grid for each row or column, their scales, and whether they lie the other way."""
    turned = x.strides[-1] > x.strides[-2]
    if not turned:
        return *integers.quantized(x, (axis,), slices), False
    q, p = integers.quantized(x.swapaxes(-1, -2), (-3 - axis,), slices)
    return q, p.swapaxes(-1, -2), True


def _finished(xp: Any, total: Any, p: Any, s: Any) -> Any:
    return xp.r32(scaled(xp, total, 2 * BITS, p, s))


def checked(a: Array, b: Array) -> None:
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matrices {list(a.shape)} and {list(b.shape)} have no product")


@define("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", reads=())
def matmul(given: Attributes, a: Array, b: Array, slices: int) -> Array:
    dtype = a.dtype
    a, b = as_float32(a), as_float32(b)
    a = a.swapaxes(-1, -2) if given.get("transpose_a") or given.get("adj_x") else a
    b = b.swapaxes(-1, -2) if given.get("transpose_b") or given.get("adj_y") else b
    checked(a, b)
    last = (
        not given.get("transpose_a") and not given.get("adj_x"),
        bool(given.get("transpose_b") or given.get("adj_y")),
    )
    return cast_back(as_stored(a, b, last, slices), dtype)


@define("Einsum", reads=())
def einsum(given: Attributes, *operands: Array, slices: int) -> Array:
    arrays = [as_float32(each) for each in operands]
    return cast_back(einsum_by(given, arrays, total, partial(as_stored, slices=slices)), operands[0].dtype)


def einsum_by(given: Attributes, arrays: list[Array], add: Function, multiply: Function) -> Array:
    """An einsum of one or two operands, by functions that add along axes, which stay with size 1, and that multiply matrices.
    The latter is as_stored, or one like it. Axes that both have are batch axes, or are summed over.
    """
    inputs, output = given["equation"].replace(" ", "").split("->")
    terms = inputs.split(",")
    if "..." in given["equation"]:
        terms, output = _without_ellipsis(terms, output, arrays)
    for place, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        terms[place], arrays[place] = _diagonal(term, array)
    # What one operand alone has, and the result has not, is summed over first.
    for place, (term, array) in enumerate(zip(terms, arrays, strict=True)):
        others = output + "".join(other for each, other in enumerate(terms) if each != place)
        gone = tuple(axis for axis, name in enumerate(term) if name not in others)
        if gone:
            arrays[place] = add(array, gone).reshape([n for axis, n in enumerate(array.shape) if axis not in gone])
            terms[place] = "".join(name for name in term if name in others)
    if len(arrays) == 1:
        return _expanded(arrays[0], terms[0], output)
    (first, second), (a, b) = terms, arrays
    batch = [name for name in output if name in first and name in second]
    summed = [name for name in first if name in second and name not in output]
    rows, columns = ([name for name in term if name not in other] for term, other in ((first, second), (second, first)))
    sizes = dict(zip(first + second, a.shape + b.shape, strict=True))
    shape = [[sizes[name] for name in names] for names in (batch, rows, summed, columns)]
    flat = [math.prod(each) for each in shape[1:]]
    last = first[-1:] in summed, second[-1:] in summed
    a = reshaped(a.transpose([first.index(name) for name in (*batch, *rows, *summed)]), (*shape[0], *flat[:2]))
    b = reshaped(b.transpose([second.index(name) for name in (*batch, *summed, *columns)]), (*shape[0], *flat[1:]))
    result = multiply(a, b, last).reshape(*shape[0], *shape[1], *shape[3])
    return _expanded(result, "".join((*batch, *rows, *columns)), output)


def _expanded(x: Array, names: str, output: str) -> Array:
    """Axes in the order of the output, where an axis may be missing: it then is repeated on a diagonal."""
    if sorted(names) != sorted(output):
        raise ValueError(f"einsum: axes {names} cannot become {output}")
    return contiguous(x.transpose([names.index(name) for name in output]))


def _diagonal(term: str, x: Array) -> tuple[str, Array]:
    """Without axes that a term names twice."""
    for name in sorted({name for name in term if term.count(name) > 1}):
        while term.count(name) > 1:
            first, second = (axis for axis, each in enumerate(term) if each == name)
            x = np.diagonal(x, axis1=first, axis2=second)
            term = "".join(each for axis, each in enumerate(term) if axis not in (first, second)) + name
    return term, x


def _without_ellipsis(terms: list[str], output: str, arrays: list[Array]) -> tuple[list[str], str]:
    """Names for the axes that an ellipsis stands for; those of size 1 are repeated, as NumPy has it."""
    free = [chr(code) for code in range(0x100, 0x100 + 32)]
    ranks = [x.ndim - len(term) + 3 if "..." in term else 0 for term, x in zip(terms, arrays, strict=True)]
    most = max(ranks)
    names = free[:most]
    shapes = [
        x.shape[term.index("...") : term.index("...") + rank] if rank else ()
        for term, x, rank in zip(terms, arrays, ranks, strict=True)
    ]
    whole = np.broadcast_shapes(*shapes)
    for place, (term, x, rank) in enumerate(zip(terms, arrays, ranks, strict=True)):
        if "..." in term:
            at = term.index("...")
            shape = (*x.shape[:at], *whole[most - rank :], *x.shape[at + rank :])
            arrays[place] = np.broadcast_to(x, shape)
    result = [
        term.replace("...", "".join(names[most - rank :]) if rank else "")
        for term, rank in zip(terms, ranks, strict=True)
    ]
    return result, output.replace("...", "".join(names))
