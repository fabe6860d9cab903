"""Modules of Flax' Linen and NNX, Haiku and Equinox: what each library calls them, and how their calls are met.

Linen and Haiku have interceptors. The classes of NNX and Equinox get another `__call__` for the time of one trace.
"""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

from . import module_calls, trees

TRAINS = ("training", "train", "is_training")  # names of arguments and attributes that say so
TESTS = ("deterministic", "inference", "use_running_average")  # and that say the contrary

Leaves = list[tuple[str, Any]]  # name, array


class Called(NamedTuple):
    """A module as it is when it is called."""

    path: Optional[str]  # None where only its library's tree of modules says it
    settings: dict[str, Any]
    weights: Leaves
    buffers: Leaves


Around = Callable[[Callable[..., Any], Any, Any, Any, Callable[[Any], Optional[Called]]], Any]
"""Makes a call: what is called, the module, its arguments by place and by name, and what describes the module."""


def meet(stack: contextlib.ExitStack, around: Around) -> None:
    """Hands calls of modules to `around` until the stack is closed: of Linen and Haiku in this thread, of others in all."""
    for name, describe in (("flax.linen", _linen), ("haiku", _haiku)):
        intercept = getattr(sys.modules.get(name), "intercept_methods", None)
        if intercept is not None:
            stack.enter_context(intercept(_interceptor(around, describe)))
    for name, describe in (("flax.nnx", _nnx), ("equinox", _equinox)):
        root = getattr(sys.modules.get(name), "Module", None)
        for kind in _subclasses(root) if root is not None else ():
            own = vars(kind)["__call__"]
            type.__setattr__(kind, "__call__", _method(own, around, describe))
            stack.callback(type.__setattr__, kind, "__call__", own)


def _interceptor(around: Around, describe: Any) -> Any:
    def intercept(proceed: Any, args: Any, kwargs: Any, context: Any) -> Any:
        if context.method_name != "__call__":
            return proceed(*args, **kwargs)
        return around(proceed, context.module, args, kwargs, describe)

    return intercept


def _subclasses(root: Any) -> list[Any]:
    """The classes below it with a `__call__` of their own, without those that Equinox' transformations are made of."""
    seen, rest = {root}, [root]
    while rest:
        new = set(rest.pop().__subclasses__()) - seen
        seen |= new
        rest += new
    return [kind for kind in seen if "__call__" in vars(kind) and not _is_inner(str(kind.__module__))]


def _is_inner(module: str) -> bool:
    return module.startswith("equinox.") and not module.startswith("equinox.nn.")


def _method(own: Any, around: Around, describe: Any) -> Any:
    @functools.wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(own.__get__(self, type(self)), self, args, kwargs, describe)

    return call


def _linen(module: Any) -> Optional[Called]:
    if module.is_initializing():
        return None
    held = {kind: _own(group) for kind, group in module.variables.items()}
    fields = {each.name: getattr(module, each.name, None) for each in dataclasses.fields(module)}
    settings = {name: value for name, value in fields.items() if name not in ("parent", "name")}
    buffers = [leaf for kind, leaves in held.items() if kind != "params" for leaf in leaves]
    return Called(".".join(module.path), settings, held.get("params", []), buffers)


def _own(group: Any) -> Leaves:
    """The arrays that lie directly in a module's part of a collection: its submodules' are in dicts of their own."""
    return [(str(name), value) for name, value in group.items() if module_calls.is_array(value)]


def _haiku(module: Any) -> Optional[Called]:
    if sys.modules["haiku"].running_init():
        return None
    path = module.module_name
    weights, state = (_of_module(path, held) for held in (module.params_dict(), module.state_dict()))
    settings = {name: value for name, value in vars(module).items() if name not in ("name", "module_name")}
    return Called(path, settings, weights, state)


def _of_module(path: str, held: dict[str, Any]) -> Leaves:
    """The arrays of `mlp/linear`, named `mlp/linear/w`, without those of modules within it."""
    parts = [(*name.rpartition("/"), value) for name, value in held.items()]
    return [(last, value) for first, _, last, value in parts if first == path]


def _nnx(module: Any) -> Called:
    nnx = sys.modules["flax.nnx"]
    variables = {name: value for name, value in vars(module).items() if isinstance(value, nnx.Variable)}
    settings = {name: value for name, value in vars(module).items() if name not in variables}
    weights: Leaves = []
    buffers: Leaves = []
    for name, variable in variables.items():
        if not isinstance(variable, nnx.RngState):
            own = weights if isinstance(variable, nnx.Param) else buffers
            own += [(joined(name, path), leaf) for path, leaf in trees.arrays(_value(variable))]
    return Called(None, settings, weights, buffers)


def _equinox(module: Any) -> Called:
    fields = {each.name: getattr(module, each.name, None) for each in dataclasses.fields(module)}
    own = [(path, leaf) for path, leaf in _parts(module) if module_calls.is_array(leaf)]
    weights = [(path, leaf) for path, leaf in own if trees.is_float(leaf)]
    return Called(None, fields, weights, [(path, leaf) for path, leaf in own if not trees.is_float(leaf)])


def _parts(module: Any) -> Leaves:
    """The arrays and modules in a module of Equinox, without what lies in these."""
    kind = sys.modules["equinox"].Module
    flat, _ = sys.modules["jax"].tree_util.tree_flatten_with_path(
        module, is_leaf=lambda node: node is not module and isinstance(node, kind)
    )
    return [(trees.name_of(keys), part) for keys, part in flat]


class Paths:
    """Paths of modules of NNX and Equinox, which do not know theirs, in one trace."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[str, Any]] = {}  # by id: a module, which is kept alive, and its path
        self.taken: set[str] = set()  # those that were called
        self.trained: dict[int, str] = {}  # by id of an array: its path in what is differentiated
        self.is_known = False  # True once a module had arrays that are differentiated
        self.others: list[Any] = []  # the structures of outermost modules that are not differentiated

    def learn(self, differentiated: Any) -> None:
        """Takes the weights that the trace begins with."""
        self.trained = {id(leaf): path for path, leaf in named(differentiated)}

    def of(self, module: Any, stack: list[Any]) -> str:
        """The path of a module that is called: in the outermost one that is called, and of that one in what is differentiated.

        One that was made anew of its arrays, as by `filter_vmap`, is the first one in its caller that has the same structure
        and was not called yet.
        """
        if id(module) not in self.known:
            base = self._within(stack[-1], module) if stack else self._prefix(module)
            for path, each in submodules(module):
                self.known.setdefault(id(each), (joined(base, path), each))
        path = self.known[id(module)][0]
        self.taken.add(path)
        return path

    def _within(self, parent: Any, module: Any) -> str:
        structure, base = sys.modules["jax"].tree_util.tree_structure, self.known.get(id(parent), ("",))[0]
        others = [(path, each) for path, each in submodules(parent) if each is not parent]
        alike = [joined(base, path) for path, each in others if structure(each) == structure(module)]
        last = alike[-1] if alike else joined(base, type(module).__name__)
        return next((path for path in alike if path not in self.taken), last)

    def _prefix(self, module: Any) -> str:
        """The path of an outermost module: of its weights in what is differentiated, by identity or else by name.

        Of a module that is not differentiated `1:`, `2:`; its class if it has no weights.
        """
        own = {joined(path, name): leaf for path, each in submodules(module) for name, leaf in _weights(each)}
        for name, leaf in own.items():
            trained = self.trained.get(id(leaf), "")
            if trained == name or trained.endswith(f".{name}"):
                self.is_known = True
                return trained[: -len(name)].rstrip(".")
        if not own:
            return type(module).__name__
        if not self.is_known and own.keys() <= {*self.trained.values()}:  # JAX has handed its arrays on as others
            return ""
        structure = sys.modules["jax"].tree_util.tree_structure(module)
        self.others += [structure] if structure not in self.others else []
        return f"{1 + self.others.index(structure)}:"


def joined(*names: str) -> str:
    """A path of those names that are not empty: `layers.0`, `1:layers.0`."""
    return ".".join(filter(None, names)).replace(":.", ":")


def _weights(module: Any) -> Leaves:
    return (_nnx(module) if _is_nnx(module) else _equinox(module)).weights


def _is_nnx(module: Any) -> bool:
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(module, nnx.Module)


def submodules(root: Any) -> list[tuple[str, Any]]:
    """A module of NNX or Equinox, and those in it, each with its path."""
    if not _is_nnx(root):
        return [("", root), *_below(root, "")]
    inner = [(".".join(map(str, path)), each) for path, each in sys.modules["flax.nnx"].iter_modules(root) if path]
    return [("", root), *inner]


def _below(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The modules of Equinox within another one, at any depth."""
    for name, part in _parts(module):
        if isinstance(part, sys.modules["equinox"].Module):
            own = joined(path, name)
            yield own, part
            yield from _below(part, own)


def named(tree: Any) -> Leaves:
    """The arrays of a tree of weights or gradients under the names that the steps give them, without what NNX wraps them in."""
    nnx, tree_util = sys.modules.get("flax.nnx"), sys.modules["jax"].tree_util
    if nnx is None:
        return trees.arrays(tree)
    states = getattr(sys.modules.get("flax.nnx.extract"), "NodeStates", ())
    tree = tree_util.tree_map(
        lambda node: node.state if isinstance(node, states) else node,
        tree,
        is_leaf=lambda node: isinstance(node, states),
    )
    flat, _ = tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, nnx.Variable))
    return [
        (joined(trees.name_of(keys), path), array)
        for keys, leaf in flat
        for path, array in trees.arrays(_value(leaf) if isinstance(leaf, nnx.Variable) else leaf)
    ]


def _value(variable: Any) -> Any:
    return variable.get_value() if hasattr(variable, "get_value") else variable.value


def training(settings: dict[str, Any], kwargs: dict[str, Any]) -> Optional[bool]:
    """Whether a module trains, as its arguments or else its attributes say; None where neither does."""
    for given in (kwargs, settings):
        for names, as_it_is in ((TRAINS, True), (TESTS, False)):
            for name in names:
                if isinstance(given.get(name), bool):
                    return bool(given[name]) == as_it_is
    return None
