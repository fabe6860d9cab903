"""JAX: a callback in the program, wherever updates are applied by Optax, which Flax uses, or by Equinox.

The callback is part of what XLA compiles, so each step reports, also in jit and in scan, from donated buffers. It gets
NumPy's view of the arrays and calls nothing of JAX: that could wait for the very program that waits for it.
"""

import functools
import os
import sys
from typing import Any

from . import generators, hashing, recorder

Named = list[tuple[str, str, Any]]  # channel, name, array

last: list[Any] = []  # what the last call of an Optax optimizer returned: updates, gradients, state
wrapped: dict[Any, Any] = {}  # the function of each Optax optimizer, and the one that watches it
places: dict[tuple[Any, ...], int] = {}  # of optimizers, told apart by their weights' names and shapes
started: set[tuple[int, int]] = set()  # process and place of those whose first step was written
INITIAL = "initial weights"


def after_jax(jax: Any) -> None:
    assert recorder.active is not None
    recorder.active.frameworks["jax"] = jax


def after_optax(optax: Any) -> None:
    _watch_updates(optax)
    kind = optax.GradientTransformation
    field = kind.update
    kind.update = property(lambda optimizer: _watch_optimizer(field.__get__(optimizer, kind)))


def after_equinox(equinox: Any) -> None:
    _watch_updates(equinox)


def _watch_updates(library: Any) -> None:
    assert recorder.active is not None
    recorder.active.frameworks[library.__name__] = library
    apply_updates = library.apply_updates

    @functools.wraps(apply_updates)
    def watched(params: Any, updates: Any) -> Any:
        result = apply_updates(params, updates)
        _applied(params, updates, result)
        return result

    library.apply_updates = watched


def _watch_optimizer(update: Any) -> Any:
    """The same function for the same optimizer, since jit keeps its programs by function."""

    @functools.wraps(update)
    def watched(gradients: Any, *arguments: Any, **named: Any) -> Any:
        found = update(gradients, *arguments, **named)
        last[:] = [found[0], gradients, found[1]] if isinstance(found, tuple) and len(found) == 2 else []
        return found

    return wrapped.setdefault(update, watched)


@recorder.quietly
def _applied(params: Any, updates: Any, result: Any) -> None:
    """Has a step's arrays reported, with the gradients and the state that led to these updates, if no other did."""
    arrays = named(INITIAL, params) + named("optimizer", updates, "update.") + named("weights", result)
    if last and last[0] is updates:
        arrays += named("gradients", last[1]) + named("optimizer", last[2], "state.")
    last.clear()
    recorder.note("JAX: batches are not observed")
    key = tuple((name, *array.shape) for channel, name, array in arrays if channel == "weights")
    place = places.setdefault(key, len(places))
    report([(channel, f"{place}.{name}", array) for channel, name, array in arrays], place)


def named(channel: str, tree: Any, prefix: str = "") -> Named:
    """The arrays of a tree, each under its path: `layers.0.weight`."""
    tree_util = sys.modules["jax"].tree_util
    leaves, _ = tree_util.tree_flatten_with_path(tree)
    return [
        (channel, prefix + ".".join(map(_key, path)), leaf)
        for path, leaf in leaves
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    ]


def _key(key: Any) -> str:
    """One part of a path: of a dict, a list, an attribute."""
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def report(arrays: Named, place: int) -> None:
    """Records a step now, or each time that the program that is being traced comes by."""
    jax = sys.modules["jax"]
    if not arrays:
        return
    kinds = {type(array).__name__ for _, _, array in arrays}
    if "BatchTracer" in kinds:
        recorder.note("JAX: a step within vmap is written as one step for each of its elements")
    arrays = [(channel, name, hashing.key_data(array)) for channel, name, array in arrays]
    host = functools.partial(_record, place, [(channel, name) for channel, name, _ in arrays])
    values = [array for _, _, array in arrays]
    if any(isinstance(value, jax.core.Tracer) for value in values):
        recorder.note("JAX: the states of Python's and NumPy's generators are not observed in a compiled step")
        jax.debug.callback(host, *values)
    else:
        host(*values, generator=hashing.states(generators.states()))


@recorder.quietly
def _record(place: int, names: list[tuple[str, str]], *values: Any, generator: Any = None) -> None:
    """Counts the step, and writes its line where it is due."""
    to = recorder.active
    if to is None:
        return
    numpy = sys.modules["numpy"]
    with to.lock:
        number = to.count()
        first = (os.getpid(), place) not in started
        started.add((os.getpid(), place))
        if not to.is_due(number) and not first:
            return
        seen: recorder.Hashes = {"generator": generator or {}}
        for (channel, name), value in zip(names, values):
            if channel != INITIAL or first:
                seen.setdefault(channel, {})[name] = hashing.of_numpy(numpy.asarray(value))
        if number == 1:
            to.step(0, {INITIAL: seen.pop(INITIAL, {}), "generator": seen["generator"]})
        to.step(number, seen)
