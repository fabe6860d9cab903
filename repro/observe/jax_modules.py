"""Calls of modules in JAX, in the steps that `record --modules` names: what is traced of a gradient.

The outermost `jax.grad` or `jax.value_and_grad` is traced by itself, and what it becomes is run in the program's place.
Reports in it hand out the arrays: a start, calls, the loss, the gradients. `jax_passes` takes them.
"""

import contextlib
import functools
import sys
import threading
from typing import Any

from . import jax_libraries, jax_passes, jax_reports, memory, module_calls, recorder, trees
from .jax_passes import BACKWARD, CALL, LOSS, START

DEVICES = "JAX: calls of modules are written only where the program sees one device"
MAPPED = "JAX: calls of modules are not written within shard_map, pmap or a vmap whose axis has a name"

staged = False  # True once reports are part of a compiled program: then those of steps must keep their order, too
apart: Any = contextlib.nullcontext  # the context in which JAX does not take what it has traced outside, by a name
local = threading.local()  # .trace: what this thread traces


class Trace:
    """A gradient while it is traced."""

    def __init__(self, failure: str = "") -> None:
        self.program = jax_passes.Program(failure)
        self.calls = 0
        self.inner = 0  # gradients under way within this one
        self.stack: list[Any] = []  # modules under way
        self.paths = jax_libraries.Paths()


def watch(jax: Any) -> None:
    """Observes the gradients that the program takes; before `traces` does, which knows arrays of outer traces."""
    global apart
    jax.grad = _watched(jax.grad, lambda result, has_aux: result[0] if has_aux else result)
    jax.value_and_grad = _watched(jax.value_and_grad, lambda result, has_aux: result[1])
    if hasattr(jax, "make_user_context"):
        apart = jax.make_user_context(None)
    jax_passes.start()


def _watched(grad: Any, gradients_of: Any) -> Any:
    @functools.wraps(grad)
    def watched(fun: Any, argnums: Any = 0, has_aux: bool = False, *args: Any, **kwargs: Any) -> Any:
        made = grad(_with_loss(fun, argnums, has_aux), argnums, has_aux, *args, **kwargs)

        @functools.wraps(made)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            outer = _under_way()
            if outer is not None:
                return _within(outer, made, args, kwargs)
            if not _is_wanted():
                return made(*args, **kwargs)
            once = getattr(fun, "nondiff_states", None)  # of NNX, which empties it
            kept = list(once or ())
            try:
                return _traced(made, lambda result: gradients_of(result, has_aux), argnums, args, kwargs)
            except _NotTracedError as error:
                if once is not None:
                    once.clear()
                    once.extend(kept)
                return _reporting(Trace(str(error)), made, lambda result: gradients_of(result, has_aux), args, kwargs)

        return gradient

    return watched


class _NotTracedError(Exception):
    """Says why a gradient cannot be traced by itself: it may be the program's own error, or eager code that asks for numbers."""


def _under_way() -> Any:
    return vars(local).get("trace")


def _within(outer: Trace, made: Any, args: Any, kwargs: Any) -> Any:
    outer.inner += 1
    try:
        return made(*args, **kwargs)
    finally:
        outer.inner -= 1


def _with_loss(fun: Any, argnums: Any, has_aux: bool) -> Any:
    """The function whose gradient is taken; its first result is the loss."""

    @functools.wraps(fun)
    def forward(*args: Any, **kwargs: Any) -> Any:
        trace = _under_way()
        outermost = trace is not None and not trace.inner
        if outermost:
            _learn_paths(trace, argnums, args)
        result = fun(*args, **kwargs)
        if outermost:
            _report(trace, LOSS, [("outputs", "", result[0] if has_aux else result)])
        return result

    return forward


@recorder.never_raise
def _learn_paths(trace: Trace, argnums: Any, args: Any) -> None:
    trace.paths.learn(_differentiated(argnums, args))


def _differentiated(argnums: Any, args: Any) -> Any:
    return [args[place] for place in argnums] if isinstance(argnums, (tuple, list)) else args[argnums]


@recorder.never_raise
def _is_wanted() -> bool:
    """True if this is a gradient of a step whose calls are written, or, compiled, may be."""
    jax, core = sys.modules["jax"], sys.modules["jax._src.core"]
    step = module_calls.following()
    if not 0 < step <= max(module_calls.steps) or (core.trace_state_clean() and not module_calls.is_asked(step)):
        return False
    if jax.device_count() > 1:
        recorder.note(DEVICES)
        return False
    if core.get_axis_env().axis_sizes:
        recorder.note(MAPPED)
        return False
    return True


def _traced(made: Any, gradients_of: Any, argnums: Any, args: Any, kwargs: Any) -> Any:
    """The gradient: traced by itself, then run."""
    global staged
    jax, core = sys.modules["jax"], sys.modules["jax._src.core"]
    trace, flatten = Trace(), jax.tree_util.tree_flatten
    leaves, tree = flatten((args, kwargs))
    weights = {id(leaf) for leaf in flatten(_differentiated(argnums, args))[0] if isinstance(leaf, jax.Array)}
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer) or id(leaf) in weights]
    given = [leaves[place] for place in places]
    result: list[Any] = []

    def whole(*arrays: Any) -> list[Any]:
        changed = dict(zip(places, arrays))
        args, kwargs = tree.unflatten(changed.get(place, leaf) for place, leaf in enumerate(leaves))
        result[:] = flatten(_reporting(trace, made, gradients_of, args, kwargs))
        return [leaf for leaf in result[0] if isinstance(leaf, jax.core.Tracer)]

    try:
        jaxpr = jax.make_jaxpr(whole)(*given)
    except Exception as error:
        raise _NotTracedError(f"{type(error).__name__}: {error}".partition("\n")[0]) from None
    staged = staged or not core.trace_state_clean()
    _start(trace, jaxpr, given)
    computed = iter(core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *given))
    flat, structure = result
    return structure.unflatten(next(computed) if isinstance(leaf, jax.core.Tracer) else leaf for leaf in flat)


def _reporting(trace: Trace, made: Any, gradients_of: Any, args: Any, kwargs: Any) -> Any:
    """The gradient as the program takes it, with reports of its calls, its loss and its result."""
    if trace.program.failure:
        _report(trace, START, [])
    with contextlib.ExitStack() as stack:
        _enter(stack, trace)
        result = made(*args, **kwargs)
    _report_gradients(trace, gradients_of, result)
    return result


@recorder.never_raise
def _enter(stack: contextlib.ExitStack, trace: Trace) -> None:
    """Reports calls until the stack is closed."""
    stack.callback(setattr, local, "trace", None)
    stack.enter_context(apart(id(trace.program)))
    jax_libraries.meet(stack, _call)
    local.trace = trace


@recorder.never_raise
def _start(trace: Trace, jaxpr: Any, given: list[Any]) -> None:
    """Reports all that the gradient is computed from, for its copy in float64."""
    _report(trace, START, [("", "", array) for array in trace.program.inputs(jaxpr, given)])


@recorder.never_raise
def _report_gradients(trace: Trace, gradients_of: Any, result: Any) -> None:
    gradients = [("gradients", name, leaf) for name, leaf in jax_libraries.named(gradients_of(result))]
    _report(trace, BACKWARD, [each for each in gradients if module_calls.is_array(each[2])])


@recorder.never_raise
def _report(trace: Trace, kind: str, arrays: recorder.Arrays, number: int = 0, **about: Any) -> None:
    site = jax_passes.Site(trace.program, kind, number, [array[:2] for array in arrays], about)
    jax_reports.report(site, [memory.key_data(array) for _, _, array in arrays])


def _call(proceed: Any, module: Any, args: Any, kwargs: Any, describe: Any) -> Any:
    """Calls a module; what a method calls of its own class is the same call."""
    trace = _under_way()
    begun = None
    if trace is not None and not (trace.stack and trace.stack[-1] is module):
        begun = _begin(trace, module, args, kwargs, describe)
    if begun is None:
        return proceed(*args, **kwargs)
    trace.stack.append(module)
    try:
        result = proceed(*args, **kwargs)
    finally:
        trace.stack.pop()
    _end(trace, begun, result)
    return result


@recorder.never_raise
def _begin(trace: Trace, module: Any, args: Any, kwargs: Any, describe: Any) -> Any:
    called = describe(module)
    if called is None:
        return None
    plain = [(name, value) for name, value in called.settings.items() if not hasattr(value, "shape")]
    about = {
        "module": trace.paths.of(module, trace.stack) if called.path is None else called.path,
        "type": type(module).__name__,
        "settings": module_calls.settings(plain),
        "training": jax_libraries.training(called.settings, kwargs),
    }
    inputs = trees.arrays(list(args)) + trees.arrays(dict(kwargs))
    channels = (("inputs", inputs), ("weights", called.weights), ("buffers", called.buffers))
    trace.calls += 1
    return [(channel, *each) for channel, leaves in channels for each in leaves], trace.calls, about


@recorder.never_raise
def _end(trace: Trace, begun: Any, result: Any) -> None:
    arrays, number, about = begun
    arrays = arrays + [("outputs", *each) for each in trees.arrays(result)]
    _report(trace, CALL, [each for each in arrays if module_calls.is_array(each[2])], number, **about)
