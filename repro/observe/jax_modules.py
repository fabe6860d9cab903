"""Calls of modules in JAX: forward passes of which a gradient is taken, in the steps that `record --modules` names.

The outermost `jax.grad` or `jax.value_and_grad` is traced by itself, and what it becomes is then run in the program's place. Reports
in it hand out the arrays, in the program's order: a start, calls, the loss, the gradients. The same trace is computed in
float64 later, in the main thread, never within a callback: that could wait for the program that waits for it.
"""

import atexit
import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from . import jax_float64, jax_libraries, jax_reports, memory, module_calls, recorder, traces

DEVICES = "JAX: calls of modules are written only where the program sees one device"
MAPPED = "JAX: calls of modules are not written within shard_map, pmap or a vmap whose axis has a name"
NOT_EXACT = "JAX: the calls of modules of step {0} have no copy in float64: {1}"

START, CALL, LOSS, BACKWARD = "start", "call", "loss", "backward"
OUTPUTS = ("outputs", "gradients")  # channels of which there is a copy in float64

staged = False  # True once reports are part of a compiled program: then those of steps must keep their order, too
current: Optional["Run"] = None  # the forward pass that is running
finished: list["Run"] = []  # forward passes whose lines are not written yet
numbers: dict[int, int] = {}  # by step: the calls that are written
local = threading.local()  # .trace: the forward pass that this thread traces

Names = list[tuple[str, str]]  # channel and name of each array of a report


class Site(NamedTuple):
    """A place in a trace that reports."""

    kind: str
    number: int  # the order in which the calls began when they were traced
    names: Names
    about: dict[str, Any]  # fields of the line


class Trace:
    """A trace of a gradient."""

    def __init__(self) -> None:
        self.calls = 0
        self.inner = 0  # gradients under way within this one
        self.stack: list[tuple[Any, str]] = []  # modules under way, and their paths
        self.paths: dict[
            int, tuple[str, Any]
        ] = {}  # by id: modules of NNX and Equinox, which are kept alive, and their paths
        self.taken: set[str] = set()  # paths that were called
        self.given: dict[int, str] = {}  # by id of a weight: its path in what is differentiated
        self.program: Any = None  # the closed jaxpr
        self.failure = ""  # why there is none
        self.keys: list[Any] = []  # of each array at the start: what makes it a key of JAX; None of others
        self.places: list[int] = []  # the constants of the program that are handed out at the start


class Run:
    """One forward pass with its backward pass."""

    def __init__(self, trace: Trace, step: int, arguments: list[Any]):
        self.trace, self.step, self.arguments = trace, step, arguments
        self.arrived: list[tuple[Site, module_calls.Codes]] = []
        self.exact: list[tuple[Site, module_calls.Codes]] = []


class Receiver:
    """What a report calls. It is hashed by what it is, so JAX keeps programs apart."""

    def __init__(self, trace: Trace, site: Site):
        self.trace, self.site = trace, site
        self.exactly = functools.partial(_arrive, trace, site, True)

    def __call__(self, *arrays: Any) -> None:
        _arrive(self.trace, self.site, False, *arrays)


@recorder.never_raise
def _arrive(trace: Trace, site: Site, exact: bool, *arrays: Any) -> None:
    """Takes what a report hands out, in any thread."""
    global current
    if site.kind == START:
        step = module_calls.following()
        asked = module_calls.is_asked(step)
        numpy = sys.modules["numpy"]
        current = Run(trace, step, [numpy.array(memory.to_numpy(array)) for array in arrays]) if asked else None
    elif current is not None and current.trace is trace:
        named = [(name, array) for name, array in zip(site.names, arrays) if not exact or name[0] in OUTPUTS]
        codes = module_calls.hash_named((f"{channel} {name}", array) for (channel, name), array in named)
        (current.exact if exact else current.arrived).append((site, codes))
        if site.kind == BACKWARD and not exact:
            finished.append(current)
            current = None


def watch(jax: Any) -> None:
    """Observes the forward passes of which the program takes gradients."""
    jax.grad = _watched(jax.grad, lambda result, aux: result[0] if aux else result)
    jax.value_and_grad = _watched(jax.value_and_grad, lambda result, aux: result[1])
    _apart.append(jax.make_user_context(None) if hasattr(jax, "make_user_context") else contextlib.nullcontext)
    atexit.register(flush)


_apart: list[
    Any
] = []  # the context of JAX within which functions are compiled apart from those of the same program outside


def _watched(grad: Any, gradients_of: Any) -> Any:
    @functools.wraps(grad)
    def watched(fun: Any, argnums: Any = 0, has_aux: bool = False, *args: Any, **kwargs: Any) -> Any:
        made = grad(_with_loss(fun, argnums, has_aux), argnums, has_aux, *args, **kwargs)

        @functools.wraps(made)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            outer = vars(local).get("trace")
            if outer is not None:
                outer.inner += 1
                try:
                    return made(*args, **kwargs)
                finally:
                    outer.inner -= 1
            if not _is_wanted():
                return made(*args, **kwargs)
            return _traced(fun, made, argnums, args, kwargs, lambda result: gradients_of(result, has_aux))

        return gradient

    return watched


def _with_loss(fun: Any, argnums: Any, has_aux: bool) -> Any:
    """The function whose gradient is taken; its first result is the loss."""

    @functools.wraps(fun)
    def forward(*args: Any, **kwargs: Any) -> Any:
        trace = vars(local).get("trace")
        outermost = trace is not None and not trace.inner
        if outermost:
            _remember(trace, argnums, args)
        result = fun(*args, **kwargs)
        if outermost:
            _report(trace, LOSS, [("outputs", "", result[0] if has_aux else result)])
        return result

    return forward


@recorder.never_raise
def _is_wanted() -> Any:
    """True if a gradient is taken in a step whose calls are written, or, compiled, may be."""
    jax, core = sys.modules["jax"], sys.modules["jax._src.core"]
    step = module_calls.following()
    eager = core.trace_state_clean()
    if not module_calls.steps or step > max(module_calls.steps) or (eager and not module_calls.is_asked(step)):
        return False
    if jax.device_count() > 1:
        recorder.note(DEVICES)
        return False
    if core.get_axis_env().axis_sizes:
        recorder.note(MAPPED)
        return False
    return True


def _traced(fun: Any, made: Any, argnums: Any, args: Any, kwargs: Any, gradients_of: Any) -> Any:
    """The gradient: traced by itself, then run. Where that fails, as of what is not compiled and asks for numbers, it is run at once."""
    global staged
    jax = sys.modules["jax"]
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    weights = {id(leaf) for leaf in jax.tree_util.tree_leaves(_differentiated(argnums, args))}
    varied = [
        place
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, jax.core.Tracer) or (isinstance(leaf, jax.Array) and id(leaf) in weights)
    ]
    results: list[Any] = []
    trace = Trace()
    once = getattr(fun, "nondiff_states", None)  # of NNX, which empties it
    kept = list(once) if once is not None else []

    def whole(*given: Any) -> Any:
        for place, value in zip(varied, given):
            leaves[place] = value
        args, kwargs = jax.tree_util.tree_unflatten(tree, leaves)
        with _tracing(trace):
            result = made(*args, **kwargs)
        _report_gradients(trace, gradients_of, result)
        flat, structure = jax.tree_util.tree_flatten(result)
        results[:] = [flat, structure]
        return [leaf for leaf in flat if isinstance(leaf, jax.core.Tracer)]

    given = [leaves[place] for place in varied]
    try:
        program = jax.make_jaxpr(whole)(*given)
    except Exception as error:
        if once is not None:
            once.clear()
            once.extend(kept)
        return _at_once(made, args, kwargs, gradients_of, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    staged = staged or not sys.modules["jax._src.core"].trace_state_clean()
    _start(trace, program, given)
    computed = iter(sys.modules["jax._src.core"].eval_jaxpr(program.jaxpr, program.consts, *given))
    flat, structure = results
    return jax.tree_util.tree_unflatten(
        structure, [next(computed) if isinstance(leaf, jax.core.Tracer) else leaf for leaf in flat]
    )


def _at_once(made: Any, args: Any, kwargs: Any, gradients_of: Any, failure: str) -> Any:
    """The gradient, whose calls report as they run."""
    trace = Trace()
    trace.failure = failure
    _report(trace, START, [])
    with _tracing(trace):
        result = made(*args, **kwargs)
    _report_gradients(trace, gradients_of, result)
    return result


@contextlib.contextmanager
def _tracing(trace: Trace) -> Iterator[None]:
    local.trace = trace
    try:
        with jax_libraries.met(_call), _apart[-1](id(trace)):
            yield
    finally:
        local.trace = None


def _differentiated(argnums: Any, args: Any) -> Any:
    if isinstance(argnums, (tuple, list)):
        return [args[place] for place in argnums]
    return args[argnums]


@recorder.never_raise
def _remember(trace: Trace, argnums: Any, args: Any) -> None:
    trace.given = {id(leaf): path for path, leaf in jax_libraries.named(_differentiated(argnums, args))}


@recorder.never_raise
def _start(trace: Trace, program: Any, given: list[Any]) -> None:
    """Reports all that the trace computes from, of which the copy in float64 is computed."""
    jax = sys.modules["jax"]
    trace.program = program
    trace.places = [place for place, each in enumerate(program.consts) if isinstance(each, jax.core.Tracer)]
    arrays = [*given, *(program.consts[place] for place in trace.places)]
    trace.keys = [jax.random.key_impl(each) if _is_key(each) else None for each in arrays]
    _report(trace, START, [("", "", array) for array in arrays])


def _is_key(array: Any) -> bool:
    return str(array.dtype).startswith("key<")


@recorder.never_raise
def _report_gradients(trace: Trace, gradients_of: Any, result: Any) -> None:
    gradients = [("gradients", name, leaf) for name, leaf in jax_libraries.named(gradients_of(result))]
    _report(trace, BACKWARD, [each for each in gradients if module_calls.is_array(each[2])])


@recorder.never_raise
def _report(trace: Trace, kind: str, arrays: recorder.Arrays, number: int = 0, **about: Any) -> None:
    site = Site(kind, number, [array[:2] for array in arrays], about)
    jax_reports.report(Receiver(trace, site), [memory.key_data(array) for _, _, array in arrays])


def _call(proceed: Any, module: Any, args: Any, kwargs: Any, describe: Any) -> Any:
    """Calls a module; what a method calls of its own class is the same call."""
    trace: Any = vars(local).get("trace")
    begun = None
    if trace is not None and not (trace.stack and trace.stack[-1][0] is module):
        begun = _begin(trace, module, args, kwargs, describe)
    if begun is None:
        return proceed(*args, **kwargs)
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
    path = _path(trace, module, called.weights) if called.path is None else called.path
    plain = [(name, value) for name, value in called.settings.items() if not hasattr(value, "shape")]
    about = {
        "module": path,
        "type": type(module).__name__,
        "settings": module_calls.settings(plain),
        "training": jax_libraries.training(called.settings, kwargs),
    }
    inputs = traces.arrays(list(args)) + traces.arrays(dict(kwargs))
    arrays = [("inputs", *each) for each in inputs] + [("weights", *each) for each in called.weights]
    arrays += [("buffers", *each) for each in called.buffers]
    trace.calls += 1
    trace.stack.append((module, path))
    return arrays, trace.calls, about


@recorder.never_raise
def _end(trace: Trace, begun: Any, result: Any) -> None:
    arrays, number, about = begun
    arrays = arrays + [("outputs", *each) for each in traces.arrays(result)]
    _report(trace, CALL, [each for each in arrays if module_calls.is_array(each[2])], number, **about)


def _path(trace: Trace, module: Any, weights: Any) -> str:
    """The path of a module of NNX or Equinox: its place in the outermost one that is called, and of that one in what is differentiated.

    Where a module was made anew of its arrays, as by `filter_vmap`, it is the first one in its parent of the same structure that was
    not called yet.
    """
    if id(module) not in trace.paths:
        structure = sys.modules["jax"].tree_util.tree_structure
        parent, base = trace.stack[-1] if trace.stack else (None, "")
        within = [] if parent is None else jax_libraries.submodules(parent)[1:]
        alike = [".".join(filter(None, (base, path))) for path, each in within if structure(each) == structure(module)]
        if parent is None:
            base = _base(trace, module)
        elif alike:
            base = next((path for path in alike if path not in trace.taken), alike[-1])
        else:
            base = ".".join(filter(None, (base, type(module).__name__)))
        for path, each in jax_libraries.submodules(module):
            trace.paths.setdefault(id(each), (".".join(filter(None, (base, path))), each))
    path = trace.paths[id(module)][0]
    trace.taken.add(path)
    return path


def _base(trace: Trace, module: Any) -> str:
    """The path of an outermost module in what is differentiated, by the first of its weights that is there; "" if none is."""
    for path, each in jax_libraries.submodules(module):
        for name, leaf in jax_libraries.weights(each):
            given, own = trace.given.get(id(leaf)), ".".join(filter(None, (path, name)))
            if given is not None and given.endswith(own):
                return given[: -len(own)].rstrip(".")
    return ""


@recorder.never_raise
def flush() -> None:
    """Writes the lines of all passes that have ended, unless a function is traced."""
    jax, core = sys.modules["jax"], sys.modules["jax._src.core"]
    if not core.trace_state_clean():
        return
    jax.effects_barrier()
    while finished:
        run = finished.pop(0)
        try:
            _compute_exactly(run)
        except Exception as error:
            run.exact = []
            recorder.note(NOT_EXACT.format(run.step, str(error).partition("\n")[0]))
        _write(run)


def _compute_exactly(run: Run) -> None:
    """Computes the pass again in float64, natively under portable numerics, too. Its reports arrive in `run.exact`."""
    global current
    jax, trace = sys.modules["jax"], run.trace
    if trace.failure:
        raise ValueError(trace.failure)
    variables = [*trace.program.jaxpr.invars, *(trace.program.jaxpr.constvars[place] for place in trace.places)]
    taken = len(trace.program.jaxpr.invars)

    def program(given: list[Any]) -> None:
        constants = list(trace.program.consts)
        for place, value in zip(trace.places, given[taken:]):
            constants[place] = value
        jax_float64.run(trace.program.jaxpr, constants, *given[:taken])

    gate = sys.modules.get("repro.portable.modes.jax.dispatcher.gate")
    natively = gate.bypassed if gate is not None else (lambda function: function())
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else sys.modules["jax.experimental"].enable_x64
    current = run
    try:
        with enable(True):
            pairs = zip(run.arguments, trace.keys)
            given = [jax_float64.widened(array) if key is None else _key(array, key) for array, key in pairs]
            axes = [0 if each.ndim > len(variable.aval.shape) else None for each, variable in zip(given, variables)]
            if any(axis is not None for axis in axes):  # of a gradient for each element of a batch
                program = jax.vmap(program, in_axes=(axes,))
            natively(lambda: sys.modules["jax._src.api"].jit(program)(given))
            jax.effects_barrier()
    finally:
        current = None


def _key(numbers: Any, kind: Any) -> Any:
    """A key of JAX, of the numbers that it consists of."""
    return sys.modules["jax"].random.wrap_key_data(numbers, impl=kind)


def _write(run: Run) -> None:
    """The lines of a pass. A module in a loop is called several times at one place of the trace."""
    exact: dict[tuple[int, int], module_calls.Codes] = {}
    times: dict[int, int] = {}
    for site, codes in run.exact:
        times[id(site)] = times.get(id(site), 0) + 1
        exact[id(site), times[id(site)]] = codes
    times = {}
    for site, codes in sorted(run.arrived, key=lambda each: (ORDER.index(each[0].kind), each[0].number)):
        times[id(site)] = times.get(id(site), 0) + 1
        line = {channel: _of(codes, channel) for channel in ("inputs", "outputs", "weights", "buffers")}
        copy = exact.get((id(site), times[id(site)]))
        if site.kind == BACKWARD:
            names = _names([name for _, name in site.names])
            gradients = {names[name]: code for name, code in _of(codes, "gradients").items()}
            copies = copy and {names[name]: code for name, code in _of(copy, "gradients").items()}
            module_calls.write_backward(run.step, gradients, copies)
            continue
        numbers[run.step] = number = numbers.get(run.step, 0) + 1
        copy = copy and _of(copy, "outputs")
        if site.kind == LOSS:
            module_calls.write_loss(run.step, number, line["outputs"], copy)
        else:
            about = dict(site.about)
            path, kind = about.pop("module"), about.pop("type")
            module_calls.write_call(run.step, number, path, kind, **about, **line, exact=copy)


ORDER = (CALL, LOSS, BACKWARD)


def _of(codes: module_calls.Codes, channel: str) -> module_calls.Codes:
    return {name.partition(" ")[2]: code for name, code in codes.items() if name.partition(" ")[0] == channel}


def _names(gradients: list[str]) -> dict[str, str]:
    """The names of gradients as the steps name their weights: `0.layers.weight` of `layers.weight`."""
    known = list(recorder.active.weights) if recorder.active is not None else []
    names = {}
    for name in gradients:
        longer = [each for each in known if each == name or each.endswith(f".{name}")]
        nearest = [each for each in longer if len(each) == min(map(len, longer))]
        names[name] = nearest[0] if len(nearest) == 1 else name
    return names
