"""Parts of a JAX training with Optax, in functions that `jax.jit` or `nnx.jit` compiled.

State flows through arguments, so a part is put back in the arguments of a call, outside of the compiled program: of each
call that is given an optimizer's state, until the first step was taken. Objects of Flax NNX are changed in place.
"""

import dataclasses
import functools
import sys
from collections.abc import Iterator
from typing import Any

from ..observe import calls, compiled, recorder, trees
from ..observe import jax as observed
from . import arrays, controls, generators
from .controls import Part
from .values import Array, Items

STEP = "step 0"
COUNT = "count"  # the last part of the path of a counter in Optax' states
TRAIN_STATE = (*observed.TRAIN_STATE, "params")

Leaves = dict[str, Any]
"""Arrays by their path."""


def after_jax(jax: Any) -> None:
    """Looks at the arguments of compiled functions."""
    call = compiled.CompiledFunction.__call__

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        args, kwargs = before_call(args, kwargs)
        return call(self, *args, **kwargs)

    compiled.CompiledFunction.__call__ = __call__  # type: ignore[method-assign]


def after_flax_nnx(nnx: Any) -> None:
    """Looks at the objects that a function of nnx.jit is given."""
    module = sys.modules.get("flax.nnx.transforms.compilation")
    for name in ("JitWrapped", "SimpleJitWrapped"):
        kind = getattr(module, name, None)
        if kind is not None:
            kind.__call__ = _watched(kind.__call__, nnx)


def _watched(call: Any, nnx: Any) -> Any:
    @functools.wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        before_nnx(nnx, args, kwargs)
        return call(self, *args, **kwargs)

    return watched


def _comes() -> bool:
    """True until the first step of a compiled function was taken; callbacks that are under way come first."""
    recording = recorder.active
    if recording is None or controls.active is None:
        return False
    if STEP in controls.active.come:
        sys.modules["jax"].effects_barrier()
    controls.active.is_first(STEP)
    return not recording.steps


def before_call(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call, those of a training step with a part put back."""
    changed = _put_back(args, kwargs)
    return changed if changed is not None else (args, kwargs)


@controls.never_raise
def _put_back(args: Any, kwargs: Any) -> Any:
    jax = sys.modules["jax"]
    states = _states(jax, (args, kwargs))
    if not any(states) or calls.is_traced((args, kwargs)) or not _comes():
        return None
    leaves, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    named = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    changed = dict(named)
    groups: dict[str, list[str]] = {}
    extra = _beside((args, kwargs))
    for path, leaf in named.items():
        part = _part_of(path, leaf, states, extra)
        if part and (hasattr(leaf, "dtype") or type(leaf) is int):  # the step of a new TrainState is a number
            groups.setdefault(part, []).append(path)
    parts = generators.parts()
    for name, paths in groups.items():
        parts[name] = _of_leaves(jax, changed, paths)
    assert controls.active is not None
    controls.active.meet(STEP, parts)
    return jax.tree_util.tree_unflatten(tree, list(changed.values()))


def _states(jax: Any, tree: Any) -> tuple[str, ...]:
    """The paths of the states of Optax in a tree."""
    nodes, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_state)
    return tuple(jax.tree_util.keystr(path) for path, node in nodes if _is_state(node))


def _is_state(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields") and type(value).__module__.startswith("optax")


def _beside(trees: Any) -> dict[str, str]:
    """The step of Linen's TrainState, and the fields that a class of it adds, such as `batch_stats`: attribute and part."""
    jax = sys.modules["jax"]
    nodes = jax.tree_util.tree_leaves(trees, is_leaf=_has_fields)
    names = [field.name for node in nodes if _has_fields(node) for field in dataclasses.fields(node)]
    return {f".{name}": f"`{name}` of the state" for name in names if name == "step" or name not in TRAIN_STATE}


def _has_fields(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and hasattr(value, "opt_state") and hasattr(value, "params")


def _part_of(path: str, leaf: Any, states: tuple[str, ...], extra: dict[str, str]) -> str:
    """The name of the part that an array belongs to; empty of weights, and of what is given anew for each step."""
    if path.startswith(states):
        return "optimizer's counts" if path.endswith(f".{COUNT}") else "optimizer's slots"
    beside = next((name for field, name in extra.items() if field in path), "")
    if beside:
        return beside
    return "keys" if hasattr(leaf, "dtype") and trees.given_channel(leaf) == trees.GENERATOR else ""


def _of_leaves(jax: Any, named: Leaves, paths: list[str]) -> Part:
    """Arrays among the arguments; typed keys by their numbers."""

    def write(items: Items) -> None:
        for path in paths:
            if isinstance(items.get(path), Array):
                named[path] = _like(jax, arrays.numbers(items[path], named[path]), named[path])
            elif path in items:
                named[path] = items[path]

    def read() -> Items:
        return {path: named[path] if type(named[path]) is int else arrays.array(named[path]) for path in paths}

    return Part(read, write)


def _like(jax: Any, value: Any, like: Any) -> Any:
    """An array of JAX on the devices of another one, or a key of its kind."""
    if str(like.dtype).startswith("key<"):
        return jax.random.wrap_key_data(value, impl=jax.random.key_impl(like))
    return jax.device_put(value, like.sharding) if hasattr(like, "sharding") else value


@controls.never_raise
def before_nnx(nnx: Any, args: Any, kwargs: Any) -> None:
    """Puts a part back in the objects that a call is given, if an optimizer is among them."""
    objects = [value for value in (*args, *kwargs.values()) if isinstance(value, (nnx.Module, nnx.Optimizer))]
    if not any(isinstance(value, nnx.Optimizer) for value in objects) or not _comes():
        return
    groups: dict[str, dict[str, Any]] = {}
    for place, value in enumerate(objects):
        for path, variable in _variables(nnx, value):
            name = _nnx_part(nnx, path, variable, isinstance(value, nnx.Optimizer))
            if name:
                groups.setdefault(name, {})[f"{place}.{'.'.join(map(str, path))}"] = variable
    parts = generators.parts()
    parts.update({name: _of_variables(variables) for name, variables in groups.items()})
    assert controls.active is not None
    controls.active.meet(STEP, parts)


def _variables(nnx: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """The variables of an object with their paths; one that is held twice comes once."""
    taken: set[int] = set()
    for path, node in nnx.iter_graph(value):
        if isinstance(node, nnx.Variable) and id(node) not in taken and hasattr(_array(node), "dtype"):
            taken.add(id(node))
            yield path, node


def _array(variable: Any) -> Any:
    return variable.get_value() if hasattr(variable, "get_value") else variable.value


def _nnx_part(nnx: Any, path: Any, variable: Any, of_optimizer: bool) -> str:
    if isinstance(variable, nnx.RngState):
        return "generators of the modules"
    if of_optimizer and "opt_state" in path:
        return "optimizer's counts" if path[-1] == COUNT else "optimizer's slots"
    if of_optimizer and path[-1] == "step":
        return "step of the optimizer"
    return "" if isinstance(variable, nnx.Param) or of_optimizer else "buffers"


def _of_variables(variables: dict[str, Any]) -> Part:
    def write(items: Items) -> None:
        jax = sys.modules["jax"]
        for path, variable in variables.items():
            if path in items:
                value = _like(jax, arrays.numbers(items[path], _array(variable)), _array(variable))
                if hasattr(variable, "set_value"):
                    variable.set_value(value)
                else:
                    variable.value = value

    return Part(lambda: {path: arrays.array(_array(variable)) for path, variable in variables.items()}, write)
