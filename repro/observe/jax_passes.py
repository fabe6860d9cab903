"""Forward passes in JAX as their reports arrive, and the lines that are written of them.

The copy in float64 is computed of the same trace, in the main thread, when no other function is traced, never within a
callback: that could wait for the very program that waits for it.
"""

import atexit
import functools
import sys
from typing import Any, Optional

from . import jax_float64, memory, module_calls, recorder

NOT_EXACT = "JAX: the calls of modules of step {0} have no copy in float64: {1}"

START, CALL, LOSS, BACKWARD = "start", "call", "loss", "backward"
ORDER = (CALL, LOSS, BACKWARD)  # of the lines
CHANNELS = ("inputs", "outputs", "weights", "buffers")
COPIED = ("outputs", "gradients")  # channels of which there is a copy in float64

Codes = module_calls.Codes
Arrived = list[tuple["Site", dict[str, Codes]]]  # hashes by channel and name

current: Optional["Pass"] = None  # the one that is running
finished: list["Pass"] = []  # those whose lines are not written yet
numbers: dict[int, int] = {}  # by step: the calls that are written


class Program:
    """What the gradient of a forward pass became when it was traced."""

    def __init__(self, failure: str) -> None:
        self.failure = failure  # why it was not traced by itself
        self.jaxpr: Any = None
        self.constants: list[Any] = []  # None for each that differs from run to run
        self.keys: list[Any] = []  # of each input: what makes it a key of JAX; None of others

    def inputs(self, traced: Any, given: list[Any]) -> list[Any]:
        """Takes what JAX made; returns the arrays that it computes from: what is given, and what it took from around it."""
        jax = sys.modules["jax"]
        taken = [each for each in traced.consts if isinstance(each, jax.core.Tracer)]
        self.jaxpr = traced.jaxpr
        self.constants = [None if isinstance(each, jax.core.Tracer) else each for each in traced.consts]
        arrays = [*given, *taken]
        self.keys = [jax.random.key_impl(each) if str(each.dtype).startswith("key<") else None for each in arrays]
        return arrays

    def compute_exactly(self, arrays: list[Any]) -> None:
        """Computes it in float64, natively under portable numerics, too. Its reports arrive as those of the pass that is running."""
        jax = sys.modules["jax"]
        if self.failure:
            raise ValueError(self.failure)
        gate = sys.modules.get("repro.portable.modes.jax.dispatcher.gate")
        natively = gate.bypassed if gate is not None else (lambda function: function())
        with (jax.enable_x64 if hasattr(jax, "enable_x64") else sys.modules["jax.experimental"].enable_x64)(True):
            given = [
                jax_float64.widened(array) if key is None else jax.random.wrap_key_data(array, impl=key)
                for array, key in zip(arrays, self.keys)
            ]
            places = [place for place, each in enumerate(self.constants) if each is None]
            variables = [*self.jaxpr.invars, *(self.jaxpr.constvars[place] for place in places)]
            axes = [0 if each.ndim > len(variable.aval.shape) else None for each, variable in zip(given, variables)]
            run = functools.partial(self._run, places)
            if 0 in axes:  # it is a gradient for each element of a batch
                run = jax.vmap(run, in_axes=(axes,))
            natively(lambda: sys.modules["jax._src.api"].jit(run)(given))
            jax.effects_barrier()

    def _run(self, places: list[int], given: list[Any]) -> None:
        constants, count = list(self.constants), len(self.jaxpr.invars)
        for place, value in zip(places, given[count:]):
            constants[place] = value
        jax_float64.run(self.jaxpr, constants, *given[:count])


class Site:
    """A place in a program that reports. It is what its report calls, in any thread."""

    def __init__(
        self, program: Program, kind: str, number: int, names: list[tuple[str, str]], about: dict[str, Any]
    ) -> None:
        self.program, self.kind, self.about = program, kind, about
        self.number = number  # the order in which the calls began when they were traced
        self.names = names  # channel and name of each array

    def __call__(self, *arrays: Any) -> None:
        _arrive(self, arrays, False)

    def exactly(self, *arrays: Any) -> None:
        """What the report calls with float64."""
        _arrive(self, arrays, True)


class Pass:
    """One run of such a program."""

    def __init__(self, program: Program, step: int, inputs: list[Any]):
        self.program, self.step, self.inputs = program, step, inputs
        self.arrived: Arrived = []
        self.exact: Arrived = []


@recorder.never_raise
def _arrive(site: Site, arrays: Any, exact: bool) -> None:
    """Takes what a report hands out. A call of no pass, as of one that is not written, is forgotten."""
    global current
    if site.kind == START and not exact:
        step, copy = module_calls.following(), sys.modules["numpy"].array
        asked = module_calls.is_asked(step)
        current = Pass(site.program, step, [copy(memory.to_numpy(array)) for array in arrays]) if asked else None
    elif site.kind != START and current is not None and current.program is site.program:
        codes: dict[str, Codes] = {}
        for channel in COPIED if exact else {channel for channel, _ in site.names}:
            own = [(name, array) for (each, name), array in zip(site.names, arrays) if each == channel]
            codes[channel] = module_calls.hash_named(own)
        (current.exact if exact else current.arrived).append((site, codes))
        if site.kind == BACKWARD and not exact:
            finished.append(current)
            current = None


def start() -> None:
    """Has the lines of what has not been written at the end of the process written then, before JAX ends."""
    atexit.register(flush)


@recorder.never_raise
def flush() -> None:
    """Writes the lines of all passes that have ended, unless a function is traced."""
    global current
    if not sys.modules["jax._src.core"].trace_state_clean():
        return
    sys.modules["jax"].effects_barrier()
    while finished:
        current = done = finished.pop(0)
        try:
            done.program.compute_exactly(done.inputs)
        except Exception as error:
            done.exact = []
            recorder.note(NOT_EXACT.format(done.step, str(error).partition("\n")[0]))
        finally:
            current = None
        _write(done)


def _write(done: Pass) -> None:
    copies = {(id(site), nth): codes for (site, codes), nth in _counted(done.exact)}
    in_order = sorted(_counted(done.arrived), key=lambda each: (ORDER.index(each[0][0].kind), each[0][0].number))
    for (site, codes), nth in in_order:
        _write_line(done.step, site, codes, copies.get((id(site), nth), {}))


def _counted(arrived: Arrived) -> list[Any]:
    """Each report, and how many of its site there were with it: a module in a loop is called several times at one place."""
    counts: dict[int, int] = {}
    counted = []
    for site, codes in arrived:
        counts[id(site)] = counts.get(id(site), 0) + 1
        counted.append(((site, codes), counts[id(site)]))
    return counted


def _write_line(step: int, site: Site, codes: dict[str, Codes], copy: dict[str, Codes]) -> None:
    if site.kind == BACKWARD:
        names = _names([name for _, name in site.names])
        renamed = [{names[name]: code for name, code in each.get("gradients", {}).items()} for each in (codes, copy)]
        module_calls.write_backward(step, renamed[0], renamed[1] or None)
        return
    numbers[step] = number = numbers.get(step, 0) + 1
    if site.kind == LOSS:
        module_calls.write_loss(step, number, codes["outputs"], copy.get("outputs"))
        return
    about = dict(site.about)
    path, kind = about.pop("module"), about.pop("type")
    seen = {channel: codes.get(channel, {}) for channel in CHANNELS}
    module_calls.write_call(step, number, path, kind, **about, **seen, exact=copy.get("outputs"))


def _names(gradients: list[str]) -> dict[str, str]:
    """The names of gradients as the steps name their weights: `0.layers.weight` of `layers.weight`."""
    known = list(recorder.active.weights) if recorder.active is not None else []
    names = {}
    for name in gradients:
        longer = [each for each in known if each == name or each.endswith(f".{name}")]
        nearest = [each for each in longer if len(each) == min(map(len, longer))]
        names[name] = nearest[0] if len(nearest) == 1 else name
    return names
