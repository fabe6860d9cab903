"""Updates by hand in JAX: calls of compiled functions.

A function is a step if a part of its result has the structure, the shapes and the types of an argument, and if its next
call gets another such argument: what it returned (a step that updates the weights), or something else (one that returns
gradients, for the program to apply). All is hashed outside of the compiled program, so no bit of it changes.
"""

import atexit
import functools
import inspect
import sys
import weakref
from typing import Any, Optional

from . import generators, hashing, recorder, scalars

TRIES = 3  # calls of a function until it is known not to be a step
ALONE = "JAX: updates by hand are seen as calls of compiled functions: all that such a function carries on is a weight"

LIBRARIES = ("jax", "optax", "equinox", "flax", "haiku", "chex", "orbax", "keras")  # their own functions are no steps

library_steps = False  # whether Optax, Equinox, Flax or Keras report steps: then these are the steps
functions: list[Any] = []  # weak references to the functions that are steps, in the order of their first calls

Leaves = list[tuple[str, Any]]  # path, array


class Compiled:
    """What jax.jit returns, with each of its calls looked at."""

    def __init__(self, function: Any):
        functools.update_wrapper(self, function)
        self.function = function
        self.calls = 0
        self.carried: dict[str, Any] = {}  # by argument, where in the result its counterpart is
        self.results: list[Any] = []  # weak references to the arrays of the last call's counterparts
        self.arguments: list[int] = []  # identities of the arrays of the last call's carried arguments
        self.index: Optional[int] = None  # of a function that is a step
        self.updates = True  # whether the result is the next argument; else it is gradients
        self.pending: Optional[dict[str, Any]] = None  # of a step whose line cannot be written yet

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

    def names(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments by their names, as far as the function tells."""
        try:
            return dict(inspect.signature(self.function).bind(*args, **kwargs).arguments)
        except (TypeError, ValueError):
            return {**{str(place): value for place, value in enumerate(args)}, **kwargs}


@recorder.never_raise
def _before(function: Compiled, args: Any, kwargs: Any) -> Optional[dict[str, Any]]:
    """The arguments, and what is hashed of them: a function may be given them for good. None within a trace."""
    active, jax = recorder.active, sys.modules["jax"]
    if active is None or any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves((args, kwargs))):
        return None
    arguments = function.names(args, kwargs)
    if function.index is None and function.carried:
        _decide(function, arguments)
    begun: dict[str, Any] = {"signatures": {name: _signature(value) for name, value in arguments.items()}}
    if function.index is None:
        begun["argument"] = {name: _hash_carried(_arrays(value, name)) for name, value in arguments.items()}
    elif not function.updates and function.pending is not None:
        carried = [_hash_carried(_arrays(arguments[name], name)) for name in function.carried if name in arguments]
        _write(function, function.pending, _merged(function.index, carried))
        function.pending = None
    if function.index is None or active.is_due(active.steps + 1):
        keys = [_hash_carried(_arrays(arguments.get(name), name)) for name in function.carried]
        drawn = _merged(function.index, keys).get("generator", {}) if function.index is not None else {}
        begun["hashes"] = {"generator": {**generators.hashes(), **drawn}, "batch": {}, "scalars": {}}
        begun["rest"] = {
            name: _hash_rest(value, name) for name, value in arguments.items() if name not in function.carried
        }
    function.arguments = [id(leaf) for name in function.carried for _, leaf in _arrays(arguments.get(name), name)]
    return begun


@recorder.never_raise
def _after(function: Compiled, begun: dict[str, Any], result: Any) -> None:
    function.calls += 1
    if library_steps:
        return
    if not function.carried:
        function.carried = _counterparts(begun["signatures"], result)
        if not function.carried:
            return
    carried = {name: _part(result, place) for name, place in function.carried.items()}
    function.results = [
        weakref.ref(leaf) for value in carried.values() for _, leaf in _arrays(value, "") if _is_weak(leaf)
    ]
    hashes = begun.get("hashes")
    active = recorder.active
    assert active is not None
    if hashes is None:
        active.count()
        return
    for name, (batch, numbers) in begun["rest"].items():
        if name not in carried:
            hashes["batch"].update(batch)
            hashes["scalars"].update(numbers)
    found = [_hash_carried(_arrays(value, name)) for name, value in carried.items()]
    if function.index is None:
        function.pending = {**hashes, "first": [begun["argument"][name] for name in carried], "result": found}
    elif function.updates:
        _write(function, hashes, _merged(function.index, found))
    else:
        gradients = _merged(function.index, found).get("weights", {})
        function.pending = {**hashes, "gradients": gradients, "number": active.count()}


def _decide(function: Compiled, arguments: dict[str, Any]) -> None:
    """Whether the function is a step, by the arguments of its second call; then the first one's line is written."""
    leaves = [leaf for name in function.carried for _, leaf in _arrays(arguments.get(name), name)]
    results = [reference() for reference in function.results]
    updates = any(leaf is result for leaf in leaves for result in results if result is not None)
    changed = not {id(leaf) for leaf in leaves} & {*function.arguments}
    pending, function.pending = function.pending, None
    gradients = changed and len(leaves) > 1 and len(arguments) > 1 and all(map(_is_float, leaves))
    if pending is None or not (updates or gradients):
        function.carried = {}
        return
    function.index, function.updates = len(functions), updates
    functions.append(weakref.ref(function))
    recorder.note(ALONE)
    first, found = (_merged(function.index, pending.pop(name)) for name in ("first", "result"))
    pending[recorder.INITIAL] = first.get("weights", {})
    pending["generator"] = {**pending["generator"], **first.get("generator", {})}
    if updates:
        _write(function, pending, found)
    else:
        carried = [_hash_carried(_arrays(arguments[name], name)) for name in function.carried if name in arguments]
        _write(function, {**pending, "gradients": found.get("weights", {})}, _merged(function.index, carried))


def _write(function: Compiled, hashes: dict[str, Any], after: recorder.Hashes) -> None:
    """A step's line, with the weights after it. Keys that it carries on are generators."""
    active = recorder.active
    assert active is not None
    number = hashes.pop("number", None) or active.count()
    numbers = {f"{function.index}.{name}": text for name, text in hashes.get("scalars", {}).items()}
    active.step(number, {**hashes, "scalars": numbers, "weights": after.get("weights", {})})


def _merged(index: int, parts: list[recorder.Hashes]) -> recorder.Hashes:
    """By channel, the hashes of several arguments under the number of the function."""
    merged: recorder.Hashes = {}
    for part in parts:
        for channel, hashes in part.items():
            merged.setdefault(channel, {}).update({f"{index}.{name}": code for name, code in hashes.items()})
    return merged


def _arrays(tree: Any, name: str) -> Leaves:
    """The arrays of a tree under their paths: `w.0.1`."""
    leaves, _ = sys.modules["jax"].tree_util.tree_flatten_with_path(tree)
    named = [(".".join([name, *map(_key, path)]), leaf) for path, leaf in leaves]
    return [(path, leaf) for path, leaf in named if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]


def _key(key: Any) -> str:
    return next((str(getattr(key, name)) for name in ("key", "name", "idx") if hasattr(key, name)), str(key))


def _is_key(leaf: Any) -> bool:
    return str(leaf.dtype).startswith(("key<", "uint32"))


def _is_float(leaf: Any) -> bool:
    return "float" in str(leaf.dtype)


def _is_weak(leaf: Any) -> bool:
    return hasattr(type(leaf), "__weakref__") or type(leaf).__module__.startswith("jax")


def _hash_carried(leaves: Leaves) -> recorder.Hashes:
    hashes: recorder.Hashes = {}
    for path, leaf in leaves:
        code = hashing.hash_or_note(leaf, f"JAX: {path}")
        if code is not None:
            hashes.setdefault("generator" if _is_key(leaf) else "weights", {})[path] = code
    return hashes


def _hash_rest(value: Any, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Of an argument that is not carried on: the hashes of its arrays, and its numbers as text."""
    numbers: dict[str, str] = {}
    scalars.add(numbers, name, value)
    codes = {path: hashing.hash_or_note(leaf, f"JAX: {path}") for path, leaf in _arrays(value, name)}
    return {path: code for path, code in codes.items() if code is not None}, numbers


def _signature(value: Any) -> Any:
    """Structure, shapes and types of a tree of weights, keys and counts; None of any other, as of a batch of labels."""
    leaves, structure = sys.modules["jax"].tree_util.tree_flatten(value)
    if not leaves or not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        return None
    if not any(_is_float(leaf) for leaf in leaves) and not all(_is_key(leaf) or not leaf.shape for leaf in leaves):
        return None
    return structure, [(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves]


def _counterparts(signatures: dict[str, Any], result: Any) -> dict[str, Any]:
    """By argument, the place in the result of what has its structure, shapes and types: `()` is all of it."""
    places: list[Any] = [()]
    if isinstance(result, (tuple, list)):
        places += range(len(result))
    elif isinstance(result, dict):
        places += result
    free = [(place, _signature(_part(result, place))) for place in places]
    found: dict[str, Any] = {}
    for name, signature in signatures.items():
        match = next((place for place, other in free if signature is not None and other == signature), None)
        if match is not None:
            found[name] = match
            free = [(place, other) for place, other in free if place != match and match != ()]
    has_floats = any("float" in kind for name in found for _, kind in signatures[name][1])
    return found if has_floats else {}


def _part(result: Any, place: Any) -> Any:
    return result if place == () else result[place]


@recorder.never_raise
def _end() -> None:
    """Writes the last line of a function whose result is gradients: what was made of these is not seen."""
    for function in (reference() for reference in functions):
        if function is not None and function.pending is not None and not function.updates:
            _write(function, function.pending, {})
            function.pending = None


def watch(jax: Any) -> None:
    """Has the functions that the program compiles from now on looked at."""
    jit = jax.jit

    @functools.wraps(jit)
    def watched(*args: Any, **kwargs: Any) -> Any:
        return _watched(jit(*args, **kwargs))

    jax.jit = watched
    atexit.register(_end)


def _watched(made: Any) -> Any:
    """A compiled function of the program, looked at; `jax.jit` with options alone gives a function that compiles."""
    if not hasattr(made, "lower"):
        return lambda *args, **kwargs: _watched(made(*args, **kwargs))
    library = str(getattr(made, "__module__", "")).partition(".")[0]
    return made if library in LIBRARIES else Compiled(made)
