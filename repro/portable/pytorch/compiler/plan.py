"""Plans: operations traced once, then executed as kernels.

What belongs together becomes one compiled kernel; the rest are calls of PyTorch's functions.
"""

import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repro.portable.pytorch import compiler
from repro.portable.pytorch.backend import Backend
from repro.portable.pytorch.compiler import memory
from repro.portable.pytorch.compiler.nodes import COMPILED, ELEMENTWISE, Node, mapped, nodes_in
from repro.portable.pytorch.compiler.tracer import Array, Tracer

if compiler.available:
    from repro.portable.pytorch.compiler.openmp import chain

log = logging.getLogger(__name__)

COMBINE = {"sum": torch.sum, "most": torch.amax, "maximum_of": torch.amax}
"""What several threads found of a reduction."""

Step = Callable[[list], None]
"""Takes tensors from their places in a list, and puts others to theirs."""

_plans: dict[Hashable, "Plan | None"] = {}


def run(function: Callable, *arguments: Any, **options: Any) -> Any:
    """function(Backend, *arguments, **options), by kernels from the second call with tensors of some shapes on.

    Tensors may be in tuples and lists among the arguments. They are made plain memory first, or refused.
    """
    if torch.compiler.is_compiling():
        return function(Backend, *arguments, **options)
    watched, arguments = memory.watched(), memory.plain(arguments)
    if watched or not compiler.available:
        return function(Backend, *arguments, **options)
    tensors: list[Tensor] = []
    ranks = Backend.ranks
    key = (function, Backend.engine, ranks.size, _key(arguments, tensors), tuple(options.items()))
    if not all(tensor.is_cpu for tensor in tensors):
        return function(Backend, *arguments, **options)
    plan = _plans.get(key)
    if plan is not None and plan.sound:
        return plan.execute(tensors)
    if plan is None and key in _plans:
        plan = _plans[key] = Plan()
        return plan.trace(function, arguments, options, tensors)
    _plans.setdefault(key, None)
    return function(Backend, *arguments, **options)


def _key(given: Any, tensors: list[Tensor]) -> Hashable:
    if isinstance(given, Tensor):
        tensors.append(given)
        return given.shape, given.stride(), given.dtype
    if isinstance(given, (tuple, list)):
        return tuple([_key(each, tensors) for each in given])
    return given


@dataclass(frozen=True)
class Group:
    """A kernel over the elements of a space, at some time: what it reads was there before."""

    time: int
    space: tuple[int, ...]


class Plan:
    """What to do with tensors of some shapes."""

    sound = False
    """Whether it gave the same bits as its definition."""

    def trace(self, function: Callable, arguments: Any, options: dict[str, Any], tensors: list[Tensor]) -> Any:
        """The result of a definition, from which the plan is made and tried."""
        tracer = Tracer()
        found = function(tracer, *_wrapped(tracer, arguments), **options)
        right = mapped(found, Array, lambda array: array.value)
        self._schedule(tracer.nodes, mapped(found, Array, lambda array: array.node))
        self.sound = _same(right, self.execute(tensors))
        if not self.sound:
            log.warning("portable: %s has other bits in kernels compiled here; it runs without", function.__qualname__)
        return right

    def execute(self, tensors: list[Tensor]) -> Any:
        """What the definition gives for other tensors of the same shapes."""
        places = self.start.copy()
        for place, tensor in zip(self.inputs, tensors, strict=True):
            places[place] = tensor
        for step in self.steps:
            step(places)
        if isinstance(self.result, int):
            return places[self.result]
        return mapped(self.result, int, places.__getitem__)

    def _schedule(self, nodes: list[Node], result: Any) -> None:
        needed = _needed(nodes, result)
        nodes = [node for node in nodes if node in needed or node.operation == "input"]
        stored = _stored(nodes, result)
        there: dict[Node, int] = {}
        """The time from which on a kernel may read it."""
        groups: dict[Group, list[Node]] = {}
        home: dict[Node, Group] = {}
        calls: dict[int, list[Node]] = {}
        for node in nodes:
            if node in stored:
                space, time = node.space, 0
                for leaf in leaves(node, stored):
                    # What the same kernel stores it may use at once, element by element.
                    beside = leaf in home and home[leaf].space == space == leaf.shape and leaf.operation in ELEMENTWISE
                    time = max(time, home[leaf].time if beside else there[leaf])
                home[node], there[node] = Group(time, space), time + 1
                groups.setdefault(home[node], []).append(node)
            elif node.operation not in ELEMENTWISE:
                there[node] = max((there[each] for each in nodes_in(node.inputs)), default=0)
                if node.inputs:
                    calls.setdefault(there[node], []).append(node)
        place = {node: index for index, node in enumerate(there)}
        self.start = [node.tensor for node in there]
        self.inputs = [place[node] for node in nodes if node.operation == "input"]
        self.result = mapped(result, Node, place.__getitem__)
        steps: list[Step | PlacedKernel] = []
        for time in range(max([*(group.time for group in groups), *calls], default=-1) + 1):
            steps += [_call(node, place) for node in calls.get(time, ())]
            steps += [
                PlacedKernel(group.space, targets, stored, place)
                for group, targets in groups.items()
                if group.time == time
            ]
        self.steps = _joined(steps, _read_outside(nodes, result, place))


def _call(node: Node, place: dict[Node, int]) -> Step:
    """A function of PyTorch."""
    function, result = node.function, place[node]
    assert function is not None
    if isinstance(node.inputs[0], Node) and len(node.inputs) == 1:
        only = place[node.inputs[0]]

        def call(places: list) -> None:
            places[result] = function(places[only])

        return call
    arguments = [_argument(each, place) for each in node.inputs]

    def call_with(places: list) -> None:
        places[result] = function(*[argument(places) for argument in arguments])

    return call_with


def _argument(given: Any, place: dict[Node, int]) -> Callable[[list], Any]:
    if isinstance(given, Node):
        index = place[given]
        return lambda places: places[index]
    if nodes_in(given):
        parts = [_argument(each, place) for each in given]
        return lambda places: tuple([part(places) for part in parts])
    return lambda _: given


class PlacedKernel:
    """A compiled kernel, and where its arrays are in a list of tensors."""

    def __init__(self, space: tuple[int, ...], targets: list[Node], stored: set[Node], place: dict[Node, int]) -> None:
        from repro.portable.pytorch.compiler.kernels import NEUTRAL, Kernel  # needs llvmlite

        given = dict.fromkeys(leaf for target in targets for leaf in leaves(target, stored) if leaf not in targets)
        kernel = Kernel(space, targets, list(given))
        self.addressed = [place[node] for node in (*given, *targets)]
        self.made = [(place[node], node.shape, node.strides, node.dtype) for node in targets]
        self.filled = [(place[node], NEUTRAL[node.operation], COMBINE[node.operation]) for node in kernel.filled]
        self.compiled = kernel.compiled

    def execute(self, places: list) -> None:
        """Makes tensors for its targets."""
        for index, shape, strides, dtype in self.made:
            places[index] = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
        threads = self.compiled.threads()
        if threads > 1:
            whole = [places[index] for index, *_ in self.filled]
            for tensor, (index, neutral, _) in zip(whole, self.filled, strict=True):
                parts = tensor.new_full((threads * tensor.numel(),), neutral)
                places[index] = parts.as_strided((threads, *tensor.shape), (tensor.numel(), *tensor.stride()))
        self.compiled([places[index].data_ptr() for index in self.addressed], threads)
        if threads > 1:
            for tensor, (index, _, combine) in zip(whole, self.filled, strict=True):
                places[index] = combine(places[index], 0, out=tensor)


ALIGNED = 64
"""Bytes from one array of a scratch to the next are a multiple of it."""


class Sequence:
    """Kernels that follow one another, in one call; what only they read is in one piece of memory."""

    def __init__(self, kernels: list[PlacedKernel], outside: set[int]) -> None:
        self.kernels = kernels
        made = {index: (shape, strides, dtype) for kernel in kernels for index, shape, strides, dtype in kernel.made}
        self.made = [(index, *how) for index, how in made.items() if index in outside]
        self.scratch, offsets = 0, {}
        for index, (shape, strides, dtype) in made.items():
            if index not in outside:
                offsets[index] = self.scratch
                span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
                self.scratch += -(-span * dtype.itemsize // ALIGNED) * ALIGNED
        self.addressed = [index for kernel in kernels for index in kernel.addressed]
        self.offsets = [offsets.get(index) for index in self.addressed]
        self.most = max(kernel.compiled.most if kernel.compiled.several else 1 for kernel in kernels)
        self.call = chain([kernel.compiled for kernel in kernels], [len(kernel.addressed) for kernel in kernels])

    def __call__(self, places: list) -> None:
        if self.most > 1 and torch.get_num_threads() > 1:
            for kernel in self.kernels:
                kernel.execute(places)
            return
        for index, shape, strides, dtype in self.made:
            places[index] = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
        scratch = torch.empty(self.scratch, dtype=torch.uint8, device="cpu") if self.scratch else None
        start = 0 if scratch is None else scratch.data_ptr()
        self.call(
            [
                places[index].data_ptr() if offset is None else start + offset
                for index, offset in zip(self.addressed, self.offsets, strict=True)
            ]
        )


def _joined(steps: list, outside: set[int]) -> list[Step]:
    """Steps, with kernels that follow one another as one."""
    groups = [list(some) for _, some in itertools.groupby(steps, lambda step: isinstance(step, PlacedKernel))]
    read = Counter(
        index
        for some in groups
        for index in {index for step in some if isinstance(step, PlacedKernel) for index in step.addressed}
    )
    shared = outside | {index for index, number in read.items() if number > 1}
    found: list[Step] = []
    for some in groups:
        found += [Sequence(some, shared)] if isinstance(some[0], PlacedKernel) else some
    return found


def _read_outside(nodes: list[Node], result: Any, place: dict[Node, int]) -> set[int]:
    """What results and PyTorch's functions take."""
    asked = set(nodes_in(result))
    for node in nodes:
        if node.operation not in COMPILED:
            asked.update(nodes_in(node.inputs))
    return {place[node] for node in asked if node in place}


def _same(a: Any, b: Any) -> bool:
    """Whether tensors have the same bits; NaN has many, which count as one."""
    if isinstance(a, (tuple, list)):
        return all(map(_same, a, b))
    if not isinstance(a, Tensor):
        return a is b
    bits = {4: torch.int32, 8: torch.int64}.get(a.element_size(), a.dtype)
    different = (a.view(bits) != b.view(bits)) & ((a == a) | (b == b))
    return a.stride() == b.stride() and not different.any()


# --- graphs -----------------------------------------------------------------------------------------------------------


def _wrapped(tracer: Tracer, arguments: Any) -> Any:
    return mapped(arguments, Tensor, tracer.given)


def _needed(nodes: list[Node], result: Any) -> set[Node]:
    needed = set(nodes_in(result))
    for node in reversed(nodes):
        if node in needed:
            needed.update(nodes_in(node.inputs))
    return needed


def _stored(nodes: list[Node], result: Any) -> set[Node]:
    """Nodes that kernels store: results, arguments of PyTorch and of tables, and what else would be made repeatedly."""
    asked = set(nodes_in(result))
    for node in nodes:
        for position, each in enumerate(nodes_in(node.inputs)):
            whole = node.operation not in COMPILED or (node.operation == "take" and position == 0)
            if whole or math.prod(each.shape) < math.prod(node.space):
                asked.add(each)
    always = COMPILED - ELEMENTWISE
    return {node for node in nodes if node.operation in always or (node in asked and node.operation in ELEMENTWISE)}


def leaves(target: Node, stored: set[Node]) -> list[Node]:
    """What is in memory, of what a target is computed from."""
    found: dict[Node, None] = {}
    ahead = nodes_in(target.inputs)
    seen = set(ahead)
    while ahead:
        node = ahead.pop()
        if node in stored or node.operation not in ELEMENTWISE:
            found[node] = None
        else:
            more = [each for each in nodes_in(node.inputs) if each not in seen]
            seen.update(more)
            ahead += more
    return list(found)
