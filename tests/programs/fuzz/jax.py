"""Calls of JAX's functions: `lax`, `jax.numpy`, `jax.nn`, `jax.scipy`, `jax.random`, forward and gradients.

The tables beside this file have a row for each function that the modules have: one without a row is an error that names it.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any
from zlib import crc32

import jax
import numpy as np
from jax import numpy as jnp

from programs.fuzz import jax_lax, jax_numpy
from programs.fuzz.cases import Case
from programs.fuzz.jax_functions import APART, ARRAYS, FUNCTIONS, MODULES
from programs.fuzz.settings import Setting

CALLS = jax_lax.CALLS | jax_numpy.CALLS
TYPES = ("float32", "bfloat16", "float16", "float64")
VALUES = ("usual", "special", "huge", "tiny")
"""Kinds of numbers of the usual shape: they share what is compiled."""
SHAPES = ("transposed", "empty", "scalar")
FEW = ("lax", "nn")
"""The modules of which a few calls are."""
QUICK = "--xla_backend_optimization_level=0"
"""XLA compiles sooner."""
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 17.5, -88.5)


@dataclass(frozen=True)
class Operation:
    """A function, with the letters of its arguments."""

    name: str
    letters: str
    function: Callable[..., Any]
    elementwise: bool

    @property
    def random(self) -> bool:
        return self.name.startswith("random.")


@dataclass(frozen=True)
class Sample:
    """What sets a call apart from others of its operation."""

    dtype: str
    kind: str
    """A kind of values, `range` or a shape."""
    gradient: bool = False
    turn: int = 0
    """The number of the drawing, of several."""

    def __str__(self) -> str:
        parts = self.dtype, self.kind, str(self.turn or ""), "gradients" if self.gradient else ""
        return " ".join(filter(None, parts))


def start(setting: Setting) -> None:
    """Switches on portable numerics, or float64."""
    if setting.portable:
        import repro.portable.jax as portable

        portable.enable()
    else:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"  # before the first array is made
    if setting.double:
        jax.config.update("jax_enable_x64", True)


# --- operations -------------------------------------------------------------------------------------------------------


def operations() -> list[Operation]:
    """All of the tables, one of several names. LookupError where the modules have functions without a row."""
    rows: dict[str, tuple[str, Callable[..., Any], bool]] = {}
    for table, elementwise in ((FUNCTIONS, True), (ARRAYS, False)):
        for module, by_letters in table.items():
            for letters, names in by_letters.items():
                for name in names.split():
                    rows[f"{module}.{name}"] = letters, getattr(MODULES[module], name), elementwise
    rows |= {name: (letters, function, name in BY_ELEMENT) for name, (letters, function) in CALLS.items()}
    if missing := _public() - {name.partition(" ")[0] for name in rows} - _apart():
        raise LookupError(
            f"no arguments for {', '.join(sorted(missing))}: add them to jax_functions.py or jax_numpy.py"
        )
    unique = {
        id(function): Operation(name, letters, function, each) for name, (letters, function, each) in rows.items()
    }
    return sorted(unique.values(), key=lambda each: each.name)


BY_ELEMENT = ("lax.integer_pow", "lax.polygamma", "special.multigammaln", "special.polygamma")


def _public() -> set[str]:
    return {
        f"{module}.{name}"
        for module, home in MODULES.items()
        for name in dir(home)
        if name[0] != "_" and callable(each := getattr(home, name)) and not inspect.isclass(each)
    }


def _apart() -> set[str]:
    return {f"{module}.{name}" for module, names in APART.items() for name in names.split()}


# --- arguments --------------------------------------------------------------------------------------------------------


def arguments(operation: Operation, sample: Sample) -> list[Any]:
    """NumPy's arrays, and keys, the same ones in every process."""
    random = np.random.Generator(np.random.PCG64([crc32(f"{operation.name} {sample.kind}".encode()), sample.turn]))
    shared, _, own = operation.letters.partition("|")
    shape: tuple[int, ...] = (2, 16, 64) if operation.elementwise else (4, 3, 8)
    if sample.kind in SHAPES:
        shape = {"transposed": shape[::-1], "empty": (shape[0], 0, shape[2]), "scalar": ()}[sample.kind]
    arrays = [_argument(letter, shape, sample, random) for letter in shared.split()]
    return arrays + [_matrix(letter, sample, random) for letter in own.split()]


def _argument(letter: str, shape: tuple[int, ...], sample: Sample, random: np.random.Generator) -> Any:
    if letter == "k":
        return jax.random.key(int(random.integers(2**31)))
    if letter in "ij":
        return random.integers(0, 5, shape).astype(np.int32)
    if letter == "b":
        return random.integers(0, 2, shape) > 0
    x = _numbers(shape, sample, random)
    if letter in "pqcd":
        x = abs(x) if sample.kind != "usual" else abs(x) + np.array(0.125, x.dtype)
        return np.minimum(x, np.array(1000, x.dtype)) if letter in "cd" else x
    if letter in "uw" and sample.kind not in ("special", "range"):
        return random.random(shape).astype(x.dtype)
    return x


def _numbers(shape: tuple[int, ...], sample: Sample, random: np.random.Generator) -> np.ndarray:
    dtype = jnp.dtype(sample.dtype)
    limits = jnp.finfo(dtype)
    x = random.standard_normal(shape)
    if sample.kind == "range":
        bits = random.integers(0, 2 ** (8 * dtype.itemsize), shape, f"uint{8 * dtype.itemsize}").view(dtype)
        moderate = (x * 2.0 ** random.integers(-10, 11, shape)).astype(dtype)
        return np.where(random.integers(0, 2, shape) > 0, bits, moderate)
    if sample.kind == "special":
        return random.choice(
            [*SPECIAL, float(limits.max), float(limits.tiny), float(limits.smallest_subnormal)], shape
        ).astype(dtype)
    scale = {"huge": 2.0 ** (limits.maxexp - 4), "tiny": float(limits.tiny)}.get(sample.kind, 1.0)
    return (x * scale).astype(dtype)


def _matrix(letter: str, sample: Sample, random: np.random.Generator) -> np.ndarray:
    """A square matrix, or a vector of the same length; what is positive is never special: JAX's series might not end."""
    size = 0 if sample.kind == "empty" else 8
    if letter in "pqu":
        return (random.random(size) + 0.125 * (letter != "u")).astype(jnp.dtype(sample.dtype))
    x = _numbers((size,) if letter == "v" else (size, size), sample, random)
    if letter == "S":
        with np.errstate(all="ignore"):
            scale = abs(x.astype(float)).max(initial=0) or 1.0
            rows = (
                np.rint(x.astype(float) / scale * 2.0**20) * 2.0**-20
            )  # whose products NumPy adds exactly in any order
            x = (rows @ rows.T * scale + np.eye(size)).astype(x.dtype)
    if letter == "L":
        x = np.tril(x) + 2 * np.eye(size, dtype=x.dtype)
    return x


def _as_double(x: Any) -> Any:
    """Floating-point numbers in float64, without the least ones: XLA takes them for 0 on CPUs, but those of float16."""
    if not isinstance(x, np.ndarray) or not jnp.issubdtype(x.dtype, np.floating):
        return x
    wide, least = x.astype(np.float64), 2.0**-1022 if x.dtype == np.float64 else 2.0**-126
    with np.errstate(all="ignore"):
        return np.where(abs(wide) < least, 0.0 * wide, wide)


# --- calls ------------------------------------------------------------------------------------------------------------


def cases(everything: bool, only: str) -> Iterator[Case]:
    """Calls of each function whose name has `only` in it; a few are of `lax` and `jax.nn`, of which the others are made."""
    if not everything:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"  # before the first array is made
    draw = all_samples if everything else few_samples
    chosen = [each for each in operations() if only in each.name and (everything or each.name.startswith(FEW))]
    for turn, operation in enumerate(chosen):
        for sample in draw(operation, turn):
            yield Case(operation.name, str(sample), Call(operation, sample))


def few_samples(operation: Operation, turn: int) -> Iterator[Sample]:
    """One of a type and a kind, in turns: results of most, gradients of the others."""
    kinds = ("range", "special") if operation.elementwise else (*VALUES, *SHAPES)
    yield Sample(TYPES[turn % len(TYPES)], kinds[turn % len(kinds)], gradient=turn % 3 == 2)


def all_samples(operation: Operation, turn: int) -> Iterator[Sample]:
    """All values in all types, with gradients; other shapes in one type each."""
    kinds = [(kind, 0) for kind in (("usual",) if operation.random else VALUES)]
    if operation.elementwise:
        kinds += [("range", number) for number in range(4)]
    for dtype in TYPES:
        for gradient in (False, True):
            yield from (Sample(dtype, kind, gradient, number) for kind, number in kinds)
    if not operation.random:
        types = count(turn)
        yield from (Sample(TYPES[next(types) % len(TYPES)], shape) for shape in SHAPES)


@dataclass(frozen=True)
class Call:
    """An operation on a sample."""

    operation: Operation
    sample: Sample

    def __call__(self, double: bool) -> list[np.ndarray]:
        """The results, or the gradients of floating-point arguments if it has any."""
        given = arguments(self.operation, self.sample)
        if double:
            given = [_as_double(each) for each in given]
        with jax.enable_x64(double or self.sample.dtype == "float64"), np.errstate(all="ignore"):
            results = _computed(self.operation.function, given, self.sample)
            return [_plain(each) for each in jax.tree.leaves(results)]


def _computed(function: Callable[..., Any], given: list[Any], sample: Sample) -> Any:
    """Compiled as one program; what JAX cannot trace is called eagerly."""
    if sample.kind == "transposed":
        given = [_turned(each) for each in given]
    for compiled in _attempts(function, sample.gradient, sample.kind == "transposed"):
        try:
            jax.eval_shape(compiled, *given)
        except Exception:  # it has no gradient, or its shapes depend on values
            continue
        return compiled(*given)
    return function(*map(jnp.asarray, given))


@lru_cache(maxsize=4)
def _attempts(function: Callable[..., Any], gradient: bool, turned: bool) -> list[Any]:
    """What is compiled, in the order in which it is tried; samples of the same shapes and types share it."""
    if turned:
        return [jax.jit(lambda *arrays: function(*map(_turned, arrays)))]
    return [jax.jit(_with_gradients(function)), jax.jit(function)] if gradient else [jax.jit(function)]


def _with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The products of drawn numbers with the derivatives of the results."""

    def both(*arrays: Any) -> Any:
        places = [place for place, each in enumerate(arrays) if jnp.issubdtype(each.dtype, np.floating)]

        def of_floats(*floats: Any) -> list[Any]:
            given = list(arrays)
            for place, each in zip(places, floats, strict=True):
                given[place] = each
            return jax.tree.leaves(function(*given))

        results, pull = jax.vjp(of_floats, *(arrays[place] for place in places))
        return pull([_cotangent(each) for each in results])

    return both


def _cotangent(x: Any) -> Any:
    if not jnp.issubdtype(x.dtype, np.floating):
        return np.zeros(x.shape, jax.dtypes.float0)
    drawn = np.random.Generator(np.random.PCG64(x.size)).standard_normal(x.shape)
    return jnp.asarray(drawn.astype(jnp.bfloat16), x.dtype)


def _turned(x: Any) -> Any:
    return x.T if isinstance(x, np.ndarray | jax.Array) and x.ndim > 1 else x


def _plain(x: Any) -> np.ndarray:
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)
