"""Plans: definitions compiled for arrays of some strides, and their execution."""

import logging
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from repro.portable import kernels
from repro.portable.tensorflow.mode.backend import Array, Backend
from repro.portable.tensorflow.mode.tracer import Node, Tracer, UnknownError

if kernels.available:
    from repro.portable.tensorflow.mode.compiler import Kernel, Strides, is_row
    from repro.portable.tensorflow.mode.threads import Code, compiling

log = logging.getLogger(__name__)
Axes = tuple[int, ...]

_plans: dict[Hashable, "Plan | None"] = {}


def run(over: Axes, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """function(Backend, *arguments, **options), by a kernel from the second call with arrays of some strides on.

    It reduces nothing but these axes, `over`, which stay with size 1. Arrays may be in tuples among the arguments.
    """
    if not kernels.available:
        return function(Backend, *arguments, **options)
    arrays: list[Array] = []
    skeleton = _flat(arguments, arrays)
    whole = np.broadcast_shapes(*(each.shape for each in arrays))
    axes = tuple(sorted(axis % len(whole) for axis in over)) if whole else ()
    if not math.prod(whole) or (axes and axes != tuple(range(axes[0], axes[-1] + 1))):
        return function(Backend, *arguments, **options)
    sizes = _sizes(whole, axes)
    given = [_laid_out(each, whole, sizes) for each in arrays]
    strides = tuple(each[1] for each in given)
    rows = tuple(
        all(len(whole) - each.ndim > axis or each.shape[axis - len(whole)] == 1 for axis in axes) for each in arrays
    )
    key = (
        function,
        axes,
        len(whole),
        skeleton,
        tuple(each.dtype for each in arrays),
        strides,
        rows,
        sizes[1:],
        tuple(options.items()),
    )
    plan = _plans.get(key)
    if plan is not None:
        if plan.sound:
            return plan.execute([each[0] for each in given], whole, axes, sizes)
    elif key in _plans:
        right = function(Backend, *arguments, **options)
        with compiling:
            if _plans[key] is None:
                plan = Plan()
                plan.trace(function, arguments, options, whole, axes, sizes, strides)
                if plan.sound:
                    plan.sound = _same(right, plan.execute([each[0] for each in given], whole, axes, sizes))
                    if not plan.sound:
                        log.warning(
                            "portable: %s has other bits in kernels compiled here; it runs without",
                            function.__qualname__,
                        )
                _plans[key] = plan
        return right
    else:
        _plans[key] = None
    return function(Backend, *arguments, **options)


def _flat(given: Any, arrays: list[Array]) -> Hashable:
    """Arguments with a mark for each array."""
    if isinstance(given, np.ndarray):
        arrays.append(given)
        return np.ndarray
    if isinstance(given, tuple | list):
        return tuple([_flat(each, arrays) for each in given])
    return given


def _mapped(given: Any, change: Callable[[Any], Any], kind: type) -> Any:
    if isinstance(given, kind):
        return change(given)
    if isinstance(given, tuple | list):
        return tuple([_mapped(each, change, kind) for each in given])
    return given


def _numbered(given: Any, results: list[Node]) -> Any:
    """What a definition gives, with the number of each result."""
    if isinstance(given, Node):
        results.append(given)
        return len(results) - 1
    return tuple(_numbered(each, results) for each in given) if isinstance(given, tuple | list) else given


def _sizes(whole: tuple[int, ...], axes: Axes) -> tuple[int, int, int]:
    if not axes:
        return math.prod(whole), 1, 1
    return math.prod(whole[: axes[0]]), math.prod(whole[axes[0] : axes[-1] + 1]), math.prod(whole[axes[-1] + 1 :])


def _laid_out(x: Array, whole: tuple[int, ...], sizes: tuple[int, int, int]) -> tuple[Array, "Strides"]:
    """An array as [outer, along, inner], and its strides in elements: 0 where it has one number for all."""
    if x.size == 1:
        return x, (0, 0, 0)
    found = x if x.shape == whole else np.broadcast_to(x, whole)
    found = found.reshape(sizes)
    steps = [step // x.itemsize if size > 1 else 0 for step, size in zip(found.strides, sizes, strict=True)]
    if any(step < 0 for step in steps):
        found = np.ascontiguousarray(found)
        return _laid_out(found, sizes, sizes)
    return found, (steps[0], steps[1], steps[2])


class Plan:
    """A kernel for arrays of some strides."""

    sound = False
    """Whether there is one, and it gave the same bits as its definition."""

    def trace(
        self, function: Any, arguments: Any, options: Any, whole: Any, axes: Any, sizes: Any, strides: Any
    ) -> None:
        leaves: list[Node] = []

        def leaf(x: Array) -> Node:
            shape = (1,) * (len(whole) - x.ndim) + x.shape
            leaves.append(Node("input", (), x.dtype, shape))
            return leaves[-1]

        try:
            found = function(Tracer(axes), *_mapped(arguments, leaf, np.ndarray), **options)
            results: list[Node] = []
            self.shape = _numbered(found, results)
            if any(result.operation == "input" for result in results):
                raise UnknownError("a result that is given")
            self.rows = [is_row(result, axes) and bool(axes) for result in results]
            self.types = [result.dtype for result in results]
            _, along, inner = sizes
            flat = [(inner if inner > 1 else 1, 0, 1) if row else (along * inner, inner, 1) for row in self.rows]
            flat = [_sized(each, sizes) for each in flat]
            kernel = Kernel(leaves, results, [*strides, *flat], axes, along, inner)
            self.tables = [node.array for node in kernel.tables]
            self.blocks, self.work = kernel.blocks, along * inner * max(1, len(kernel.order) // 8)
            self.code = Code(kernel.module)
            self.sound = True
        except (UnknownError, TypeError, ValueError, AttributeError) as error:
            log.debug("portable: %s is not compiled: %s", getattr(function, "__qualname__", function), error)

    def execute(self, arrays: list[Array], whole: tuple[int, ...], axes: Axes, sizes: tuple[int, int, int]) -> Any:
        reduced = tuple(1 if axis in axes else size for axis, size in enumerate(whole))
        results = [np.empty(reduced if row else whole, dtype) for row, dtype in zip(self.rows, self.types, strict=True)]
        self.code([*arrays, *self.tables, *results], sizes[0] * self.blocks, sizes[0] * self.work)
        return _mapped_places(self.shape, results)


def _sized(strides: "Strides", sizes: tuple[int, int, int]) -> "Strides":
    """Without a stride along an axis of size 1."""
    outer, along, inner = strides
    return outer, along if sizes[1] > 1 else 0, inner if sizes[2] > 1 else 0


def _mapped_places(shape: Any, results: list[Array]) -> Any:
    if isinstance(shape, int):
        return results[shape]
    if isinstance(shape, tuple):
        return tuple(_mapped_places(each, results) for each in shape)
    return shape


def _same(a: Any, b: Any) -> bool:
    """Whether arrays have the same bits; NaN has many, which count as one."""
    if isinstance(a, tuple | list):
        return all(map(_same, a, b))
    if not isinstance(a, np.ndarray | np.generic):
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    bits = {4: np.int32, 8: np.int64}.get(a.itemsize, a.dtype)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    different = (a.view(bits) != b.view(bits)) & ((a == a) | (b == b))
    return not different.any()
