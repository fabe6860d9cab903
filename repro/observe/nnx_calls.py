"""Updates by hand in Flax NNX: calls of nnx.jit.

A function is a step if a Param of a module that it is given has another value after a call. All is hashed outside of the
compiled program.
"""

import functools
import sys
import weakref
from typing import Any, Optional

from . import calls, generators, jax_lines, recorder, traces, trees

KINDS = ("JitWrapped", "SimpleJitWrapped")  # the types that nnx.jit returns: by graph, and by tree
OTHER_FLAX = "JAX: updates by hand within nnx.jit are not observed in this version of Flax"


class Updates:
    """A function that nnx.jit compiled."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begins as if no call had been made."""
        self.calls = 0
        self.index: Optional[int] = None  # the number of a function that is a step
        self.last: dict[str, Any] = {}  # by path: weak references to the weights after the last step


functions: Any = weakref.WeakKeyDictionary()  # Updates by the object that nnx.jit returned


def watch(nnx: Any) -> None:
    """Observes the calls of what nnx.jit returns."""
    module = sys.modules.get("flax.nnx.transforms.compilation")
    kinds = [getattr(module, name) for name in KINDS if hasattr(module, name)]
    for kind in kinds:
        kind.__call__ = _watched(kind.__call__)
    if not kinds:
        recorder.note(OTHER_FLAX)


def _watched(call: Any) -> Any:
    @functools.wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = None if calls.library_steps else _before(self, args, kwargs)
        result = call(self, *args, **kwargs)
        if begun is not None:
            _after(self, begun)
        return result

    return watched


@recorder.never_raise
def _before(compiled: Any, args: Any, kwargs: Any) -> Optional[dict[str, Any]]:
    """The modules that a call is given, and the hashes of all but their weights. None within a trace."""
    active, function = recorder.active, functions.setdefault(compiled, Updates())
    if active is None or (function.index is None and function.calls >= calls.TRIES) or calls.is_traced((args, kwargs)):
        return None
    if function.index is not None and not active.is_due(active.steps + 1):
        return {}
    arguments = traces.arguments(compiled.fun, args, kwargs)
    variables = {name: _variables(value, name) for name, value in arguments.items()}
    if calls.is_traced([[leaf for _, _, leaf in own] for own in variables.values()]):  # a module that is not a tree
        return None
    begun: dict[str, Any] = {"modules": {name: value for name, value in arguments.items() if variables[name]}}
    if function.index is None:
        begun["weights"] = _weights(variables)
    elif active.looks_between:
        replaced = [each for each in _trained(variables) if function.last.get(each[0], trees.nothing)() is not each[1]]
        begun["between"] = {each.path: each.code for each in jax_lines.hashed(replaced)}
    rest = [array for name, value in arguments.items() if not variables[name] for array in trees.arrays(value, name)]
    state = [(path, leaf) for own in variables.values() for path, trained, leaf in own if not trained]
    begun["line"] = {"generator": generators.hashes(), "batch": {}, "buffers": {}, "scalars": {}}
    begun["state"] = jax_lines.hashed(state)
    for each in jax_lines.hashed(rest):
        begun["line"][each.given][each.path] = each.code
    for name, value in arguments.items():
        if not variables[name]:
            begun["line"]["scalars"].update(jax_lines.numbers(name, value))
    return begun


@recorder.never_raise
def _after(compiled: Any, begun: dict[str, Any]) -> None:
    function, active = functions[compiled], recorder.active
    function.calls += 1
    if calls.library_steps or active is None:
        return
    if not begun:
        active.count()
        return
    variables = {name: _variables(value, name) for name, value in begun["modules"].items()}
    weights, line = _weights(variables), begun["line"]
    if function.index is None:
        if weights == begun["weights"]:
            return
        function.index = len(calls.functions)
        calls.functions.append(weakref.ref(function))
        line[recorder.INITIAL] = _numbered(function.index, begun["weights"])
    if active.looks_between:
        line[recorder.CHANGED] = _numbered(function.index, begun.get("between", {}))
        trained = _trained(variables)
        function.last = dict(zip([path for path, _ in trained], trees.references(trained)))
    for each in begun["state"]:
        line[each.state][f"{function.index}.{each.path}"] = each.code
    jax_lines.write(function.index, line, _numbered(function.index, weights))


def _weights(variables: dict[str, Any]) -> dict[str, str]:
    """Hashes of the modules' Params, by path."""
    return {each.path: each.code for each in jax_lines.hashed(_trained(variables))}


def _trained(variables: dict[str, Any]) -> list[tuple[str, Any]]:
    """The modules' Params, each with its path."""
    return [(path, leaf) for own in variables.values() for path, is_param, leaf in own if is_param]


def _numbered(index: int, codes: dict[str, str]) -> dict[str, str]:
    return {f"{index}.{path}": code for path, code in codes.items()}


def _variables(value: Any, name: str) -> list[tuple[str, bool, Any]]:
    """Path, whether it is a Param, and value of each variable of a module, or of several in a list."""
    nnx = sys.modules["flax.nnx"]
    try:
        flat = nnx.to_flat_state(nnx.state([value]))
    except Exception:  # no module
        return []
    of_kind = [(path[1:], variable, getattr(variable, "type", None)) for path, variable in flat]
    return [
        (".".join(map(str, (name, *path))), issubclass(kind, nnx.Param), array)
        for path, variable, kind in of_kind
        if isinstance(kind, type) and hasattr(array := _array(variable), "dtype")
    ]


def _array(variable: Any) -> Any:
    return variable.get_value() if hasattr(variable, "get_value") else variable.value
