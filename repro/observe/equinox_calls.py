"""Updates by hand in Equinox: calls of what `filter_jit` returns, also compiled ahead of time.

Its functions are given trees with arrays and whatever else, and return such. Equinox passes the arrays on to `jax.jit` as a
flat list, whose trace says which of them are weights.
"""

import functools
import sys
import weakref
from typing import Any

from . import calls, recorder, traces, trees

KINDS = (("equinox._jit", "_JitWrapper"), ("equinox._compile_utils", "Compiled"))
OTHER_EQUINOX = "JAX: updates by hand within filter_jit are not observed in this version of Equinox"
LISTS = ("dynamic_donate", "dynamic_nodonate", "dynamic")  # names of Equinox' arguments for jax.jit

functions: dict[int, "Calls"] = {}  # by id of what filter_jit returned, as long as that is alive


class Calls(calls.Calls):
    """The calls of a function that Equinox compiled."""

    def __init__(self, compiled: Any):
        self.signature = getattr(compiled, "_signature", None) or compiled.info[0]
        self.own = getattr(compiled, "_cached", None)
        self.order: list[list[str]] = [[], []]  # paths of all leaves of the first argument, and of the others
        self.places, self.paths = 0, set[str]()  # the number of places that gradients are taken of, and their paths
        super().__init__(None, getattr(self.own, traces.TRACED, None))

    def arguments(self, args: Any, kwargs: Any) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        named = {name: self.result(value) for name, value in bound.arguments.items()}
        tree = sys.modules["jax"].tree_util
        paths = {
            name: [f"{name}.{trees.name_of(path)}".rstrip(".") for path, _ in tree.tree_flatten_with_path(value)[0]]
            for name, value in bound.arguments.items()
        }
        names = sorted(paths, key=lambda name: (name in bound.kwargs, name if name in bound.kwargs else ""))
        ordered = [path for name in names for path in paths[name]]
        count = len(tree.tree_leaves(bound.args[:1]))
        self.order = [ordered[:count], ordered[count:]]
        return named

    def result(self, result: Any) -> Any:
        """The tree with its arrays alone."""
        equinox = sys.modules["equinox"]
        return equinox.filter(result, equinox.is_array)

    @property
    def trained(self) -> set[str]:
        """Equinox' lists hold a place for each leaf: `dynamic_nodonate.first.3` is the fourth of the first argument."""
        places = super().trained
        if len(places) == self.places:
            return self.paths
        self.places, self.paths = len(places), set()
        for path in places:
            argument, _, rest = path.partition(".")
            which, _, place = rest.partition(".")
            if argument in LISTS and which in ("first", "rest") and place.isdigit():
                order = self.order[which == "rest"]
                self.paths |= {*order[int(place) : int(place) + 1]}
        return self.paths


def watch(equinox: Any) -> None:
    """Observes the calls of what filter_jit returns."""
    kinds = [getattr(sys.modules.get(module), name, None) for module, name in KINDS]
    for kind in filter(None, kinds):
        kind.__call__ = _watched(kind.__call__)
    if kinds[0] is None:
        recorder.note(OTHER_EQUINOX)


def _watched(call: Any) -> Any:
    @functools.wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.make(_calls_of(self), functools.partial(call, self), args, kwargs)

    return watched


@recorder.never_raise
def _calls_of(compiled: Any) -> Calls:
    if id(compiled) not in functions:
        functions[id(compiled)] = Calls(compiled)
        weakref.finalize(compiled, functions.pop, id(compiled), None).atexit = False
    return functions[id(compiled)]
