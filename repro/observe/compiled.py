"""Functions that a JAX program compiles, also ahead of time, and gradients that it does not compile: their calls are met."""

import functools
import inspect
import weakref
from typing import Any

from . import calls, recorder, traces, trees

LIBRARIES = ("jax", "optax", "equinox", "flax", "haiku", "chex", "orbax", "keras")  # their own functions are not steps
EQUINOX_JIT, EQUINOX_GRADIENT = "equinox._jit", "equinox._ad"  # modules whose functions hold one of the program's

origins: Any = weakref.WeakKeyDictionary()  # by a stage of compiling ahead of time: the CompiledFunction that it is of
ahead: Any = weakref.WeakKeyDictionary()  # AheadOfTime by what `compile` returned
gradients: dict[Any, list["Gradient"]] = {}  # by the code of a function whose gradient is taken


class CompiledFunction:
    """A function that jax.jit or jax.pmap returned, with each of its calls observed."""

    def __init__(self, function: Any, static: Any = ()):
        functools.update_wrapper(self, function)
        self.function, self.static = function, static
        self.traced = getattr(function, traces.TRACED, None)
        if self.traced is not None:
            self.__wrapped__ = self.traced.__wrapped__
        self.observed = calls.Calls(function, self.traced)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return calls.make(self.observed, self.function, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["function"], name)

    def __reduce__(self) -> Any:
        return self.function.__reduce__()

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        made = self.function.lower(*args, **kwargs)
        _remember(made, self)
        return made

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        made = self.function.trace(*args, **kwargs)
        _remember(made, self)
        return made


class AheadOfTime(calls.Calls):
    """The calls of what `lower(...).compile()` made: static arguments are given to `lower` alone."""

    def __init__(self, compiled: Any):
        origin = origins.get(compiled)
        self.static = origin.static if origin is not None else ()
        super().__init__(*(origin.function, origin.traced) if origin is not None else (compiled,))

    def arguments(self, args: Any, kwargs: Any) -> dict[str, Any]:
        return traces.arguments(self.function, args, kwargs, self.static)


class Gradient(calls.Calls):
    """The calls of a gradient that the program does not compile. It holds the function weakly."""

    is_eager = True

    def __init__(self, function: Any, argnums: Any):
        super().__init__(weakref.ref(function))
        self.argnums = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
        self.paths: set[str] = set()

    def arguments(self, args: Any, kwargs: Any) -> dict[str, Any]:
        arguments = traces.arguments(self.function(), args, kwargs)
        named = [*arguments.items()]
        differentiated = [named[place] for place in self.argnums if -len(named) <= place < len(named)]
        self.paths = {path for name, value in differentiated for path, _ in trees.arrays(value, name)}
        return arguments

    @property
    def trained(self) -> set[str]:
        return self.paths


def watch(jax: Any) -> None:
    """Observes the functions that the program compiles from now on, and its gradients."""
    traces.watch(jax, _call_gradient)
    jax.jit, jax.pmap = _watched(jax.jit), _watched(jax.pmap)
    for kind, name in ((jax.stages.Traced, "lower"), (jax.stages.Lowered, "compile")):
        setattr(kind, name, _passed_on(getattr(kind, name)))
    call = jax.stages.Compiled.__call__

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        return calls.make(_calls_of(self), functools.partial(call, self), args, kwargs)

    jax.stages.Compiled.__call__ = __call__
    calls.watch()


@recorder.never_raise
def _calls_of(compiled: Any) -> Any:
    if compiled not in ahead:
        ahead[compiled] = AheadOfTime(compiled)
    return ahead[compiled]


def _watched(jit: Any) -> Any:
    @functools.wraps(jit)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not args:  # only options: a function that compiles
            made = jit(**kwargs)
            return made if hasattr(made, "lower") else lambda function: watched(function, **kwargs)
        if getattr(args[0], "__module__", None) == EQUINOX_JIT:
            return traces.compiled(jit, *args, **kwargs)
        if _is_of_library(args[0]):
            return jit(*args, **kwargs)
        return CompiledFunction(traces.compiled(jit, *args, **kwargs), _static(args[0], kwargs) or ())

    return watched


@recorder.never_raise
def _static(function: Any, options: dict[str, Any]) -> set[str]:
    """The names of the arguments that jax.jit takes as they are."""
    numbers, names = options.get("static_argnums"), options.get("static_argnames")
    static = {names} if isinstance(names, str) else {*(names or ())}
    try:
        parameters = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return static
    places = (numbers,) if isinstance(numbers, int) else numbers or ()
    return static | {parameters[place] for place in places if -len(parameters) <= place < len(parameters)}


@recorder.never_raise
def _remember(made: Any, origin: Any) -> None:
    """Remembers which function a stage of compiling ahead of time is of, or which stage it comes from."""
    origin = origin if isinstance(origin, CompiledFunction) else origins.get(origin)
    if origin is not None:
        origins[made] = origin


def _passed_on(method: Any) -> Any:
    """A method that makes the next stage of one."""

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        _remember(made, self)
        return made

    return wrapped


def _call_gradient(function: Any, argnums: Any, gradient: Any, args: Any, kwargs: Any) -> Any:
    """Makes a call of a gradient; one that is not compiled may be a step."""
    if traces.innermost() is not None or (
        _is_of_library(function) and getattr(function, "__module__", None) != EQUINOX_GRADIENT
    ):
        return gradient(*args, **kwargs)
    return calls.make(_gradient(function, argnums), gradient, args, kwargs)


@recorder.never_raise
def _gradient(function: Any, argnums: Any) -> Gradient:
    """The calls of a gradient of this function, or of an earlier one from the same place in the program, which is gone."""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", type(function))
    known = gradients.setdefault(code, [])
    alive = [each for each in known if each.function() is function]
    gone = [each for each in known if each.function() is None]
    for each in alive or gone[:1]:
        each.function = weakref.ref(function)
        return each
    known.append(Gradient(function, argnums))
    return known[-1]


def _is_of_library(function: Any) -> bool:
    """True if a library compiled its own function, or wrapped the program's in an object of its own, as NNX does."""
    modules = (getattr(each, "__module__", None) for each in (function, type(function)))
    return any(str(module).partition(".")[0] in LIBRARIES for module in modules)
