"""Lowering rules of the mode, in the place of JAX's own.

JAX turns each primitive of a program into XLA's operations by a lowering rule. That is its last step: derivatives,
vmap, scan and libraries are behind it, and what runs without jit comes by as well. One function of JAX calls all rules; it
is replaced here. A primitive is exact, and has JAX's rule; it is defined here; or it is refused.

What a definition is made of is exact, and has JAX's own rules, as has what the rule of a choice calls: the module's caches
of lowered operations are others inside, by which the gate knows.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp
from jax._src import config, core
from jax._src.interpreters import mlir

from repro.errors import UsageError
from repro.portable.backends.jax import Backend
from repro.portable.modes.jax.dispatcher import options
from repro.portable.modes.jax.dispatcher.exact import CALLS, CHOOSES, EXACT, INTEGERS, MOVING, OF_PARTS
from repro.portable.modes.jax.dispatcher.refusal import refuse
from repro.portable.modes.jax.dispatcher.registry import (
    Definition,
    Rule,
    allowed_name,
    complex_definitions,
    definitions,
    guards,
    integer_definitions,
    rules,
)

counts: Counter[str] = Counter()
"""The number of portable lowerings of each primitive."""
ran_natively: Counter[str] = Counter()
"""The number of native lowerings of each primitive."""

SINGLE = {np.dtype(each) for each in (np.float32, np.float16, jnp.bfloat16)}
"""Types whose definitions are of float32; other halves have none."""
DOUBLE, HALF = np.dtype(np.float64), np.dtype(np.float16)
COMPLEX = "complex numbers have no portable form"


class _Thread(threading.local):
    bypassed = False


_thread = _Thread()


def bypassed(function: Callable[[], Any]) -> Any:
    """The result of a function, whose primitives are JAX's own."""
    _thread.bypassed = True
    try:
        return function()
    finally:
        _thread.bypassed = False


class OwnCache(dict):
    """Lowered operations of definitions, apart from those of the program."""


class Gate:
    """The gate, from install() on."""

    def __init__(self, allowed: frozenset[str], start: Callable[[], None]) -> None:
        """`start` is called before the first primitive is lowered: then JAX has its devices."""
        self.allowed, self.start = allowed, start
        self.started = False
        self.own = mlir._uncached_lowering

    def install(self, undo: ExitStack) -> None:
        mlir._uncached_lowering = self.lower
        undo.callback(setattr, mlir, "_uncached_lowering", self.own)

    def lower(self, primitive: Any, eqn_ctx: Any, effects: Any, *given: Any, **params: Any) -> Any:
        """JAX's `_uncached_lowering`: what an equation becomes; up to JAX 0.10.1 also whether it may be inlined.

        Since JAX 0.10.2 its rules are given as well, before the context and the arguments.
        """
        place = next(index for index, each in enumerate(given) if isinstance(each, mlir.LoweringRuleContext))
        before, ctx, arguments = given[:place], given[place], given[place + 1 :]
        if isinstance(ctx.module_context.lowering_cache, OwnCache) or _thread.bypassed:
            return self.own(primitive, eqn_ctx, effects, *given, **params)
        name = allowed_name(primitive.name)
        made = None if name in CALLS else self._rule(name, _equation())
        if made is None:
            ctx = _inner(ctx) if name in CHOOSES else ctx
            return self.own(primitive, eqn_ctx, effects, *before, ctx, *arguments, **params)
        results = tuple(made(ctx, *arguments, **params))
        return results if before else (results, True)

    def _rule(self, name: str, eqn: Any) -> Rule | None:
        """Return the rule of a primitive here, None for JAX's own. RefusedError if it is not supported."""
        if not self.started:
            self.started = True
            self.start()
        avals = [each.aval for each in (*eqn.invars, *eqn.outvars)]
        dtypes = {each.dtype for each in avals if isinstance(each, core.ShapedArray)}
        floating = {dtype for dtype in dtypes if jnp.issubdtype(dtype, np.inexact)}
        if name in self.allowed:
            if floating:
                ran_natively[name] += 1
            return None
        if any(map(_is_complex, floating)):
            return self._complex_rule(name, avals, eqn)
        defined = name in definitions or name in rules
        if not defined and name not in EXACT and (floating or (eqn.outvars and name not in INTEGERS)):
            raise refuse(name, "it has no portable form", "", avals, eqn)
        if not floating:
            return partial(_lowered, integer_definitions[name]) if name in integer_definitions else None
        if floating - SINGLE - {DOUBLE} and defined:
            raise refuse(name, "numbers of this type have no portable form", "use float32 or bfloat16", avals, eqn)
        if HALF in floating and (name not in MOVING or name == "convert_element_type") and not options.has_float16():
            raise refuse(name, "XLA cannot compute with float16 on a CPU without F16C", "use bfloat16", avals, eqn)
        why = guards[name](avals, **eqn.params) if name in guards else ""
        if why:
            raise refuse(name, why, "", avals, eqn)
        if not defined:
            return None
        counts[name] += 1
        return partial(_lowered, definitions[name]) if name in definitions else partial(rules[name], _lowered)

    def _complex_rule(self, name: str, avals: list[Any], eqn: Any) -> Rule | None:
        """Return the rule of a primitive with complex numbers, None for JAX's own. RefusedError if it is not supported."""
        if name in MOVING or name in OF_PARTS:
            return None
        if name not in complex_definitions:
            raise refuse(name, COMPLEX, "compute with the real and imaginary parts", avals, eqn)
        why = guards[name](avals, **eqn.params) if name in guards else ""
        if why:
            raise refuse(name, why, "", avals, eqn)
        counts[name] += 1
        return partial(_lowered, complex_definitions[name])


def _equation() -> Any:
    """The equation that JAX is lowering."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "eqn" in frame.f_locals:
            return frame.f_locals["eqn"]
        frame = frame.f_back
    raise UsageError(f"portable: JAX {jax.__version__} lowers programs in another way; use JAX 0.10")


def _is_complex(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, np.complexfloating))


def _inner(ctx: Any) -> Any:
    """The context in which primitives have JAX's own rules."""
    outer = ctx.module_context
    caches = outer.cached_primitive_lowerings.setdefault(__name__, (OwnCache(), {}))
    return ctx.replace(module_context=outer.replace(lowering_cache=caches[0], cached_primitive_lowerings=caches[1]))


def _lowered(definition: Definition, ctx: Any, *arguments: Any, **params: Any) -> Any:
    """A definition as a lowering rule."""
    function = partial(_results, definition, tuple(each.dtype for each in ctx.avals_out))
    with exactly(), _engine(ctx):
        return mlir.lower_fun(function, multiple_results=True)(_inner(ctx), *arguments, **params)


@contextmanager
def _engine(ctx: Any) -> Iterator[None]:
    """The context in which a program that leaves this process, by `jax.export`, calls no kernels: it has the same bits."""
    engine = Backend.engine
    if ctx.module_context.lowering_parameters.for_export:
        Backend.engine = "float64"
    try:
        yield
    finally:
        Backend.engine = engine


def exactly() -> ExitStack:
    """The context in which definitions are traced: with float64, whatever the program has chosen."""
    stack = ExitStack()
    for option, value in (
        (config.enable_x64, True),
        (config.numpy_dtype_promotion, "standard"),
        (config.numpy_rank_promotion, "allow"),
        (config.debug_nans, False),
        (config.debug_infs, False),
        (config.disable_jit, False),
    ):
        stack.enter_context(option(value))
    return stack


def _results(definition: Definition, dtypes: Sequence[Any], *arrays: Array, **params: Any) -> list[Array]:
    """The results of a definition, rounded to the types that the primitive has."""
    results = definition(*arrays, **params)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    return [
        x if x.dtype == dtype else jax.lax.convert_element_type(x, dtype)
        for x, dtype in zip(results, dtypes, strict=True)
    ]
