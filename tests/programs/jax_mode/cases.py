"""JAX's primitives under the mode: prints, as JSON, what each case found."""

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.export
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jax.sharding import Mesh, PartitionSpec

import repro.portable.jax as portable
from programs.jax_mode.conversions import conversions
from repro.portable.backends.jax import Backend
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.jax.dispatcher import gate

HERE = f"{__file__}:"
RANDOM = np.random.default_rng(0)


def drawn(*shape: int, octaves: int = 20) -> np.ndarray:
    """float32 of several magnitudes."""
    return (RANDOM.normal(size=shape) * np.exp2(RANDOM.integers(-octaves, 5, shape))).astype(np.float32)


def leaves(results: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in jax.tree.leaves(results)]


def same(first: Any, second: Any) -> bool:
    pairs = list(zip(leaves(first), leaves(second), strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in pairs)


# --- kernels and definitions ------------------------------------------------------------------------------------------


def by_kernels_and_without(function: Callable[..., Any], *arrays: np.ndarray) -> bool:
    """True if both give the same bits; also on a processor that has no kernels."""
    result, engine = [], Backend.engine
    for Backend.engine in (engine, "float64"):
        jax.clear_caches()
        result.append(jax.jit(function)(*arrays))
    Backend.engine = engine
    return same(*result)


def convolution(*shape: int, **how: Any) -> Callable[[Array, Array], Any]:
    """A convolution and both its gradients."""
    names = ("NHWC", "HWIO", "NHWC")
    how = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": names} | how

    def all_of(x: Array, kernel: Array) -> Any:
        def loss(x: Array, kernel: Array) -> tuple[Array, Array]:
            y = lax.conv_general_dilated(x, kernel, **how)
            return (y * y).sum(), y

        return jax.grad(loss, (0, 1), has_aux=True)(x, kernel)

    return all_of


def special() -> np.ndarray:
    x = drawn(64, 64)
    x[3, 5], x[7, 7], x[9], x[11], x[12] = np.inf, np.nan, 0, 1e38, 1e-38
    return x


def kernels() -> dict[str, bool]:
    """By case, whether kernels give what definitions give."""
    images, kernel = drawn(4, 12, 12, 3), drawn(3, 3, 3, 8)
    cases: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
        "odd sizes": (jnp.matmul, (drawn(1, 33, 65), drawn(1, 65, 17))),
        "whole tiles": (jnp.matmul, (drawn(64, 128), drawn(128, 64))),
        "a batch": (jnp.matmul, (drawn(3, 7, 90), drawn(3, 90, 40))),
        "a row": (jnp.matmul, (drawn(1, 4096), drawn(4096, 3))),
        "a column": (jnp.matmul, (drawn(4096, 3), drawn(3, 1))),
        "special numbers": (jnp.matmul, (special(), special())),
        "a sum": (lambda x: (x.sum(), x.sum(0), x.sum(1)), (drawn(70, 130),)),
        "a long sum": (lambda x: jnp.round(x * x[:1]).sum(), (drawn(7000),)),
        "a sum in the middle": (lambda x: x.sum((1, 2)), (drawn(3, 50, 7, 33),)),
        "a sum of special numbers": (lambda x: (x.sum(), x.sum(0), x.sum(1)), (special(),)),
        "a convolution": (convolution(), (images, kernel)),
        "strides and edges": (convolution(window_strides=(2, 1), padding=((2, 1), (0, 3))), (images, kernel)),
        "holes": (convolution(padding=((1, 1), (2, -1)), lhs_dilation=(2, 3), rhs_dilation=(1, 2)), (images, kernel)),
    }
    return {name: by_kernels_and_without(function, *arrays) for name, (function, arrays) in cases.items()}


# --- transformations --------------------------------------------------------------------------------------------------


def network(weights: tuple[np.ndarray, np.ndarray], x: Array) -> Array:
    return jax.nn.log_softmax(jnp.tanh(x @ weights[0]) @ weights[1]).mean()


def transformations() -> dict[str, bool]:
    """By transformation, whether it gives the bits of the plain computation; all of them are made of several."""
    weights, x = (drawn(32, 16, octaves=1), drawn(16, 8, octaves=1)), drawn(8, 32, octaves=1)
    gradient = jax.grad(network)
    plain = gradient(weights, x)
    mesh = Mesh(np.array(jax.devices()), ("parts",))
    parts, everywhere = PartitionSpec("parts"), PartitionSpec()

    def total(x: Array) -> Array:
        return lax.psum(x.sum(0), "parts")

    shared = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=parts, out_specs=everywhere))(x)
    mapped = jax.pmap(total, axis_name="parts")(x.reshape(2, 4, 32))[0]
    loop = lax.scan(lambda carry, row: (carry + jnp.exp(row), carry.sum()), jnp.zeros(32), x)

    def unrolled() -> tuple[Array, Array]:
        carry, sums = jnp.zeros(32), []
        for row in x:
            sums.append(carry.sum())
            carry = carry + jnp.exp(row)
        return carry, jnp.stack(sums)

    return {
        "jit": same(jax.jit(gradient)(weights, x), plain),
        "vmap": same(jax.jit(jax.vmap(jnp.sin))(x), jnp.stack([jnp.sin(row) for row in x])),
        "checkpoint": same(jax.grad(jax.checkpoint(network))(weights, x), plain),
        "scan": same(loop, unrolled()),
        "cond": same(lax.cond(x[0, 0] > 2, jnp.cos, jnp.sin, x), jnp.sin(x)),
        "while": same(lax.fori_loop(0, 2, lambda _, y: jnp.exp(-y * y), x), jnp.exp(-(jnp.exp(-x * x) ** 2))),
        "shard_map": shared.shape == (32,) and same(shared, mapped),
    }


# --- numbers ----------------------------------------------------------------------------------------------------------


def arithmetic() -> dict[str, bool]:
    """By case, whether what XLA compiles together is what NumPy gives, one operation at a time."""
    results = {}
    for dtype in ("float32", "float64"):
        a, b, c = (np.array(drawn(50, 33, octaves=3), dtype) for _ in range(3))
        row = np.abs(b[:1]) + np.array(0.1, dtype)
        with jax.enable_x64(True):
            compiled = jax.jit(
                lambda a, b, c, row: (a * b + c, a / 3.0, a / row, a / jnp.sqrt(row), (a + 1e3) - 1e3, (a * 0.3) * 0.7)
            )(a, b, c, row)
        third, thousand, three, seven = (np.array(x, dtype) for x in (3, 1e3, 0.3, 0.7))
        right: Any = (a * b + c, a / third, a / row, a / np.sqrt(row), (a + thousand) - thousand, (a * three) * seven)
        for name, one, other in zip(
            ("sum", "third", "row", "root", "constant", "factors"), compiled, right, strict=True
        ):
            results[f"{name} {dtype}"] = same(one, other)
    return results


def precision() -> dict[str, float]:
    """The error of a product beside an outlier, by what the program or the mode asks for."""
    a, b = drawn(16, 64, octaves=1), drawn(64, 16, octaves=1)
    a[:, 0] = 1000
    right = a.astype(np.float64) @ b.astype(np.float64)
    results = {}
    for name, given in (("default", None), ("highest", lax.Precision.HIGHEST)):
        y = jax.jit(lambda a, b, given=given: jnp.matmul(a, b, precision=given))(a, b)
        results[name] = float(np.abs(y - right).max())
    with jax.enable_x64(True):
        y = jax.jit(jnp.matmul)(a.astype(np.float64), b.astype(np.float64))
    results["float64"] = float(np.abs(y - right).max())
    return results


# --- reductions, factors of matrices ----------------------------------------------------------------------------------


def reductions() -> dict[str, bool]:
    """Choices, and functions of the program."""
    x = drawn(5, 7, 9, octaves=1)
    x[2, 3], x[1, 1, 1] = x[2, 5], np.nan
    places, low = np.arange(x.size, dtype=np.int32).reshape(x.shape), (np.float32(np.inf), np.int32(0))

    def least(a: Any, b: Any) -> Any:
        return jnp.minimum(a[0], b[0]), jnp.where(a[0] <= b[0], a[1], b[1])

    @jax.jit
    def computed(x: Array) -> Any:
        both = lax.reduce((x[2:], places[2:]), low, least, (0, 2))
        total = lax.reduce(x[0], np.float32(1), lambda a, b: a + b, (0,))
        return (
            jnp.argmax(x, 1),
            jnp.argmin(x),
            both,
            total,
            lax.reduce(x[:0], np.float32(7), lambda a, b: a * b, (0, 1)),
        )

    most, place, (values, at), total, none = computed(x)
    pairs = list(x[0])
    while len(pairs) > 1:
        even = len(pairs) & ~1
        pairs = [*(a + b for a, b in zip(pairs[0:even:2], pairs[1:even:2], strict=True)), *pairs[even:]]
    return {
        "argmax": np.array_equal(most, x.argmax(1)),
        "argmin": bool(place == x.argmin()),
        "with its place": same(values, x[2:].min((0, 2))) and same(x.reshape(-1)[at], values),
        "in rounds": same(total, np.float32(1) + pairs[0]),
        "of none": none.tolist() == [7.0] * 9,
    }


def layers() -> dict[str, bool]:
    """Tests that XLA compiles layers of several networks at once, and does not add transpositions without end."""
    x, first, shift, last = drawn(16, 8), drawn(3, 8, 16), drawn(3, 16), drawn(3, 16, 4)
    function = jax.jit(jax.vmap(lambda first, shift, last: jnp.tanh(x @ first + shift) @ last))
    text = function.lower(first, shift, last).compile().as_text()
    return {"few transpositions": text.count(" transpose(") < 100}


def factors() -> dict[str, float]:
    """Errors, relative to the largest number."""
    x, tall = drawn(5, 5, octaves=1), drawn(2, 7, 4, octaves=1)
    tall[0, :, 2], tall[1, :, 3] = tall[0, :, 1], 0

    @jax.jit
    def computed(x: Array, tall: Array) -> Any:
        values, vectors = jnp.linalg.eigh(x + x.T)
        return lax.linalg.lu(x), values, vectors, jnp.linalg.svd(tall), jnp.linalg.svd(tall, compute_uv=False)

    (lu, _, order), values, vectors, (left, sizes, right), alone = jax.tree.map(np.float64, computed(x, tall))
    symmetric = np.float64(x + x.T)
    lower, upper = np.tril(lu, -1) + np.eye(5), np.triu(lu)
    results = {
        "lu": (lower @ upper, x[order.astype(int)]),
        "eigenvalues": (values, np.linalg.eigvalsh(symmetric)),
        "eigenvectors": (vectors * values @ vectors.T, symmetric),
        "singular values": (alone, np.linalg.svd(np.float64(tall), compute_uv=False)),
        "singular vectors": (left[..., :4] * sizes[..., None, :] @ right, tall),
        "orthogonal": (np.swapaxes(left, -1, -2) @ left, np.broadcast_to(np.eye(7), (2, 7, 7))),
        "zeta": (float(jax.scipy.special.zeta(np.float32(1.5), 1.0)), 2.612375348685488),
        "trigamma": (float(jax.scipy.special.polygamma(1, np.float32(0.5))), 4.934802200544679),
        "incomplete gamma": (float(jax.scipy.special.gammainc(np.float32(2.0), 1.0)), 0.26424111765711533),
    }
    return {name: float(np.abs(one - other).max() / np.abs(other).max()) for name, (one, other) in results.items()}


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(function: Callable[[], Any]) -> str:
    """The error's text, with this file's name left out."""
    try:
        function()
    except RefusedError as error:
        return str(error).replace(HERE, "line ")
    return "passed"


def spectrum(x: Array) -> Array:
    frequencies = jnp.fft.fft(x)  # FFT
    return jnp.abs(frequencies).sum()


def refusals() -> dict[str, str]:
    x = np.eye(3, dtype=np.float32)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    results = {
        "eager": refused(lambda: lax.linalg.schur(x)),  # EAGER
        "jit": refused(lambda: jax.jit(lambda x: lax.linalg.hessenberg(x)[0])(x)),  # JIT
        "fft": refused(lambda: jax.jit(jax.grad(spectrum))(np.ones(2**23 + 1, np.float32))),
        "callback": refused(lambda: jax.pure_callback(np.sin, shape, x)),
        "complex": refused(lambda: lax.linalg.lu(lax.complex(x, x))),
        "reduction": refused(lambda: lax.reduce(x, np.float32(0), lambda a, b: jnp.exp(a) + b, (0,))),
        "exported": refused(lambda: jax.export.export(jax.jit(jnp.tanh))(shape).call(x)),
    }
    portable.disable()
    portable.enable(allow=["schur"])
    results["allowed"] = refused(lambda: lax.linalg.schur(x))
    results["summary"] = portable.summary().partition("; ")[2]
    return results


def errors() -> dict[str, str]:
    """The messages about options, and about a mode that comes too late."""
    results = {}
    wrong: dict[str, Any] = {"name": {"allow": ["svdd"]}, "precision": {"precision": "low"}}
    for name, options in wrong.items():
        portable.disable()
        try:
            portable.enable(**options)
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    portable.enable()
    try:
        portable.enable(allow=["svd"])
    except Exception as error:
        results["twice"] = str(error)
    portable.disable()
    x = np.array([[1.5, 2.5]], np.float32)
    results["own again"] = str(gate.counts.total() == (jnp.dot(x, x.T).item() and gate.counts.total()))
    flags = os.environ.pop("XLA_FLAGS")
    try:
        portable.enable()
    except Exception as error:
        results["late"] = str(error)
    os.environ["XLA_FLAGS"] = flags
    return results


def main() -> None:
    portable.enable()
    cases = (kernels, transformations, arithmetic, precision, reductions, layers, factors, refusals, errors)
    print(json.dumps({case.__name__: case() for case in (conversions, *cases)}))


if __name__ == "__main__":
    main()
