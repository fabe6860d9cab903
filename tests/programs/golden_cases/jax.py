"""golden/operations.txt in JAX: rows of cases, and operations that other frameworks have as well.

A case is one compiled function: of plain arrays, or of others that are cut from larger ones in it.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jax.experimental import sparse

import repro.portable.jax as portable
from programs.golden_cases import cases, exceptions, jax_cases
from programs.golden_cases.cases import DRAWS, Arrays, Case, drawn, filler, upstream
from programs.golden_cases.table import Row
from repro.portable.modes.jax.dispatcher import gate, registry

QUICK = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
"""XLA compiles in half the time, and what it makes has the same bits."""


CASES: dict[str, Case] = {}
case = filler(CASES)


def both(z: Array) -> Array:
    """The real and the imaginary parts, side by side."""
    return jnp.stack([lax.real(z), lax.imag(z)], -1)


# --- elements ---------------------------------------------------------------------------------------------------------

for _name in (
    *("exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    *("cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "digamma", "atan2", "pow"),
    *("square", "reciprocal"),
):
    case(_name, getattr(lax, _name))
case("sigmoid", lax.logistic)
case("erfinv", lax.erf_inv)
case("i0e", lax.bessel_i0e)
case("i1e", lax.bessel_i1e)
for _name in ("add", "subtract", "multiply", "divide"):
    case(_name[:3], getattr(jnp, _name))
case("maximum", jnp.maximum)
case("minimum", jnp.minimum)
case("exp-large", lax.exp)
case("pow-number", lambda x: x**1.7)

# --- products and sums ------------------------------------------------------------------------------------------------

case("matmul", jnp.matmul)
case("matmul-batched", jnp.matmul)
case("matmul-large", jnp.matmul)
case("matmul-vector", jnp.matmul)
case("dot", jnp.dot)
case("einsum", lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b))
case("complex-mul", lambda a, b: both(lax.complex(a, b) * lax.complex(b, a)))
case("complex-matmul", lambda a, b: both(lax.complex(a, -a) @ lax.complex(b, b + b)))
for _name in cases.COMPLEX:
    _theirs = "logistic" if _name == "sigmoid" else _name
    case(f"complex-{_name}", lambda a, b, name=_theirs: both(getattr(lax, name)(lax.complex(a, b))))
for _name in ("zeta", "igamma", "igammac", "igamma_grad_a", "betainc"):
    case(_name, getattr(lax, _name), gradient=False)
case("polygamma", lambda x: lax.polygamma(jnp.full_like(x, 2), x), gradient=False)
case("rfft-long", lambda x: both(jnp.fft.rfft(x)))
case("fft-prime", lambda a, b: both(jnp.fft.fft(lax.complex(a, b))))
case("rfft2", lambda x: both(jnp.fft.rfft2(x)))
case("sum", lambda x: jnp.sum(x, 1))
case("sum-all", jnp.sum)
case("sum-axes", lambda x: jnp.sum(x, (0, 2)))
case("sum-large", lambda x: jnp.sum(x, 1))
case("prod", lambda x: jnp.prod(x, 1))
case("prod-all", jnp.prod)
case("cumsum", lambda x: lax.cumsum(x, 1))
case("cumsum-backward", lambda x: lax.cumsum(x, 1, reverse=True))
case("cumprod", lambda x: lax.cumprod(x, 1))
case("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1))
case("cumlogsumexp-forward", lambda x: lax.cumlogsumexp(x, 1), gradient=False)
case("max", lambda x: jnp.max(x, 1))

# --- windows ----------------------------------------------------------------------------------------------------------


def convolved(steps: int = 1, padding: Any = "VALID", **options: Any) -> Callable[..., Any]:
    def function(x: Any, w: Any) -> Any:
        d = x.ndim - 2
        names = ("N" + "DHW"[-d:] + "C", "DHW"[-d:] + "IO", "N" + "DHW"[-d:] + "C")
        given = {key: (value,) * d if "dilation" in key else value for key, value in options.items()}
        return lax.conv_general_dilated(x, w, (steps,) * d, padding, dimension_numbers=names, **given)

    return function


def transposed(x: Any, w: Any) -> Any:
    """From [..., C] to [..., K]."""
    w = jnp.flip(w, range(w.ndim - 2))
    return convolved(1, [(n - 1, n - 1) for n in w.shape[:-2]], lhs_dilation=2)(x, w)


def pooled(size: int, steps: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        d = x.ndim - 2
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, *(size,) * d, 1), (1, *(steps,) * d, 1), "VALID")

    return function


case("conv1d", convolved())
case("conv1d-dilated", convolved(rhs_dilation=2))
case("conv2d", convolved())
case("conv2d-stride", convolved(2))
case("conv2d-same", convolved(1, "SAME"))
case("conv2d-dilated", convolved(rhs_dilation=2))
case("conv2d-grouped", convolved(feature_group_count=2))
case("conv2d-depthwise", lambda x, w: convolved(feature_group_count=4)(x, w.reshape(3, 3, 1, 4)))
case("conv2d-point", convolved())
case("conv2d-large", convolved(1, "SAME"))
case("conv3d", convolved())
case("conv3d-stride", convolved(2))
for _d in (1, 2, 3):
    case(f"conv_transpose{_d}d", transposed)
case("max_pool2d", pooled(3, 2))
case("max_pool2d-ties", pooled(3, 2))
case("max_pool3d", pooled(2, 1))

# --- by index, linear algebra -----------------------------------------------------------------------------------------

case("embedding", lambda w, i: w[i])
case("index_add", lambda x, i, y: x.at[i].add(y))
case("index_sub", lambda x, i, y: x.at[i].subtract(y))
case("index_set", lambda x, i, y: x.at[i].set(y), gradient=False)
case("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 11))
case("gather", lambda x, i: x[i])
case("pad-mirror", lambda x: jnp.pad(x, ((0, 0), (2, 3)), "reflect"))
case("sparse-product", lambda i, x, b: sparse.BCOO((x, jnp.stack([jnp.arange(8), i], 1)), shape=(8, 9)) @ b)
case("sparse-product-rows", lambda i, x, b: sparse.BCSR((x, i, jnp.arange(9)), shape=(8, 9)) @ b)


def raw(x: Any) -> Any:
    """R with the vectors of reflections below it, and their factors."""
    factors, taus = jnp.linalg.qr(x, mode="raw")
    return jnp.swapaxes(factors, -1, -2), taus


case("qr", lambda x: tuple(jnp.linalg.qr(x)))
case("cholesky", lambda x: jnp.linalg.cholesky(x, symmetrize_input=False))
case("triangular_solve", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
case("solve", jnp.linalg.solve)
case("inverse", jnp.linalg.inv)
case("determinant", jnp.linalg.det)
case("slogdet", lambda x: tuple(jnp.linalg.slogdet(x)))
case("tridiagonal_solve", lambda d, b: lax.linalg.tridiagonal_solve(d[:, 2], d[:, 1], d[:, 0], b))
case("eigh", lambda x: tuple(jnp.linalg.eigh(x, symmetrize_input=False)))
case("svd", lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)))
case("reflections", raw, gradient=False)
case("householder_product", lax.linalg.householder_product, gradient=False)
case("ormqr", lax.linalg.ormqr, gradient=False)

# --- rows -------------------------------------------------------------------------------------------------------------


def padded(x: np.ndarray) -> np.ndarray:
    """Every other number of a larger array, with its axes turned around."""
    turned = np.zeros((*x.shape[:0:-1], 2 * x.shape[0]) if x.ndim else (2,), x.dtype)
    turned[..., ::2] = x.T
    return turned


def passed(case: Case, layout: str) -> Callable[..., Any]:
    """A function of arrays and of numbers for gradients, which gives results and gradients."""

    def both(given: list[Any], numbers: Any) -> Any:
        given = [x[..., ::2].T if layout == "strided" else x for x in given]
        places = [i for i, x in enumerate(given) if jnp.issubdtype(x.dtype, jnp.floating) and case.gradient]

        def call(*leaves: Any) -> list[Any]:
            every = [leaves[places.index(i)] if i in places else x for i, x in enumerate(given)]
            result = case.function(*every)
            return list(result) if isinstance(result, (tuple, list)) else [result]

        if not places:
            return call(), []
        results, pull = jax.vjp(call, *(given[i] for i in places))
        return results, list(pull([numbers[i : i + y.size].reshape(y.shape) for i, y in enumerate(results)]))

    return jax.jit(both)


def computed(name: str, case: Case, dtype: str, layout: str) -> Iterator[tuple[Arrays, Arrays]]:
    function = passed(case, layout)
    with jax.enable_x64(dtype == "float64"):
        for draw in range(DRAWS):
            given = drawn(name, case.inputs, draw, dtype)
            given = [padded(x) for x in given] if layout == "strided" else given
            results, slopes = function(given, upstream(draw, dtype))
            yield [np.asarray(each) for each in results], [np.asarray(each) for each in slopes]


def rows(only: str = "") -> dict[Row, str]:
    os.environ.setdefault("XLA_FLAGS", QUICK)
    portable.enable()
    return cases.rows(CASES | jax_cases.CASES, computed, (portable.RefusedError,), only)


def missing() -> list[str]:
    """Definitions of the mode's registry that no row computed, and that are no exceptions."""
    return exceptions.unknown("jax", {*registry.definitions, *registry.rules} - set(gate.counts))
