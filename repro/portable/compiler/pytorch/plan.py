"""Plans: operations traced once, then executed as kernels.

What belongs together becomes one compiled kernel; the rest are calls of PyTorch's functions.
"""

import logging
import math
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.nodes import COMPILED, ELEMENTWISE, PLACES, Node, leaves, mapped, nodes_in
from repro.portable.compiler.pytorch import memory, natively
from repro.portable.compiler.pytorch.tracer import Tracer
from repro.portable.compiler.tracer import Array
from repro.portable.kernels import pytorch as compiler

if compiler.available:
    from repro.portable.compiler.pytorch.placed import Addresses, Kernels, Placed, Step, joined, kernel, products

log = logging.getLogger(__name__)

_plans: dict[Hashable, "Plan | None"] = {}
MOST = 2**13
"""Plans that are kept; then the oldest goes."""


def run(function: Callable, *arguments: Any, **options: Any) -> Any:
    """Runs function(Backend, *arguments, **options), by kernels from the second call with tensors of some shapes on.

    Tensors may be in tuples and lists among the arguments. They are made plain memory first, or refused.
    """
    if torch.compiler.is_compiling():
        return function(Backend, *arguments, **options)
    watched, arguments = memory.watched(), memory.plain(arguments)
    tensors: list[Tensor] = []
    key = _key_of(function, arguments, options, tensors)
    if watched or not all(tensor.is_cpu for tensor in tensors):
        return function(Backend, *arguments, **options)
    if not compiler.available:
        return natively.run(function, arguments, options)
    plan = _plans.get(key)
    if plan is not None and plan.sound:
        return plan.execute(tensors)
    if plan is None and key in _plans:
        plan = _plans[key] = Plan()
        return plan.trace(function, arguments, options, tensors)
    _plans.setdefault(key, None)
    if len(_plans) > MOST:
        del _plans[next(iter(_plans))]
    return function(Backend, *arguments, **options)


def ready(function: Callable, *arguments: Any) -> tuple["Plan | None", list[Tensor]]:
    """The plan by which run() would compute, if there is one, and the tensors that it takes."""
    tensors: list[Tensor] = []
    if torch.compiler.is_compiling() or memory.watched() or memory.plain(arguments) is not arguments:
        return None, tensors
    plan = _plans.get(_key_of(function, arguments, {}, tensors))
    return (plan if plan is not None and plan.sound else None), tensors


def _key_of(function: Callable, arguments: Any, options: dict[str, Any], tensors: list[Tensor]) -> Hashable:
    """The key of a plan; the tensors among the arguments are appended to a list."""
    return function, Backend.engine, Backend.ranks.size, _key(arguments, tensors), tuple(options.items())


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
    """The steps that compute a definition for tensors of some shapes."""

    sound = False
    """True if it gave the same bits as its definition."""

    def trace(self, function: Callable, arguments: Any, options: dict[str, Any], tensors: list[Tensor]) -> Any:
        """The result of a definition, from which the plan is made and tried."""
        tracer = Tracer()
        result = function(tracer, *_wrapped(tracer, arguments), **options)
        right = mapped(result, Array, lambda array: array.value)
        self._schedule(tracer.nodes, mapped(result, Array, lambda array: array.node))
        self.sound = _same(right, self.execute(tensors))
        if not self.sound:
            log.warning("portable: %s gives different bits in kernels; it runs without", function.__qualname__)
        return right

    def execute(self, tensors: list[Tensor]) -> Any:
        """Computes the definition for other tensors of the same shapes."""
        places = self.start.copy()
        for place, tensor in zip(self.inputs, tensors, strict=True):
            places[place] = tensor
        for step in self.steps:
            step(places)
        return self.result(places)

    def kernels(self) -> "Kernels | None":
        """The kernels of a plan that calls nothing else."""
        steps: list[Any] = self.steps
        return steps[0] if len(steps) == 1 and isinstance(steps[0], Kernels) else None

    def _schedule(self, nodes: list[Node], result: Any) -> None:
        needed = _needed(nodes, result)
        nodes = [node for node in nodes if node in needed or node.operation == "input"]
        stored = _stored(nodes, result)
        there: dict[Node, int] = {}
        """The time from which on a kernel may read it."""
        groups: dict[Group, list[Node]] = {}
        home: dict[Node, Group] = {}
        calls: dict[int, list[Node]] = {}
        multiplied: dict[int, list[Node]] = {}
        called, outside = _read_outside(nodes, result)
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
                time = there[node] = max((there[each] for each in nodes_in(node.inputs)), default=0)
                if node.operation == "product":
                    there[node] = time + 1
                    multiplied.setdefault(time, []).append(node)
                elif node.inputs and node.operation != "joined" and (node.operation != "view" or node in called):
                    calls.setdefault(time, []).append(node)
        place = {node: index for index, node in enumerate(there)}
        self.start = [node.value for node in there]
        self.inputs = [place[node] for node in nodes if node.operation == "input"]
        self.result = _argument(result, place)
        addresses = Addresses(place)
        steps: list[Step | Placed] = []
        for time in range(max([*(group.time for group in groups), *calls, *multiplied], default=-1) + 1):
            steps += [_call(node, place) for node in calls.get(time, ())]
            steps += [
                kernel(group.space, targets, stored, addresses)
                for group, targets in groups.items()
                if group.time == time
            ]
            for node in multiplied.get(time, ()):
                steps += products(node, addresses)
        self.start += [None] * (len(addresses) - len(self.start))
        steps += [_call(node, place) for node in nodes if node.operation == "view" and node in outside - called]
        self.steps = joined(steps, {place[node] for node in outside if node in place})


def _call(node: Node, place: dict[Node, int]) -> "Step":
    """A function of PyTorch."""
    function, result = node.function, place[node]
    if node.operation == "view":
        function = partial(_view, node.shape, node.strides, node.attributes["shift"])
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


def _view(shape: tuple[int, ...], strides: tuple[int, ...], shift: int, tensor: Tensor) -> Tensor:
    return tensor.as_strided(shape, strides, tensor.storage_offset() + shift)


def _argument(given: Any, place: dict[Node, int]) -> Callable[[list], Any]:
    """Replaces nodes in nested tuples and lists by their tensors."""
    if isinstance(given, Node):
        return operator.itemgetter(place[given])
    if nodes_in(given):
        kind, parts = type(given), [_argument(each, place) for each in given]
        return lambda places: kind([part(places) for part in parts])
    return lambda _: given


def _read_outside(nodes: list[Node], result: Any) -> tuple[set[Node], set[Node]]:
    """The nodes that PyTorch's functions read; and those with the results, and with what they are views of."""
    called: set[Node] = set()
    for node in nodes:
        if node.operation not in COMPILED | PLACES:
            called.update(nodes_in(node.inputs))
    outside = called.union(nodes_in(result))
    return called, outside | {each for node in outside if node.operation == "view" for each in nodes_in(node.inputs)}


def _same(a: Any, b: Any) -> bool:
    """True if tensors have the same bits; all NaN count as one."""
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
    always = COMPILED - ELEMENTWISE | {"part"}
    return {node for node in nodes if node.operation in always or (node in asked and node.operation in ELEMENTWISE)}
