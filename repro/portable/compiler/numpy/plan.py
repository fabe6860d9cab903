"""Plans: definitions compiled for arrays of some strides, and their execution."""

import logging
import math
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any

import numpy as np

from repro.portable import kernels
from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.nodes import Node, UnknownError, mapped
from repro.portable.compiler.numpy.copies import contiguous, reshaped
from repro.portable.compiler.numpy.tracer import Tracer
from repro.portable.compiler.tracer import Array as Traced

if kernels.available:
    from repro.portable.compiler.numpy.compiler import AxisKernel, Strides
    from repro.portable.compiler.numpy.nests import is_row
    from repro.portable.kernels.numpy.programs import Unheard, listening
    from repro.portable.kernels.numpy.threads import Code, compiling, empty

log = logging.getLogger(__name__)
Axes = tuple[int, ...]

_plans: dict[Hashable, "Plan | None"] = {}
"""Plans by strides; None after the first call."""
_known: dict[Hashable, tuple["Plan", list[tuple[int, ...]], int]] = {}
"""Sound plans by the exact layout of arrays that they take as they are, the shapes of results, and the outer size."""


def run(over: Axes, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """Runs function(Backend, *arguments, **options), by a kernel from the second call with arrays of some strides on.

    It reduces nothing but these axes, `over`, which stay with size 1. Arrays may be in tuples among the arguments.
    """
    if not kernels.available:
        return function(Backend, *arguments, **options)
    arrays: list[Array] = []
    skeleton = _flat(arguments, arrays)
    options_key = tuple(options.items())
    exactly = function, over, skeleton, tuple([(x.shape, x.strides, x.dtype.num) for x in arrays]), options_key
    known = _known.get(exactly)
    if known is not None:
        sound, shapes, outer = known
        return sound.execute(arrays, shapes, outer)
    whole = np.broadcast_shapes(*(each.shape for each in arrays))
    axes = tuple(sorted(axis % len(whole) for axis in over)) if whole else ()
    if not math.prod(whole) or (axes and axes != tuple(range(axes[0], axes[-1] + 1))):
        return function(Backend, *arguments, **options)
    sizes = _sizes(whole, axes)
    given = [_laid_out(each, whole, sizes) for each in arrays]
    strides, laid_out = tuple([each[1] for each in given]), [each[0] for each in given]
    rows = tuple([_is_one_along(each, axes, len(whole)) for each in arrays])
    key = function, axes, len(whole), skeleton, tuple([x.dtype for x in arrays]), strides, rows, sizes[1:], options_key
    if key not in _plans:
        _plans[key] = None
        return function(Backend, *arguments, **options)
    plan, right = _plans[key], None
    if plan is None:
        right = function(Backend, *arguments, **options)
        with compiling:
            plan = _plans[key]
            if plan is None:
                plan = _plans[key] = Plan(function, arguments, options, whole, axes, sizes, strides)
                plan.check(right, laid_out, whole, sizes[0])
    if not plan.sound:
        return function(Backend, *arguments, **options) if right is None else right
    shapes = plan.shapes(whole)
    if all(_address(x) == _address(y) for x, y in zip(arrays, laid_out, strict=True)):
        _known[exactly] = plan, shapes, sizes[0]
    return plan.execute(laid_out, shapes, sizes[0])


def _address(x: Array) -> int:
    return x.__array_interface__["data"][0]


def _is_one_along(x: Array, axes: Axes, rank: int) -> bool:
    """True if an array has one number for all elements along the axes of a shape of this rank."""
    return all(rank - x.ndim > axis or x.shape[axis - rank] == 1 for axis in axes)


def _flat(given: Any, arrays: list[Array]) -> Hashable:
    """Arguments with a mark for each array."""
    if isinstance(given, np.ndarray):
        arrays.append(given)
        return np.ndarray
    if isinstance(given, tuple | list):
        return tuple([_flat(each, arrays) for each in given])
    return given


def _numbered(given: Any, results: list[Node]) -> Any:
    """Replaces each result of a definition by what takes it from the results, and appends its node to `results`."""
    if isinstance(given, Traced):
        results.append(given.node)
        return itemgetter(len(results) - 1)
    return tuple(_numbered(each, results) for each in given) if isinstance(given, tuple | list) else given


def _sizes(whole: tuple[int, ...], axes: Axes) -> tuple[int, int, int]:
    if not axes:
        return math.prod(whole), 1, 1
    return math.prod(whole[: axes[0]]), math.prod(whole[axes[0] : axes[-1] + 1]), math.prod(whole[axes[-1] + 1 :])


def _laid_out(x: Array, whole: tuple[int, ...], sizes: tuple[int, int, int]) -> tuple[Array, "Strides"]:
    """An array as [outer, along, inner], and its strides in elements: 0 where it has one number for all."""
    if x.size == 1:
        return x, (0, 0, 0)
    array = x if x.shape == whole else np.broadcast_to(x, whole)
    array = reshaped(array, sizes)
    steps = [step // x.itemsize if size > 1 else 0 for step, size in zip(array.strides, sizes, strict=True)]
    if any(step < 0 for step in steps):
        array = contiguous(array)
        return _laid_out(array, sizes, sizes)
    return array, (steps[0], steps[1], steps[2])


class Plan:
    """A kernel for arrays of some strides."""

    sound = False
    """True if there is a plan, and it gave the same bits as its definition."""

    def __init__(
        self, function: Any, arguments: Any, options: Any, whole: Any, axes: Axes, sizes: Any, strides: Any
    ) -> None:
        self.name, self.axes = getattr(function, "__qualname__", function), axes
        tracer = Tracer(axes)
        leaves: list[Node] = []
        results: list[Node] = []

        def leaf(x: Array) -> Traced:
            given = tracer.given(x.reshape((1,) * (len(whole) - x.ndim) + x.shape))
            leaves.append(given.node)
            return given

        try:
            value = function(tracer, *mapped(arguments, np.ndarray, leaf), **options)
            self.result = _numbered(value, results)
            if any(result.operation == "input" for result in results):
                raise UnknownError("a result that is given")
            self.rows = [is_row(result, axes) and bool(axes) for result in results]
            self.types = [result.dtype for result in results]
            _, along, inner = sizes
            flat = [_sized((inner, 0, 1) if row else (along * inner, inner, 1), sizes) for row in self.rows]
            kernel = AxisKernel(leaves, results, [*strides, *flat], axes, along, inner)
            self.tables: list[Array] = [node.value for node in kernel.tables]
            self.blocks, self.work = kernel.blocks, along * inner * max(1, len(kernel.order) // 8)
            self.code = Code(kernel.module)
            self.sound = True
        except (UnknownError, TypeError, ValueError, AttributeError) as error:
            log.debug("portable: %s is not compiled: %s", self.name, error)

    def check(self, right: Any, arrays: list[Array], whole: tuple[int, ...], outer: int) -> None:
        """Compares its results with those of the definition."""
        if self.sound:
            with Unheard():
                made = self.execute(arrays, self.shapes(whole), outer)
            self.sound = same(right, made)
            if not self.sound:
                log.warning("portable: %s gives different bits in kernels; it runs without", self.name)

    def shapes(self, whole: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of the results, for arrays that together have this one."""
        reduced = tuple(1 if axis in self.axes else size for axis, size in enumerate(whole))
        return [reduced if row else whole for row in self.rows]

    def execute(self, arrays: list[Array], shapes: list[tuple[int, ...]], outer: int) -> Any:
        results = [empty(shape, dtype) for shape, dtype in zip(shapes, self.types, strict=True)]
        if listening.recorder is not None:
            listening.recorder.constants += self.tables
        self.code([*arrays, *self.tables, *results], outer * self.blocks, outer * self.work)
        return _placed(self.result, results)


def _sized(strides: "Strides", sizes: tuple[int, int, int]) -> "Strides":
    """Strides without those along axes of size 1."""
    outer, along, inner = strides
    return outer, along if sizes[1] > 1 else 0, inner if sizes[2] > 1 else 0


def _placed(given: Any, results: list[Array]) -> Any:
    if isinstance(given, itemgetter):
        return given(results)
    return tuple([_placed(each, results) for each in given]) if isinstance(given, tuple) else given


def same(a: Any, b: Any) -> bool:
    """True if arrays have the same bits; all NaN count as one."""
    if isinstance(a, tuple | list):
        return all(map(same, a, b))
    if not isinstance(a, np.ndarray | np.generic):
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    bits = {4: np.int32, 8: np.int64}.get(a.itemsize, a.dtype)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    different = (a.view(bits) != b.view(bits)) & ((a == a) | (b == b))
    return not different.any()
