"""Steps of Optax and Equinox in JAX.

A callback is put into the program wherever updates are applied by Optax, which Flax uses, or by Equinox. It is part of
what XLA compiles, so each step reports, also in jit and in scan, from donated buffers. It gets NumPy's view of the
arrays and calls nothing of JAX: that could wait for the very program that waits for it.

Of a compiled step it takes what the program has as an input or as a result anyway. What lies between, as gradients, XLA
never writes to memory as it stands: to ask for it changes how operations are fused, and so bits.
"""

import dataclasses
import functools
import os
import re
import sys
from typing import Any, Optional

from . import (
    calls,
    compiled,
    equinox_calls,
    generators,
    hashing,
    jax_modules,
    jax_passes,
    memory,
    module_calls,
    nnx_calls,
    recorder,
    scalars,
    traces,
    trees,
)
from .recorder import CHANGED, INITIAL, Arrays

NO_BATCH = "JAX: batches are observed only where they are arguments of a compiled step"
VMAP = "JAX: a step within vmap is written as one step for each of its elements"
COMPILED = (
    "JAX: of a compiled step, the gradients are not observed, nor what Python's and NumPy's generators draw between"
)
EQUINOX = re.compile(r"dynamic_(?:no)?donate\['(first|fun|rest)'\]\[(\d+)\]")  # an array that filter_jit passes on
WRAPPED = {"first": "first argument", "fun": "function", "rest": "arguments"}
DEVICES = (
    "JAX: of devices that share a step by shard_map or pmap, the first one of each process is observed, and no batch: "
    "of an array that they divide, this is a part"
)

TRAIN_STATE = ("step", "apply_fn", "params", "tx", "opt_state")  # the fields of Linen's class itself

last_update: list[Any] = []  # from the last Optax optimizer called: updates, gradients, new state, all its arguments
state_beside: Arrays = []  # from the step that Flax takes: the state beside its weights
module_paths: list[str] = []  # paths of all variables of the NNX module that takes this step, in JAX's order
watched_updates: dict[Any, Any] = {}  # by the function of each Optax optimizer: the one that observes it
indices: dict[tuple[Any, ...], int] = {}  # numbers of optimizers, which differ in their weights' names and shapes
started: set[tuple[int, int]] = set()  # process and index of those whose first step was written


def after_jax(jax: Any) -> None:
    recorder.add_framework(jax)
    if module_calls.steps:
        jax_modules.watch(jax)
    compiled.watch(jax)


def after_optax(optax: Any) -> None:
    _watch_updates(optax)
    kind = optax.GradientTransformation
    field = kind.update
    kind.update = property(lambda optimizer: _watch_optimizer(field.__get__(optimizer, kind)))


def after_equinox(equinox: Any) -> None:
    _watch_updates(equinox)
    equinox_calls.watch(equinox)


def after_flax_nnx(nnx: Any) -> None:
    _watch_state(nnx.Optimizer, "update", _state_of_module)
    nnx_calls.watch(nnx)


def after_flax_training_train_state(training: Any) -> None:
    _watch_state(training.TrainState, "apply_gradients", _state_of_train_state)


def _watch_state(kind: Any, name: str, look: Any) -> None:
    """Observes a method of Flax that takes a step: it knows what state there is beside the weights."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        look(self, *args)
        try:
            return method(self, *args, **kwargs)
        finally:
            state_beside.clear()
            module_paths.clear()

    setattr(kind, name, watched)


@recorder.never_raise
def _state_of_module(optimizer: Any, module: Any, *_: Any) -> None:
    """Keeps all variables of a module of NNX that are not trained: BatchStat, RngState, one's own."""
    nnx = sys.modules["flax.nnx"]
    pure = getattr(nnx, "as_pure", _same)  # in older versions the leaves are pytrees themselves
    module = getattr(optimizer, "model", module)
    module_paths[:] = [path for _, path, _ in _arrays("", pure(nnx.state(module)))]
    _, random, others = nnx.state(module, optimizer.wrt, nnx.RngState, ...)
    state_beside[:] = _arrays("generator", pure(random)) + _arrays("buffers", pure(others))


def _same(value: Any) -> Any:
    return value


@recorder.never_raise
def _state_of_train_state(state: Any, *_: Any) -> None:
    """Keeps what a class derived from Linen's TrainState adds, such as `batch_stats`."""
    fields = [field.name for field in dataclasses.fields(state) if field.name not in TRAIN_STATE]
    state_beside[:] = [array for name in fields for array in _arrays("buffers", getattr(state, name), f"{name}.")]


def _watch_updates(library: Any) -> None:
    recorder.add_framework(library)
    apply_updates = library.apply_updates

    @functools.wraps(apply_updates)
    def watched(params: Any, updates: Any) -> Any:
        result = apply_updates(params, updates)
        _observe_step(params, updates, result)
        return result

    library.apply_updates = watched


def _watch_optimizer(update: Any) -> Any:
    """Wrap an optimizer's update. One optimizer gets one function, since jit keeps its programs by function."""

    @functools.wraps(update)
    def watched(gradients: Any, *args: Any, **kwargs: Any) -> Any:
        result = update(gradients, *args, **kwargs)
        pair = isinstance(result, tuple) and len(result) == 2
        last_update[:] = [result[0], gradients, result[1], (gradients, args, kwargs)] if pair else []
        return result

    return watched_updates.setdefault(update, watched)


@recorder.never_raise
def _observe_step(params: Any, updates: Any, result: Any) -> None:
    """Reports a step's arrays, with the gradients and the state that led to these updates, if no other did."""
    arrays = _arrays(INITIAL, params) + _arrays("optimizer", updates, "update.") + _arrays("weights", result)
    inputs: Arrays = []
    if last_update and last_update[0] is updates:
        _, gradients, state, arguments = last_update
        arrays += _arrays("gradients", gradients) + _arrays("optimizer", state, "state.")
        inputs = _program_inputs(_arrays("", arguments) + arrays)
    last_update.clear()
    if not any(_is_traced(array) for _, _, array in arrays + state_beside):
        arrays += state_beside
    if not inputs:
        recorder.note(NO_BATCH)
    key = tuple((name, *array.shape) for channel, name, array in arrays if channel == "weights")
    index = indices.setdefault(key, len(indices))
    report([(channel, f"{index}.{name}", array) for channel, name, array in arrays] + inputs, index)


def _program_inputs(known: Arrays) -> Arrays:
    """Inputs of the program that is being traced, beside the weights and the optimizer's state.

    An argument of its own is the batch, or a key, or state, as Haiku's: `traces` finds that once all of it is traced.
    What lies beside the weights, as BatchNorm's averages in Flax' TrainState and in the modules of NNX, is state: buffers,
    as they are before the step.
    JAX says only within where a program's arguments are, and may do so elsewhere in another version: then nothing.
    """
    tracers = [array for _, _, array in known if _is_traced(array)]
    weights = {id(array) for channel, _, array in known if channel == INITIAL}
    try:
        trace = tracers[-1]._trace
        names, variables = [str(name) for name in trace.frame.debug_info.arg_names], trace.frame.invars
        if len(names) != len(variables):
            return []
        own = {id(tracer.val): id(tracer) in weights for tracer in tracers if tracer._trace is trace}
        taken: dict[str, bool] = {}  # by argument: True if it contains weights
        for name, variable in zip(names, variables):
            if id(variable) in own:
                taken[_argument(name)] = taken.get(_argument(name), False) or own[id(variable)]
        inputs: Arrays = []
        for name, variable in zip(names, variables):
            beside = taken.get(_argument(name))
            channel = _channel(name, variable.aval, beside) if id(variable) not in own else None
            if channel is not None:
                together = [other for other in names if beside and _argument(other) == _argument(name)]
                inputs.append((channel, _path(name, together), type(tracers[-1])(trace, variable.aval, variable)))
        return inputs
    except (AttributeError, IndexError, TypeError):
        return []


def _argument(name: str) -> str:
    """The argument that an array is a part of: `state` of `state.params['bias']`. Equinox' wrapper has all in one."""
    return name if name.startswith("dynamic") else name.replace("[", ".").partition(".")[0]


def _path(name: str, of_argument: list[str]) -> str:
    """`net.n.mean` of `net.states[0][5]`, where the argument is the module of NNX that is trained, as a whole.

    The arrays of what Equinox compiles have no names: `arguments.1` is the second of those after the first argument.
    """
    wrapped = EQUINOX.fullmatch(name)
    if wrapped:
        return f"{WRAPPED[wrapped.group(1)]}.{wrapped.group(2)}"
    if not of_argument or len(of_argument) != len(module_paths):
        return name
    return f"{_argument(name)}.{module_paths[of_argument.index(name)]}"


def _channel(name: str, aval: Any, beside_weights: Optional[bool]) -> Optional[str]:
    """The channel of an input; none (an empty one) of a count, unless it turns out to be a part of state that comes back.

    None of what an optimizer has beside its state.

    `beside_weights`: whether its argument holds weights; None where it holds neither those nor an optimizer's state.
    """
    if beside_weights is None:
        if aval.shape or trees.is_key(aval):
            return trees.given_channel(aval)
        return None if _argument(name) == name else ""
    if not beside_weights or name.endswith(".step"):
        return None
    return trees.state_channel(aval)


def _arrays(channel: str, tree: Any, prefix: str = "") -> Arrays:
    """The arrays of a tree, each under its path: `layers.0.weight`."""
    return [(channel, prefix + path, leaf) for path, leaf in trees.arrays(tree)]


def _is_traced(value: Any) -> bool:
    return isinstance(value, sys.modules["jax"].core.Tracer)


def report(arrays: Arrays, index: int) -> None:
    """Records a step now, or each time that the program that is being traced comes by."""
    calls.library_steps = True
    if not arrays:
        return
    states = generators.hashes()
    if not any(_is_traced(array) for _, _, array in arrays):
        if module_calls.steps:  # what a compiled gradient reports belongs to this step
            sys.modules["jax"].effects_barrier()
        _record(index, [array[:2] for array in arrays], states, False, *(array for _, _, array in arrays))
        if module_calls.steps:
            jax_passes.flush()
        return
    if any(type(array).__name__ == "BatchTracer" for _, _, array in arrays):
        recorder.note(VMAP)
    recorder.note(COMPILED)
    arrays = [array for array in arrays if array[0] != "gradients" and not array[1].startswith(f"{index}.update.")]
    jax, axes = sys.modules["jax"], _device_axes()
    if axes:  # each device calls this, with a share of the batch
        recorder.note(DEVICES)
        arrays = [array for array in arrays if array[0] not in ("batch", "generator", "buffers", "")]
    names = [array[:2] for array in arrays]
    traces.remember(names, arrays)
    callback = functools.partial(_record, index, names, states, True)
    values = [memory.key_data(array) for _, _, array in arrays]
    if axes:
        callback = functools.partial(_if_first, callback)
        values.insert(0, jax.lax.axis_index(axes))
    jax.debug.callback(callback, *values, ordered=jax_modules.staged and not axes)


def _device_axes() -> tuple[Any, ...]:
    """The axes of devices, of shard_map or pmap, within which a program is being traced; JAX says them within."""
    try:
        return tuple(sys.modules["jax._src.core"].get_axis_env().axis_sizes)
    except (AttributeError, KeyError):
        return ()


@recorder.never_raise
def _if_first(callback: Any, device: Any, *values: Any) -> None:
    """Only of the first device of this process; devices of several processes are counted one process after another."""
    jax = sys.modules["jax"]
    first = jax.devices().index(jax.local_devices()[0]) if jax.process_count() > 1 else 0
    if int(device) == first:
        callback(*values)


@recorder.never_raise
def _record(index: int, names: list[tuple[str, str]], states: dict[str, str], traced: bool, *values: Any) -> None:
    """Counts the step, and writes its line where it is due.

    `states` are those of the generators before this step; of a compiled one, before it was traced for its first time.
    """
    active = recorder.active
    if active is None:
        return
    with active.lock:
        number = active.count()
        first = (os.getpid(), index) not in started
        started.add((os.getpid(), index))
        if not active.is_due(number) and not first:
            return
        hashes: recorder.Hashes = {"generator": dict(states) if first or not traced else {}}
        hashes["scalars"] = scalars.of_callbacks()
        before = INITIAL if first else CHANGED if active.looks_between else ""
        channels = [before if channel == INITIAL else channel for channel, _ in names]
        arrays = [(channel, name, value) for channel, (_, name), value in zip(channels, names, values) if channel]
        for channel, codes in hashing.hash_arrays(arrays, "JAX: {1} ({0})").items():
            hashes.setdefault(channel, {}).update(codes)
        if first and active.looks_between:
            hashes[CHANGED] = {}
        active.step(number, hashes)
