"""Updates by hand in JAX: calls of compiled functions.

A function is a step if a part of its result has the structure, the shapes and the types of an argument, and if its next
call gets another such argument: what it returned (a step that updates the weights), or something else (one that returns
gradients, for the program to apply). All is hashed outside of the compiled program, so no bit of it changes.
"""

import atexit
import functools
import sys
import weakref
from typing import Any, NamedTuple, Optional

from . import generators, hashing, memory, recorder, scalars, traces

TRIES = 3  # calls until a function is known not to be a step
WEIGHTS = (
    "JAX: updates by hand are observed as calls of compiled functions: "
    "of the arrays that such a function carries on, those with gradients are weights, or all, if no gradients are seen"
)

LIBRARIES = ("jax", "optax", "equinox", "flax", "haiku", "chex", "orbax", "keras")  # their own functions are not steps

library_steps = False  # True if Optax, Equinox, Flax or Keras report steps: then these are the steps
spread = False  # True once a call was given arrays of which other processes have parts
functions: list[Any] = []  # weak references to functions that are steps, in the order of their first calls


class Seen(NamedTuple):
    """An array of a call."""

    path: str
    state: str  # the channel if it is carried on and is not a weight
    given: str  # the channel if it is not carried on
    code: str  # its SHA-256


class CompiledFunction:
    """A function that jax.jit returned, with each of its calls observed."""

    def __init__(self, function: Any):
        functools.update_wrapper(self, function)
        self.function = function
        self.traced = getattr(function, traces.TRACED, None)
        if self.traced is not None:
            self.__wrapped__ = self.traced.__wrapped__
        self.calls = 0
        self.carried: dict[str, traces.Place] = {}  # by argument: the place of its counterpart in the result
        self.results: dict[traces.Place, list[Any]] = {}  # by place in the last result: weak references to its arrays
        self.given: list[Any] = []  # weak references to the arrays of the last call's arguments
        self.last: dict[str, Any] = {}  # by path: weak references to the weights that the last step returned
        self.index: Optional[int] = None  # the number of a function that is a step
        self.updates = True  # True if the result is the next argument; otherwise it is gradients
        self.pending: Optional[dict[str, Any]] = None  # parts of a step whose line cannot be written yet

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if library_steps or (self.index is None and self.calls >= TRIES):
            return self.function(*args, **kwargs)
        begun = _before(self, args, kwargs)
        result = self.function(*args, **kwargs)
        if begun is not None:
            _after(self, begun, result)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["function"], name)

    def __reduce__(self) -> Any:
        return self.function.__reduce__()

    @property
    def has_trained(self) -> bool:
        """True if gradients are taken of what is carried on."""
        trained = self.traced.trained if self.traced is not None else ()
        return any(traces.argument_of(path) in self.carried for path in trained)

    def is_weight(self, path: str) -> bool:
        """True if an array that is carried on is a weight: gradients are taken of it, or of none that is seen."""
        return not self.has_trained or (self.traced is not None and path in self.traced.trained)


@recorder.never_raise
def _before(function: CompiledFunction, args: Any, kwargs: Any) -> Optional[dict[str, Any]]:
    """The arguments, and what is hashed of them: a function may be given them for good. None within a trace."""
    active = recorder.active
    if active is None or is_traced((args, kwargs)):
        return None
    arguments = traces.arguments(function.function, args, kwargs)
    if function.index is None and function.carried:
        _decide(function, arguments)
    elif function.pending is not None and not function.updates:
        write(function.index, function.pending, _weights_after(function, arguments))
        function.pending = None
    if function.index is not None and not active.is_due(active.steps + 1):
        return {}
    begun: dict[str, Any] = {"generator": generators.hashes(), "seen": {}, "scalars": {}, "between": {}}
    for name, value in arguments.items():
        after = function.index is not None and name in function.carried
        begun["seen"][name] = hashed(
            [
                (path, leaf)
                for path, leaf in traces.arrays(value, name)
                if not after or not _only_after(function, path, leaf)
            ]
        )
        begun["scalars"][name] = numbers(name, value)
        if after and function.updates and active.looks_between:
            begun["between"].update(_replaced(function, name, value))
    if function.index is None:
        begun["signatures"] = {name: traces.signature(value) for name, value in arguments.items()}
        function.given = traces.references(
            [array for name, value in arguments.items() for array in traces.arrays(value, name)]
        )
    return begun


@recorder.never_raise
def _after(function: CompiledFunction, begun: dict[str, Any], result: Any) -> None:
    function.calls += 1
    active = recorder.active
    if library_steps or active is None:
        return
    if not begun:
        active.count()
    elif function.index is not None:
        carried = {name: traces.part(result, place) for name, place in function.carried.items()}
        _report(function, _line(function, begun), _weights_after(function, carried))
    else:
        signatures = begun["signatures"]
        function.carried = traces.counterparts(signatures, result)
        if not any("float" in kind for name in function.carried for _, kind in signatures[name][1]):
            function.carried = {}
        parts = {place: traces.arrays(traces.part(result, place), "") for place in function.carried.values()}
        function.results = {place: traces.references(leaves) for place, leaves in parts.items()}
        results = {place: hashed(leaves) for place, leaves in parts.items()}
        function.pending = {**begun, "results": results} if function.carried else None


def _decide(function: CompiledFunction, arguments: dict[str, Any]) -> None:
    """Decides by the arguments of its second call if a function is a step; then writes the line of the first call."""
    pending, function.pending = function.pending, None
    back: dict[str, traces.Place] = {}  # by argument: the part of the last result that it is
    weights: list[Any] = []
    updates = False
    for name in function.carried:
        leaves = traces.arrays(arguments.get(name), name)
        for place, references in function.results.items():
            if any(leaf is reference() for (_, leaf), reference in zip(leaves, references)):
                back[name] = place
        own = [leaf for path, leaf in leaves if function.is_weight(path)]
        weights += own
        updates = updates or bool(own and name in back)
    changed = not any(leaf is reference() for leaf in weights for reference in function.given)
    gradients = changed and function.has_trained and len(weights) > 1 and len(arguments) > 1
    if pending is None or not (updates or gradients):
        function.carried = {}
        return
    stays = {name for name in function.carried if not updates and _has_weights(function, pending["seen"][name])}
    function.carried = {
        name: back.get(name, place) for name, place in function.carried.items() if name in {*back, *stays}
    }
    function.index, function.updates = len(functions), updates
    functions.append(weakref.ref(function))
    recorder.note(WEIGHTS)
    line, hashes = _line(function, pending), {}
    first = [each for name in function.carried for each in pending["seen"][name]]
    line[recorder.INITIAL] = {
        f"{function.index}.{each.path}": each.code for each in first if _is_hashed_weight(function, each)
    }
    for name, place in function.carried.items():
        moved = [each._replace(path=name + each.path) for each in pending["results"][place]]
        hashes.update(
            {f"{function.index}.{each.path}": each.code for each in moved if _is_hashed_weight(function, each)}
        )
    _report(function, line, hashes)
    if not updates:
        write(function.index, line, _weights_after(function, arguments))
        function.pending = None


def _line(function: CompiledFunction, begun: dict[str, Any]) -> dict[str, Any]:
    """Inputs of a step: of what is carried on, all but the weights."""
    line: dict[str, Any] = {"generator": begun["generator"], "batch": {}, "buffers": {}, "scalars": {}}
    if recorder.active is not None and recorder.active.looks_between:
        line[recorder.CHANGED] = begun["between"]
    for name, seen in begun["seen"].items():
        for each in seen:
            if name not in function.carried:
                line[each.given][each.path] = each.code
            elif not _is_hashed_weight(function, each):
                line[each.state][f"{function.index}.{each.path}"] = each.code
        if name not in function.carried:
            line["scalars"].update(begun["scalars"][name])
    return line


def _report(function: CompiledFunction, line: dict[str, Any], hashes: dict[str, str]) -> None:
    """A step's line, or what will be one: gradients have their weights at the next call."""
    active = recorder.active
    assert active is not None
    if function.updates:
        write(function.index, line, hashes)
    else:
        function.pending = line
        line.update({"gradients": hashes, "number": active.count()})


def write(index: Optional[int], line: dict[str, Any], weights: dict[str, str]) -> None:
    """Writes a step's line, with the weights after it."""
    active = recorder.active
    assert active is not None
    if spread:
        recorder.unseen(hashing.SPREAD)
    number = line.pop("number", None) or active.count()
    texts = {f"{index}.{name}": text for name, text in line.pop("scalars").items()}
    active.step(number, {**line, "scalars": texts, "weights": weights})


def _weights_after(function: CompiledFunction, trees: dict[str, Any]) -> dict[str, str]:
    """Hashes of the weights among what is carried on, by path."""
    named = [array for name in function.carried if name in trees for array in traces.arrays(trees[name], name)]
    weights = [(path, leaf) for path, leaf in named if _only_after(function, path, leaf)]
    function.last = dict(zip([path for path, _ in weights], traces.references(weights)))
    return {f"{function.index}.{each.path}": each.code for each in hashed(weights)}


def _replaced(function: CompiledFunction, name: str, value: Any) -> dict[str, str]:
    """Hashes of the weights of an argument that are not the arrays which the last step returned, by path."""
    others = [
        (path, leaf)
        for path, leaf in traces.arrays(value, name)
        if _only_after(function, path, leaf) and function.last.get(path, traces.nothing)() is not leaf
    ]
    return {f"{function.index}.{each.path}": each.code for each in hashed(others)}


def _only_after(function: CompiledFunction, path: str, leaf: Any) -> bool:
    """True if an array that is carried on is a weight. Keys never are."""
    return traces.state_channel(leaf) == traces.BUFFERS and function.is_weight(path)


def _is_hashed_weight(function: CompiledFunction, each: Seen) -> bool:
    return each.state == traces.BUFFERS and function.is_weight(each.path)


def _has_weights(function: CompiledFunction, seen: list[Seen]) -> bool:
    return any(_is_hashed_weight(function, each) for each in seen)


def hashed(leaves: traces.Leaves) -> list[Seen]:
    """The hashes of arrays that can be read. Of others is said so only if this is a step, of no library."""
    global spread
    spread = spread or any(memory.is_spread(leaf) for _, leaf in leaves)
    codes = hashing.hash_named([(path, leaf) for path, leaf in leaves if not memory.is_spread(leaf)], "JAX: {}")
    return [
        Seen(path, traces.state_channel(leaf), traces.given_channel(leaf), codes[path])
        for path, leaf in leaves
        if path in codes
    ]


def numbers(name: str, value: Any) -> dict[str, str]:
    """The numbers of an argument, as text."""
    values: dict[str, str] = {}
    scalars.add(values, name, value)
    return values


def is_traced(tree: Any) -> bool:
    jax = sys.modules["jax"]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(tree))


@recorder.never_raise
def _end() -> None:
    """Writes the last line of a function whose result is gradients: what was made of these is not seen."""
    for function in (reference() for reference in functions):
        if function is not None and function.pending is not None and not function.updates:
            write(function.index, function.pending, {})
            function.pending = None


def watch(jax: Any) -> None:
    """Observes the functions that the program compiles from now on."""
    jit = jax.jit
    traces.watch(jax)

    @functools.wraps(jit)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not args:  # only options: a function that compiles
            made = jit(**kwargs)
            return made if hasattr(made, "lower") else lambda function: watched(function, **kwargs)
        if _is_of_library(args[0]):
            return jit(*args, **kwargs)
        return CompiledFunction(traces.compiled(jit, *args, **kwargs))

    jax.jit = watched
    atexit.register(_end)


def _is_of_library(function: Any) -> bool:
    """True if a library compiled its own function, or wrapped the program's in an object of its own, as NNX does."""
    modules = (getattr(each, "__module__", None) for each in (function, type(function)))
    return any(str(module).partition(".")[0] in LIBRARIES for module in modules)
