"""Traces of compiled JAX functions: arguments that come back.

A function is traced before it runs. What it was given and what it returns are then trees of tracers, so the structure,
shapes and types of both are known before the first step reports. `jax.grad` says which of the arguments are weights.
"""

import functools
import inspect
import operator
import sys
import threading
import weakref
from typing import Any, Optional

from . import recorder

OLD_KEYS = ((2,), (4,))  # shapes of keys of jax.random.PRNGKey, which are arrays of uint32: threefry, rbg
GENERATOR, BUFFERS = "generator", "buffers"
UNDECIDED = ("batch", GENERATOR, "")  # channels of an input that may still come back
DEPTH = 3  # levels of a place in a result, as in `loss, (state, {"ema": ema})`
TRACED, FUNCTION = "__repro_traced__", "__repro_function__"  # attributes of the functions that jax.jit returns

under_way = threading.local()  # .traces: those of this thread, the innermost last
known: dict[int, "Traced"] = {}  # by id of a function of the program: the one that jax.jit gets for it

Leaves = list[tuple[str, Any]]  # path, array
Place = tuple[Any, ...]  # keys from the whole result to a part of it; none is all of it
Channels = list[tuple[str, str]]  # channel and name of each array that a step reports


class Traced:
    """A function of the program as jax.jit gets it: the same one for the same function, since jit keeps programs by it.

    It holds the function weakly, or what JAX keeps for it would never be freed: see `compiled`.
    """

    def __init__(self, function: Any):
        forget = functools.partial(known.pop, id(function))  # the reference is its default
        self.function = weakref.ref(function, forget)
        self.trained: set[str] = set()  # paths of the arguments' arrays of which a gradient was taken
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(function, name):
                setattr(self, name, getattr(function, name))
        named = function
        while isinstance(named, functools.partial):  # as JAX names it
            named = named.func
        if hasattr(named, "__name__"):
            self.__name__ = named.__name__

    @property
    def __wrapped__(self) -> Any:
        return self.function()

    def __reduce__(self) -> Any:
        return operator.itemgetter(0), ((self.__wrapped__,),)  # pickled, it becomes the function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traces = vars(under_way).setdefault("traces", [])
        trace = Trace()
        traces.append(trace)
        try:
            result = self.__wrapped__(*args, **kwargs)
        finally:
            traces.pop()
        _end(self, trace, args, kwargs, result)
        return result


class Trace:
    """Facts learned while a function is traced."""

    def __init__(self) -> None:
        self.inputs: list[
            tuple[Any, Channels, int]
        ] = []  # variables of a step that reports, and the places of their channels
        self.differentiated: list[Any] = []  # tracers of which a gradient is taken


def compiled(jit: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Compiles a function by jax.jit; the result holds the function."""
    try:
        traced = known.get(id(function)) or Traced(function)
    except TypeError:  # JAX says why: it needs a weak reference, too
        return jit(function, *args, **kwargs)
    known[id(function)] = traced
    made = jit(traced, *args, **kwargs)
    setattr(made, TRACED, traced)
    setattr(made, FUNCTION, function)
    return made


def arguments(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by their names, as far as its signature says."""
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{str(place): value for place, value in enumerate(args)}, **kwargs}


def arrays(tree: Any, *name: str) -> Leaves:
    """The arrays of a tree under their paths: `w.0.1`."""
    leaves, _ = sys.modules["jax"].tree_util.tree_flatten_with_path(tree)
    named = [(".".join([*name, *map(_key, path)]), leaf) for path, leaf in leaves]
    return [(path, leaf) for path, leaf in named if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]


def name_of(keys: Any) -> str:
    """`w.0.1` of a path in a tree of JAX."""
    return ".".join(map(_key, keys))


def _key(key: Any) -> str:
    """Names a part of a path: of a dict, a list, an attribute."""
    return next((str(getattr(key, name)) for name in ("key", "name", "idx") if hasattr(key, name)), str(key))


def argument_of(path: str) -> str:
    return path.partition(".")[0]


def signature(value: Any) -> Any:
    """The structure, shapes and types of a tree of weights, keys and counts; None of others, as a batch of labels."""
    leaves, structure = sys.modules["jax"].tree_util.tree_flatten(value)
    if not leaves or not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        return None
    if not any(is_float(leaf) for leaf in leaves) and not all(_may_be_key(leaf) or not leaf.shape for leaf in leaves):
        return None
    return structure, [(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves]


def counterparts(signatures: dict[str, Any], result: Any) -> dict[str, Place]:
    """The place in the result of what has the structure, shapes and types of each argument."""
    free = [(place, signature(part(result, place))) for place in _places(result)]
    places: dict[str, Place] = {}
    for name, own in signatures.items():
        match = next((place for place, other in free if own is not None and other == own), None)
        if match is not None:
            places[name] = match
            free = [(place, other) for place, other in free if not _overlap(place, match)]
    return places


def _places(result: Any, place: Place = ()) -> list[Place]:
    """All of the result, then its parts, and theirs."""
    parts = _parts(result) if len(place) < DEPTH else {}
    return [place, *(inner for key, value in parts.items() for inner in _places(value, (*place, key)))]


def _parts(tree: Any) -> dict[str, Any]:
    """What a tuple, a dict, a dataclass or another node of JAX's trees holds, one level down."""
    flat, _ = sys.modules["jax"].tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    return {_key(path[0]): value for path, value in flat if path}


def _overlap(a: Place, b: Place) -> bool:
    return a[: len(b)] == b[: len(a)]


def part(result: Any, place: Place) -> Any:
    return functools.reduce(lambda tree, key: _parts(tree)[key], place, result)


def is_key(leaf: Any) -> bool:
    """True if an array is a key by itself, by its type or in the old format."""
    return str(leaf.dtype).startswith("key<") or (str(leaf.dtype) == "uint32" and tuple(leaf.shape) in OLD_KEYS)


def is_float(leaf: Any) -> bool:
    return "float" in str(leaf.dtype)


def state_channel(leaf: Any) -> str:
    """The channel of state that is no weight: keys, and counts of draws, are generators."""
    return GENERATOR if _may_be_key(leaf) else BUFFERS


def given_channel(leaf: Any) -> str:
    """The channel of an argument that is no state."""
    return GENERATOR if is_key(leaf) else "batch"


def _may_be_key(leaf: Any) -> bool:
    return str(leaf.dtype).startswith(("key<", "uint32"))


def innermost() -> Optional[Trace]:
    traces = vars(under_way).get("traces")
    return traces[-1] if traces else None


def remember(names: Channels, reported: recorder.Arrays) -> None:
    """Decides the channels in `names` when the trace ends: an argument may come back, and is state then."""
    trace = innermost()
    if trace is not None:
        open_ones = [(place, array) for place, (channel, _, array) in enumerate(reported) if channel in UNDECIDED]
        trace.inputs += [(getattr(array, "val", None), names, place) for place, array in open_ones]


@recorder.never_raise
def _end(traced: Traced, trace: Trace, args: Any, kwargs: Any, result: Any) -> None:
    """Decides the channels of the inputs that come back, and which arguments are weights."""
    given = arguments(traced.function(), args, kwargs)
    leaves = sys.modules["jax"].tree_util.tree_leaves
    differentiated = {id(leaf) for leaf in trace.differentiated}
    named = [array for name, value in given.items() for array in arrays(value, name)]
    traced.trained |= {path for path, leaf in named if id(leaf) in differentiated}
    if not trace.inputs:
        return
    returned = counterparts({name: signature(value) for name, value in given.items()}, result)
    back = {
        id(getattr(leaf, "val", None)): leaf
        for name in returned
        for leaf in leaves(given[name])
        if _is_state(given[name])
    }
    for variable, channels, place in trace.inputs:
        if id(variable) in back:
            channels[place] = (state_channel(back[id(variable)]), channels[place][1])


def _is_state(value: Any) -> bool:
    """True for state of the shapes of a result: a tree, or keys. A single array may be a batch or a prediction."""
    return not hasattr(value, "dtype") or (_may_be_key(value) and bool(value.shape))


def _watch_gradient(grad: Any) -> Any:
    @functools.wraps(grad)
    def watched(fun: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
        made = grad(fun, argnums, *args, **kwargs)

        @functools.wraps(made)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            _differentiate(argnums, args)
            return made(*args, **kwargs)

        return gradient

    return watched


@recorder.never_raise
def _differentiate(argnums: Any, args: Any) -> None:
    trace = innermost()
    if trace is not None:
        places = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        trace.differentiated += sys.modules["jax"].tree_util.tree_leaves([args[place] for place in places])


def watch(jax: Any) -> None:
    """Observes the gradients that the program takes."""
    jax.grad, jax.value_and_grad = _watch_gradient(jax.grad), _watch_gradient(jax.value_and_grad)


def references(leaves: Leaves) -> list[Any]:
    """Weak references to arrays; a number of NumPy has none."""
    return [weakref.ref(leaf) if getattr(type(leaf), "__weakrefoffset__", 0) else nothing for _, leaf in leaves]


def nothing() -> None:
    return None
