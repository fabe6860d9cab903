"""Updates by hand in JAX: calls of compiled functions.

A function is a step if a part of its result has the structure, the shapes and the types of an argument, or of a part of
one, and if its next call gets another such argument: what it returned (a step that updates the weights), or something
else (one that returns gradients, for the program to apply). All is hashed outside of the compiled program, so no bit of it
changes. `compiled` and `equinox_calls` meet the calls.
"""

import atexit
import sys
import threading
import weakref
from typing import Any, Optional

from . import generators, jax_lines, recorder, traces, trees

TRIES = 3  # calls until a function is known not to be a step
WEIGHTS = (
    "JAX: updates by hand are observed as calls of compiled functions: "
    "of the arrays that such a function carries on, those with gradients are weights, or all, if no gradients are seen"
)
UNSEEN = (
    "JAX: the program takes gradients, but no call is seen that carries weights on: a training within one compiled call "
    "shows no step, nor does a function that is compiled anew for each batch; compile a step once and call it in a loop "
    "of Python, or have the weights updated by optax.apply_updates, which reports from within"
)

library_steps = False  # True if Optax, Equinox, Flax or Keras report steps: then these are the steps
local = threading.local()  # .busy: True while this thread makes such a call
undecided: Any = weakref.WeakSet()  # those that may carry weights on, or do
functions: list[Any] = []  # weak references to the calls of functions that are steps, in the order of their first ones


class Calls:
    """The calls of a function: whether they are steps, and what the last one left."""

    is_eager = False  # True if the program does not compile it

    def __init__(self, function: Any, traced: Any = None):
        self.function, self.traced = function, traced
        self.reset()

    def reset(self) -> None:
        """Begins as if no call had been made."""
        self.calls = 0
        self.carry({})
        self.results: dict[trees.Place, list[Any]] = {}  # by place in the last result: weak references to its arrays
        self.given: list[Any] = []  # weak references to the arrays of the last call's arguments
        self.last: dict[str, Any] = {}  # by path: weak references to the weights that the last step returned
        self.index: Optional[int] = None  # the number of a function that is a step
        self.updates = True  # True if the result is the next argument; otherwise it is gradients
        self.pending: Optional[dict[str, Any]] = None  # parts of the last call, until it is known to be a step

    def carry(self, places: dict[trees.Place, trees.Place]) -> None:
        """Takes these to be carried on: by place in the arguments, that in the result."""
        self.carried = places
        self.names = {".".join(place) for place in places}

    def arguments(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments of a call by their names."""
        return traces.arguments(self.function, args, kwargs)

    def result(self, result: Any) -> Any:
        """The arrays of a result."""
        return result

    @property
    def is_no_step(self) -> bool:
        """True once it was called often enough."""
        return self.index is None and self.calls >= TRIES

    @property
    def trained(self) -> set[str]:
        """Paths of the arguments' arrays of which a gradient was taken."""
        return self.traced.trained if self.traced is not None else set()

    @property
    def has_trained(self) -> bool:
        """True if gradients are taken of what is carried on."""
        return any(self.carries(path) for path in self.trained)

    def carries(self, path: str) -> bool:
        """True if an array of the arguments is a part of what is carried on."""
        keys = path.split(".")
        return any(".".join(keys[: count + 1]) in self.names for count in range(len(keys)))

    def is_weight(self, path: str) -> bool:
        """True if an array that is carried on is a weight: gradients are taken of it, or of none that is seen."""
        return not self.has_trained or path in self.trained


def make(function: Optional[Calls], call: Any, args: Any, kwargs: Any) -> Any:
    """Makes a call, with a look at its arguments before, and at its result; not within another one."""
    if function is None or library_steps or getattr(local, "busy", False) or function.is_no_step:
        return call(*args, **kwargs)
    begun = _before(function, args, kwargs)
    local.busy = True
    try:
        result = call(*args, **kwargs)
    finally:
        local.busy = False
    if begun is not None:
        _after(function, begun, result)
    return result


@recorder.never_raise
def _before(function: Calls, args: Any, kwargs: Any) -> Optional[dict[str, Any]]:
    """The arguments, and what is hashed of them: a function may be given them for good. None within a trace."""
    active = recorder.active
    if active is None or is_traced((args, kwargs)):
        return None
    arguments = function.arguments(args, kwargs)
    if function.index is None and function.carried:
        _decide(function, arguments)
    elif function.index in jax_lines.gradients:
        jax_lines.write(
            function.index,
            jax_lines.gradients.pop(function.index),
            _weights_after(function, arguments, [*function.carried]),
        )
    if function.index is not None and not active.is_due(active.steps + 1):
        return {}
    leaves = [array for name, value in arguments.items() for array in trees.arrays(value, name)]
    decided = function.index is not None
    begun: dict[str, Any] = {"generator": generators.hashes(), "scalars": {}, "between": {}}
    begun["seen"] = jax_lines.hashed([each for each in leaves if not decided or not _only_after(function, *each)])
    for name, value in arguments.items():
        begun["scalars"].update(jax_lines.numbers(name, value))
    if decided and function.updates and active.looks_between:
        begun["between"] = _replaced(function, leaves)
    if not decided:
        begun["arguments"] = arguments
        function.given = trees.references(leaves)
    return begun


@recorder.never_raise
def _after(function: Calls, begun: dict[str, Any], result: Any) -> None:
    function.calls += 1
    active = recorder.active
    if library_steps or active is None:
        return
    result = function.result(result)
    if not begun:
        active.count()
    elif function.index is not None:
        _report(function, _line(function, begun), _weights_after(function, result, [*function.carried.values()]))
    else:
        arguments = begun.pop("arguments")
        function.carry(trees.counterparts(arguments, result, trees.DEPTH))
        carried = [array for place in function.carried for array in trees.arrays(trees.part(arguments, place))]
        if not any(trees.is_float(leaf) for _, leaf in carried):
            function.carry({})
        parts = {place: trees.arrays(trees.part(result, place)) for place in function.carried.values()}
        function.results = {place: trees.references(leaves) for place, leaves in parts.items()}
        results = {place: jax_lines.hashed(leaves) for place, leaves in parts.items()}
        function.pending = {**begun, "results": results} if function.carried else None
        undecided.add(function)


def _decide(function: Calls, arguments: dict[str, Any]) -> None:
    """Decides by the arguments of its second call if a function is a step; then writes the line of the first call."""
    pending, function.pending = function.pending, None
    owners = {
        id(array): place
        for place, references in function.results.items()
        for array in (reference() for reference in references)
        if array is not None
    }
    back: dict[trees.Place, trees.Place] = {}  # by place in the arguments: the part of the last result that it is
    weights: list[Any] = []
    updates = False
    for place in [place for place in function.carried if trees.has(arguments, place)]:
        leaves = trees.arrays(trees.part(arguments, place), *place)
        origins = [owners[id(leaf)] for _, leaf in leaves if id(leaf) in owners]
        if origins:
            back[place] = origins[0]
        own = [leaf for path, leaf in leaves if function.is_weight(path)]
        weights += own
        updates = updates or bool(own and origins)
    changed = not any(leaf is reference() for leaf in weights for reference in function.given)
    others = pending is not None and any(not function.carries(each.path) for each in pending["seen"])
    is_gradient = changed and function.has_trained and len(weights) > 1
    if function.is_eager:  # its batch may be no argument
        is_gradient = is_gradient and not _is_returned(function, weights)
    else:
        is_gradient = is_gradient and (others or len(function.carried) > 1)
    if pending is None or not (updates or is_gradient):
        function.carry({})
        return
    stay = not updates or function.has_trained  # also weights that the program has changed since the last call
    stays = {place for place in function.carried if stay and _has_weights(function, pending["seen"], place)}
    kept = [(own, place) for own, place in function.carried.items() if own in {*back, *stays}]
    function.carry({own: back.get(own, place) for own, place in kept})
    function.index, function.updates = len(functions), updates
    functions.append(weakref.ref(function))
    recorder.note(WEIGHTS)
    line, hashes = _line(function, pending), {}
    line[recorder.INITIAL] = {
        f"{function.index}.{each.path}": each.code for each in pending["seen"] if _is_hashed_weight(function, each)
    }
    for argument, place in function.carried.items():
        name = ".".join(argument)
        moved = [each._replace(path=f"{name}.{each.path}".rstrip(".")) for each in pending["results"][place]]
        hashes.update(
            {f"{function.index}.{each.path}": each.code for each in moved if _is_hashed_weight(function, each)}
        )
    _report(function, line, hashes)
    if not updates:
        jax_lines.write(
            function.index,
            jax_lines.gradients.pop(function.index),
            _weights_after(function, arguments, [*function.carried]),
        )


def _is_returned(function: Calls, weights: list[Any]) -> bool:
    """True if another function returned one of these: then its calls are the steps."""
    others = [each for each in undecided if each is not function]
    references = [ref for each in others for refs in (*each.results.values(), each.last.values()) for ref in refs]
    returned = {id(array) for array in (reference() for reference in references) if array is not None}
    return any(id(leaf) in returned for leaf in weights)


def _line(function: Calls, begun: dict[str, Any]) -> dict[str, Any]:
    """Inputs of a step: of what is carried on, all but the weights."""
    line: dict[str, Any] = {"generator": begun["generator"], "batch": {}, "buffers": {}, "scalars": {}}
    if recorder.active is not None and recorder.active.looks_between:
        line[recorder.CHANGED] = begun["between"]
    for each in begun["seen"]:
        if not function.carries(each.path):
            line[each.given][each.path] = each.code
        elif not _is_hashed_weight(function, each):
            line[each.state][f"{function.index}.{each.path}"] = each.code
    line["scalars"] = {path: text for path, text in begun["scalars"].items() if not function.carries(path)}
    return line


def _report(function: Calls, line: dict[str, Any], hashes: dict[str, str]) -> None:
    """A step's line, or what will be one: gradients have their weights at the next call."""
    active = recorder.active
    assert active is not None and function.index is not None
    if function.updates:
        jax_lines.write(function.index, line, hashes)
    else:
        jax_lines.gradients[function.index] = {**line, "gradients": hashes, "number": active.count()}


def _weights_after(function: Calls, tree: Any, places: list[trees.Place]) -> dict[str, str]:
    """Hashes of the weights among what is carried on, by their paths in the arguments; `places` are those in the tree."""
    both = zip(function.carried, places)
    named = [array for own, place in both for array in trees.arrays(trees.part(tree, place), *own)]
    weights = [each for each in named if _only_after(function, *each)]
    function.last = dict(zip([path for path, _ in weights], trees.references(weights)))
    return {f"{function.index}.{each.path}": each.code for each in jax_lines.hashed(weights)}


def _replaced(function: Calls, leaves: trees.Leaves) -> dict[str, str]:
    """Hashes of the weights among the arguments that are not the arrays which the last step returned, by path."""
    weights = [each for each in leaves if _only_after(function, *each)]
    others = [(path, leaf) for path, leaf in weights if function.last.get(path, trees.nothing)() is not leaf]
    return {f"{function.index}.{each.path}": each.code for each in jax_lines.hashed(others)}


def _only_after(function: Calls, path: str, leaf: Any) -> bool:
    """True if an array is carried on, and is a weight. Keys never are."""
    return function.carries(path) and trees.state_channel(leaf) == trees.BUFFERS and function.is_weight(path)


def _is_hashed_weight(function: Calls, each: jax_lines.Seen) -> bool:
    return function.carries(each.path) and each.state == trees.BUFFERS and function.is_weight(each.path)


def _has_weights(function: Calls, seen: list[jax_lines.Seen], place: trees.Place) -> bool:
    return any(_is_hashed_weight(function, each) for each in seen if trees.is_within(each.path, place))


def is_traced(tree: Any) -> bool:
    jax = sys.modules["jax"]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(tree))


@recorder.never_raise
def _end() -> None:
    """Writes the last line of a function whose result is gradients: what was made of these is not seen.

    If no step was seen, says why that may be.
    """
    for index in [*jax_lines.gradients]:
        jax_lines.write(index, jax_lines.gradients.pop(index), {})
    active = recorder.active
    if active is not None and traces.gradients and not active.steps:
        active.note(UNSEEN)


def watch() -> None:
    """Writes what is left when the program ends."""
    atexit.register(_end)
