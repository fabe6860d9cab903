"""Trees of JAX: their arrays by path, and the parts of a result that an argument comes back as."""

import functools
import sys
import weakref
from collections.abc import Iterator
from typing import Any

OLD_KEYS = ((2,), (4,))  # shapes of keys of jax.random.PRNGKey, which are arrays of uint32: threefry, rbg
GENERATOR, BUFFERS = "generator", "buffers"
DEPTH = 3  # levels of a place in a result, as in `loss, (state, {"ema": ema})`

Leaves = list[tuple[str, Any]]  # path, array
Place = tuple[str, ...]  # keys from a whole tree to a part of it; none is all of it


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


def is_within(path: str, place: Place) -> bool:
    """True if a path leads to an array of the part at this place."""
    text = ".".join(place)
    return path == text or path.startswith(f"{text}.")


def signature(value: Any) -> Any:
    """The structure, shapes and types of a tree of weights, keys and counts; None of others, as a batch of labels."""
    leaves, structure = sys.modules["jax"].tree_util.tree_flatten(value)
    if not leaves or not all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        return None
    if not any(is_float(leaf) for leaf in leaves) and not all(may_be_key(leaf) or not leaf.shape for leaf in leaves):
        return None
    return structure, [(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves]


def counterparts(arguments: dict[str, Any], result: Any, depth: int = 0) -> dict[Place, Place]:
    """The place in the result of what has the structure, shapes and types of an argument.

    Of an argument without one, that of its parts, down to so many levels: one key more in the result, or a batch beside
    the weights, leaves each of these its counterpart. A part of the same name comes first.
    """
    free = [(place, own) for place, own in ((place, signature(value)) for place, value in _places(result)) if own]
    rest: list[tuple[Place, Any]] = [((name,), value) for name, value in arguments.items()]
    places: dict[Place, Place] = {}
    for _ in range(depth + 1):
        apart: list[tuple[Place, Any]] = []
        for place, value in rest:
            own = signature(value)
            fitting = [other for other, shown in free if own is not None and shown == own]
            match = next((other for other in fitting if other[-1:] == place[-1:]), next(iter(fitting), None))
            if match is None:
                apart += [((*place, key), inner) for key, inner in _parts(value).items()]
            else:
                places[place] = match
                free = [(other, shown) for other, shown in free if not _overlap(other, match)]
        rest = apart
    return places


def _places(result: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """All of the result, then its parts, and theirs."""
    yield place, result
    if len(place) < DEPTH:
        for key, value in _parts(result).items():
            yield from _places(value, (*place, key))


def _parts(tree: Any) -> dict[str, Any]:
    """What a tuple, a dict, a dataclass or another node of JAX's trees holds, one level down."""
    flat, _ = sys.modules["jax"].tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    return {_key(path[0]): value for path, value in flat if path}


def _overlap(a: Place, b: Place) -> bool:
    return a[: len(b)] == b[: len(a)]


def part(tree: Any, place: Place) -> Any:
    """The part of a tree at a place. KeyError where it has none."""
    return functools.reduce(lambda tree, key: _parts(tree)[key], place, tree)


def has(tree: Any, place: Place) -> bool:
    """True if a tree has a part at this place."""
    try:
        part(tree, place)
    except KeyError:
        return False
    return True


def is_key(leaf: Any) -> bool:
    """True if an array is a key by itself, by its type or in the old format."""
    return str(leaf.dtype).startswith("key<") or (str(leaf.dtype) == "uint32" and tuple(leaf.shape) in OLD_KEYS)


def is_float(leaf: Any) -> bool:
    return "float" in str(leaf.dtype)


def state_channel(leaf: Any) -> str:
    """The channel of state that is no weight: keys, and counts of draws, are generators."""
    return GENERATOR if may_be_key(leaf) else BUFFERS


def given_channel(leaf: Any) -> str:
    """The channel of an argument that is no state."""
    return GENERATOR if is_key(leaf) else "batch"


def may_be_key(leaf: Any) -> bool:
    """True for keys, arrays of keys, and counts of draws."""
    return str(leaf.dtype).startswith(("key<", "uint32"))


def references(leaves: Leaves) -> list[Any]:
    """Weak references to arrays; a number of NumPy has none."""
    return [weakref.ref(leaf) if getattr(type(leaf), "__weakrefoffset__", 0) else nothing for _, leaf in leaves]


def nothing() -> None:
    return None
