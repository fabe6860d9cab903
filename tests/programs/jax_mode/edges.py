"""What is empty, repeated, an integer, or leaves the process, under the mode: prints, as JSON, what each case gave."""

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.experimental
import jax.export
import numpy as np
import scipy.special
from jax import Array, lax
from jax import numpy as jnp

import repro.portable.jax as portable
from programs.jax_mode.cases import leaves, refused, same

RANDOM = np.random.Generator(np.random.PCG64(51))
EMPTY = ((0, 0), (2, 0, 0), (0, 3, 3), (0, 3), (3, 0))


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def empty() -> list[str]:
    """Functions whose results of empty arrays have other shapes or types than JAX says, or other numbers."""

    def windows(function: Any, first: float) -> Callable[[Any], Any]:
        return lambda x: lax.reduce_window(x, np.float32(first), function, (3,) * x.ndim, (2,) * x.ndim, "SAME")

    adding, choosing = windows(lax.add, 0), windows(lax.max, -np.inf)
    functions: dict[str, Callable[..., Any]] = {
        "sums": adding,
        "gradients of sums": jax.grad(lambda x: adding(x).sum()),
        "gradients of maxima": jax.grad(lambda x: choosing(x).sum()),
        **{name: getattr(lax.linalg, name) for name in ("lu", "qr", "svd")},
    }
    square = {
        "solve": lambda x: jnp.linalg.solve(x, x),
        "inv": jnp.linalg.inv,
        **{name: getattr(lax.linalg, name) for name in ("cholesky", "eigh")},
    }
    wrong = []
    for shape in EMPTY:
        x = np.zeros(shape, np.float32)
        for name, function in (functions | (square if shape[-1] == shape[-2] else {})).items():
            results, described = jax.jit(function)(x), jax.eval_shape(function, x)
            right = [(each.shape, each.dtype) for each in jax.tree.leaves(described)]
            if [(each.shape, each.dtype) for each in leaves(results)] != right:
                wrong.append(f"{name} {shape}")
    nothing = np.zeros((0, 0), np.float32)
    if not same(jax.jit(jnp.linalg.slogdet)(nothing), (np.float32(1), np.float32(0))):
        wrong.append("slogdet")
    if not same(jax.jit(lambda x: lax.linalg.qr(x)[0])(np.zeros((3, 0), np.float32)), np.eye(3, dtype=np.float32)):
        wrong.append("qr")
    return wrong


def repeated() -> dict[str, bool]:
    """By type, whether products at repeated indices are those of the updates in their order, each rounded."""
    results = {}
    for dtype in ("float32", "bfloat16", "float64"):
        with jax.enable_x64(True):
            x, factors = numbers(20, 64).astype(jnp.dtype(dtype)), (1 + numbers(3000, 64) / 10).astype(jnp.dtype(dtype))
            places = RANDOM.integers(0, 20, len(factors))
            y = np.asarray(jax.jit(lambda x, places, factors: x.at[places].multiply(factors))(x, places, factors))
        for place, factor in zip(places, factors, strict=True):
            x[place] = x[place] * factor
        results[dtype] = same(y, x)
    return results


def slopes_next_to_zero() -> list[float]:
    """The derivative of igamma at subnormal numbers of float64 and float32, which are 0 to XLA, and at 0."""
    with jax.enable_x64(True):
        given = np.array([5e-324, 1e-310, 0.0]), np.array([1e-45, 4e-39, 0.0], np.float32)
        return [y for x in given for y in jax.jit(lax.igamma_grad_a)(np.full_like(x, 0.5), x).tolist()]


def slopes_at_infinity() -> list[float]:
    """The derivative of igamma with respect to its parameter, where that, x, or both are infinite."""
    a, x = np.array([[np.inf, 2.0, np.inf], [2.0, np.inf, np.inf]], np.float32)
    return np.asarray(lax.igamma_grad_a(a, x)).tolist()


def incomplete() -> dict[str, float]:
    """The largest relative error of incomplete gamma and beta functions, in units of 2^-24."""
    a, b = (np.exp(3 * RANDOM.standard_normal(3000)).astype(np.float32) for _ in range(2))
    x, share = (a * np.exp(RANDOM.standard_normal(3000) / 4)).astype(np.float32), RANDOM.random(3000).astype(np.float32)
    pairs = {
        "igamma": (lax.igamma(a, x), scipy.special.gammainc(np.float64(a), x)),
        "igammac": (lax.igammac(a, x), scipy.special.gammaincc(np.float64(a), x)),
        "betainc": (lax.betainc(a, b, share), scipy.special.betainc(np.float64(a), b, share)),
    }
    errors = {}
    for name, (one, other) in pairs.items():
        usual = other > 2.0**-126
        errors[name] = float(np.max(np.abs(np.float64(one) / np.where(usual, other, 1) - 1)[usual]) * 2**24)
    return errors


def shares_at_edges() -> list[list[float]]:
    """igamma and igammac of a parameter 0, of x = 0, and of parameters for which terms overflow."""
    with jax.enable_x64(True):
        a, x = np.array([0.0, 0.0, 2.0, 1.5e307, 1e306]), np.array([1.0, np.inf, 0.0, 2e307, 1e305])
        return [np.asarray(function(a, x)).tolist() for function in (lax.igamma, lax.igammac)]


def integers() -> dict[str, str]:
    """Integers alone: what is not known is refused as well; what has no result passes."""
    x, seen = np.arange(4, dtype=np.int32), list[Any]()
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    key = np.arange(4, dtype=np.uint32)
    return {
        "callback": refused(lambda: jax.pure_callback(lambda x: x, shape, x)),
        "generator": refused(lambda: lax.rng_bit_generator(key, (3,))),
        "key": refused(lambda: jax.random.normal(jax.random.key(0, impl="rbg"), (3,))),
        "order": refused(lambda: lax.linalg.lu_pivots_to_permutation(jnp.array([1, 2, 2]), 3)),
        "no result": refused(lambda: jax.experimental.io_callback(seen.append, None, x)),
    }


def exported() -> dict[str, bool]:
    """An exported program calls no kernels, and has the same bits where it is called."""
    x = numbers(64, 64)
    function = jax.jit(lambda x: jnp.tanh(x @ x).sum() + jnp.exp(x))
    by_kernels = np.asarray(function(x))
    program = jax.export.export(function)(x)
    portable.disable()
    try:
        by_program = np.asarray(program.call(x))
    finally:
        portable.enable()
    return {"kernels": "custom_call" in program.mlir_module(), "same": same(by_kernels, by_program)}


def draws() -> list[np.ndarray]:
    """Random bits of one key and of several, of even and odd sizes, of keys made of keys."""
    key = jax.random.key(7)
    keys = jax.random.split(jax.random.fold_in(key, 3), 5)
    shapes = (), (1,), (37,), (8, 64), (0, 3)
    several = jax.vmap(lambda key: jax.random.bits(key, (6, 3)))(keys)
    return [*(np.asarray(jax.random.bits(key, shape)) for shape in shapes), np.asarray(several)]


def random_bits() -> list[bool]:
    """Whether random bits are JAX's own."""
    drawn = draws()
    portable.disable()
    try:
        own = draws()
    finally:
        portable.enable()
    return [x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(drawn, own, strict=True)]


def powers_compiled() -> list[int]:
    """The number of roundings down, of which a power has some, in programs of two and of eight arrays that read one power."""

    def scaled(arrays: list[Array], count: Array) -> list[Array]:
        return [x / (1 - 0.9**count) for x in arrays]

    given = [numbers(64 + more) for more in range(8)]
    programs = (jax.jit(scaled).lower(given[:count], np.int32(3)).compile() for count in (2, 8))
    return [str(program.as_text()).count("floor(") for program in programs]


def main() -> None:
    portable.enable()
    print(
        json.dumps(
            {
                case.__name__: case()
                for case in (
                    empty,
                    repeated,
                    slopes_next_to_zero,
                    slopes_at_infinity,
                    incomplete,
                    shares_at_edges,
                    integers,
                    exported,
                    random_bits,
                    powers_compiled,
                )
            }
        )
    )


if __name__ == "__main__":
    main()
