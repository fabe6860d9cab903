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

from . import recorder, trees

UNDECIDED = ("batch", trees.GENERATOR, "")  # channels of an input that may still come back
TRACED, FUNCTION = "__repro_traced__", "__repro_function__"  # attributes of the functions that jax.jit returns

under_way = threading.local()  # .traces: those of this thread, the innermost last
gradients = False  # True once the program took a gradient
known: dict[int, "Traced"] = {}  # by id of a function of the program: the one that jax.jit gets for it

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


def arguments(function: Any, args: Any, kwargs: Any, left_out: Any = ()) -> dict[str, Any]:
    """The arguments by their names, as far as its signature says; without the parameters that a call leaves out."""
    try:
        whole = inspect.signature(function)
        given = [each for name, each in whole.parameters.items() if name not in left_out]
        return dict(whole.replace(parameters=given).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{str(place): value for place, value in enumerate(args)}, **kwargs}


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
    named = [array for name, value in given.items() for array in trees.arrays(value, name)]
    traced.trained |= {path for path, leaf in named if id(leaf) in differentiated}
    if not trace.inputs:
        return
    back = {
        id(getattr(leaf, "val", None)): leaf
        for (name,) in trees.counterparts(given, result)
        for leaf in leaves(given[name])
        if _is_state(given[name])
    }
    for variable, channels, place in trace.inputs:
        if id(variable) in back:
            channels[place] = (trees.state_channel(back[id(variable)]), channels[place][1])


def _is_state(value: Any) -> bool:
    """True for state of the shapes of a result: a tree, or keys. A single array may be a batch or a prediction."""
    return not hasattr(value, "dtype") or (trees.may_be_key(value) and bool(value.shape))


def _watch_gradient(grad: Any, call: Any) -> Any:
    @functools.wraps(grad)
    def watched(fun: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
        made = grad(fun, argnums, *args, **kwargs)

        @functools.wraps(made)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            _differentiate(argnums, args)
            return call(fun, argnums, made, args, kwargs)

        return gradient

    return watched


@recorder.never_raise
def _differentiate(argnums: Any, args: Any) -> None:
    global gradients
    gradients = True
    trace = innermost()
    if trace is not None:
        places = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        trace.differentiated += sys.modules["jax"].tree_util.tree_leaves([args[place] for place in places])


def watch(jax: Any, call: Any) -> None:
    """Observes the gradients that the program takes; `call(fun, argnums, gradient, args, kwargs)` makes each call."""
    jax.grad, jax.value_and_grad = _watch_gradient(jax.grad, call), _watch_gradient(jax.value_and_grad, call)
