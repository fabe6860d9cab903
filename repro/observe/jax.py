"""JAX: a callback in the program, wherever updates are applied by Optax, which Flax uses, or by Equinox.

The callback is part of what XLA compiles, so each step reports, also in jit and in scan, from donated buffers. It gets
NumPy's view of the arrays and calls nothing of JAX: that could wait for the very program that waits for it.

Of a compiled step it takes what the program has as an input or as a result anyway. What lies between, as gradients, XLA
never writes to memory as it stands: to ask for it changes how operations are fused, and so bits.
"""

import functools
import os
import sys
from typing import Any

from . import generators, hashing, recorder

Named = list[tuple[str, str, Any]]  # channel, name, array

last: list[Any] = []  # of the last call of an Optax optimizer: updates, gradients, new state, all that it was given
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
        pair = isinstance(found, tuple) and len(found) == 2
        last[:] = [found[0], gradients, found[1], (gradients, arguments, named)] if pair else []
        return found

    return wrapped.setdefault(update, watched)


@recorder.quietly
def _applied(params: Any, updates: Any, result: Any) -> None:
    """Has a step's arrays reported, with the gradients and the state that led to these updates, if no other did."""
    arrays = named(INITIAL, params) + named("optimizer", updates, "update.") + named("weights", result)
    others: Named = []
    if last and last[0] is updates:
        arrays += named("gradients", last[1]) + named("optimizer", last[2], "state.")
        others = inputs(named("", last[3]) + arrays)
    last.clear()
    if not others:
        recorder.note("JAX: batches are observed only where they are arguments of a compiled step")
    key = tuple((name, *array.shape) for channel, name, array in arrays if channel == "weights")
    place = places.setdefault(key, len(places))
    report([(channel, f"{place}.{name}", array) for channel, name, array in arrays] + others, place)


def inputs(known: Named) -> Named:
    """What the program that is being traced gets beside the weights and the optimizer's state: the batch, and keys.

    JAX tells only within where a program's arguments are, and may do so elsewhere in another version: then nothing.
    """
    tracers = [array for _, _, array in known if is_traced(array)]
    try:
        trace = tracers[-1]._trace
        names, variables = trace.frame.debug_info.arg_names, trace.frame.invars
        own = {id(tracer.val) for tracer in tracers if tracer._trace is trace}
        taken = {_argument(name) for name, variable in zip(names, variables) if id(variable) in own}
        found: Named = []
        for name, variable in zip(names, variables):
            key = str(variable.aval.dtype).startswith("key<")
            other = id(variable) not in own and _argument(name) not in taken
            if len(names) == len(variables) and other and (key or variable.aval.shape):  # one number counts something
                channel = "generator" if key else "batch"
                found.append((channel, name, type(tracers[-1])(trace, variable.aval, variable)))
        return found
    except (AttributeError, IndexError, TypeError):
        return []


def _argument(name: Any) -> str:
    """Of which argument an array is a part: `state` of `state.params['bias']`. Equinox' wrapper has all in one."""
    name = str(name)
    return name if name.startswith("dynamic") else name.replace("[", ".").split(".")[0]


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


def is_traced(value: Any) -> bool:
    return isinstance(value, sys.modules["jax"].core.Tracer)


def report(arrays: Named, place: int) -> None:
    """Records a step now, or each time that the program that is being traced comes by."""
    if not arrays:
        return
    states = generators.hashes()
    if not any(is_traced(array) for _, _, array in arrays):
        _record(place, [array[:2] for array in arrays], states, False, *(array for _, _, array in arrays))
        return
    if any(type(array).__name__ == "BatchTracer" for _, _, array in arrays):
        recorder.note("JAX: a step within vmap is written as one step for each of its elements")
    recorder.note(
        "JAX: of a compiled step, the gradients are not observed, nor what Python's and NumPy's generators draw between"
    )
    arrays = [array for array in arrays if array[0] != "gradients" and not array[1].startswith(f"{place}.update.")]
    jax, axes = sys.modules["jax"], shared_axes()
    if axes:  # each device comes by, with a share of the batch
        recorder.note("JAX: of devices that share a step, the first one of each process is observed, and no batch")
        arrays = [array for array in arrays if array[0] not in ("batch", "generator")]
    arrays = [(channel, name, hashing.key_data(array)) for channel, name, array in arrays]
    host = functools.partial(_record, place, [array[:2] for array in arrays], states, True)
    if axes:
        host, index = functools.partial(_if_first, host), jax.lax.axis_index(axes)
        jax.debug.callback(host, index, *(array for _, _, array in arrays))
    else:
        jax.debug.callback(host, *(array for _, _, array in arrays))


def shared_axes() -> tuple[Any, ...]:
    """The axes of devices, of shard_map or pmap, within which a program is being traced; JAX tells them within."""
    try:
        return tuple(sys.modules["jax._src.core"].get_axis_env().axis_sizes)
    except (AttributeError, KeyError):
        return ()


def _if_first(host: Any, index: Any, *values: Any) -> None:
    """Only of the first device of this process; devices of several processes are counted one process after another."""
    jax = sys.modules["jax"]
    first = jax.devices().index(jax.local_devices()[0]) if jax.process_count() > 1 else 0
    if int(index) == first:
        host(*values)


@recorder.quietly
def _record(place: int, names: list[tuple[str, str]], states: dict[str, str], traced: bool, *values: Any) -> None:
    """Counts the step, and writes its line where it is due.

    `states` are those of the generators before this step; of a compiled one, before it was traced for its first time.
    """
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
        seen: recorder.Hashes = {"generator": dict(states) if first or not traced else {}}
        for (channel, name), value in zip(names, values):
            if channel != INITIAL or first:
                seen.setdefault(channel, {})[name] = hashing.of_numpy(numpy.asarray(value))
        if number == 1:
            to.step(0, {INITIAL: seen.pop(INITIAL, {}), "generator": seen["generator"]})
        to.step(number, seen)
