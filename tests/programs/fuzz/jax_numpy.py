"""Calls of JAX's other modules that need more than arrays; arguments by letters, as jax_functions.py has them."""

from collections.abc import Callable
from typing import Any

import jax
from jax import nn, random
from jax import numpy as jnp
from jax.scipy import linalg, special


def _of_numpy(name: str, *more: Any, **options: Any) -> Callable[..., Any]:
    """A function of `jax.numpy` with further arguments."""
    return lambda *arrays: getattr(jnp, name)(*arrays, *more, **options)


def _of_all(name: str) -> Callable[..., Any]:
    """A function of `jax.numpy` that takes a sequence of arrays."""
    return lambda *arrays: getattr(jnp, name)(arrays)


def _drawn(name: str, *parameters: Any, **more: Any) -> Callable[..., Any]:
    """500 random numbers of the type of x."""
    return lambda k, x: getattr(random, name)(k, *parameters, shape=(500,), dtype=x.dtype, **more)


CALLS: dict[str, tuple[str, Callable[..., Any]]] = {
    # --- jax.numpy: shapes and places ---------------------------------------------------------------------------------
    **{f"jnp.{name}": ("x y", _of_all(name)) for name in ["column_stack", "concat", "concatenate", "dstack"]},
    **{f"jnp.{name}": ("x y", _of_all(name)) for name in ["hstack", "lexsort", "stack", "vstack"]},
    **{
        f"jnp.{name}": ("x", _of_numpy(name, 2))
        for name in ["argpartition", "dsplit", "hsplit", "partition", "repeat", "split", "vsplit"]
    },
    "jnp.block": ("x y", lambda x, y: jnp.block([[x, y], [y, x]])),
    "jnp.broadcast_to": ("x", lambda x: jnp.broadcast_to(x, (2, *x.shape))),
    "jnp.choose": ("i x y", lambda i, x, y: jnp.choose(i, [x, y], mode="wrap")),
    "jnp.compress": ("b x", lambda b, x: jnp.compress(b.reshape(-1), x, size=5)),
    "jnp.delete": ("x", _of_numpy("delete", 1)),
    "jnp.expand_dims": ("x", _of_numpy("expand_dims", 0)),
    "jnp.extract": ("b x", _of_numpy("extract", size=5)),
    "jnp.fill_diagonal": ("|A", _of_numpy("fill_diagonal", 1, inplace=False)),
    "jnp.full_like": ("x", _of_numpy("full_like", 3)),
    "jnp.insert": ("x", _of_numpy("insert", 1, 2)),
    "jnp.moveaxis": ("x", _of_numpy("moveaxis", 0, -1)),
    "jnp.packbits": ("b", _of_numpy("packbits")),
    "jnp.pad": ("x", lambda x: [jnp.pad(x, 2, mode=mode) for mode in ("edge", "linear_ramp", "mean", "reflect")]),
    "jnp.permute_dims": ("x", lambda x: jnp.permute_dims(x, tuple(range(x.ndim))[::-1])),
    "jnp.put": ("x y", lambda x, y: jnp.put(x, jnp.array([1, 1, 0]), y.reshape(-1)[:3], inplace=False)),
    "jnp.put_along_axis": ("x i y", lambda x, i, y: jnp.put_along_axis(x, i[:1] % 2, y[:1], 0, inplace=False)),
    "jnp.reshape": ("x", _of_numpy("reshape", -1)),
    "jnp.resize": ("x", _of_numpy("resize", (3, 3))),
    "jnp.roll": ("x", _of_numpy("roll", 2)),
    "jnp.rollaxis": ("x", _of_numpy("rollaxis", 1)),
    "jnp.searchsorted": ("|v x", lambda v, x: jnp.searchsorted(jnp.sort(v), x)),
    "jnp.select": ("b x y", lambda b, x, y: jnp.select([b, ~b], [x, y])),
    "jnp.swapaxes": ("x", _of_numpy("swapaxes", 0, 1)),
    "jnp.take": ("x i", lambda x, i: jnp.take(x, i.reshape(-1)[:7])),
    "jnp.take_along_axis": ("x i", lambda x, i: jnp.take_along_axis(x, i[:1] % 2, 0)),
    "jnp.tile": ("x", _of_numpy("tile", 2)),
    "jnp.unpackbits": ("i", lambda i: jnp.unpackbits(i.astype("uint8"))),
    "jnp.digitize": ("x |v", lambda x, v: jnp.digitize(x, jnp.sort(v))),
    # --- jax.numpy: numbers -------------------------------------------------------------------------------------------
    "jnp.einsum": ("|A B C", lambda a, b, c: jnp.einsum("ij,jk,kl->li", a, b, c)),
    "jnp.geomspace": ("p q", lambda p, q: jnp.geomspace(p[..., 0], q[..., 0], 9)),
    "jnp.histogram": ("x", _of_numpy("histogram", 5)),
    "jnp.histogram_bin_edges": ("x", _of_numpy("histogram_bin_edges", 5)),
    "jnp.histogramdd": ("|A", _of_numpy("histogramdd", 2)),
    "jnp.linspace": ("x y", lambda x, y: jnp.linspace(x, y, 9)),
    "jnp.logspace": ("x y", lambda x, y: jnp.logspace(x, y, 9)),
    "jnp.nanpercentile": ("x", _of_numpy("nanpercentile", 30)),
    "jnp.nanquantile": ("x", _of_numpy("nanquantile", 0.3)),
    "jnp.percentile": ("x", _of_numpy("percentile", 30)),
    "jnp.quantile": ("x", _of_numpy("quantile", 0.3)),
    "jnp.piecewise": ("x", lambda x: jnp.piecewise(x, [x < 0, x >= 1], [jnp.exp, jnp.log, 0.0])),
    "jnp.polyfit": ("|v v", _of_numpy("polyfit", 2)),
    "jnp.linalg.cross": ("|A B", lambda a, b: jnp.linalg.cross(a[:, :3], b[:, :3])),
    "jnp.linalg.matrix_power": ("|A", lambda a: [jnp.linalg.matrix_power(a, n) for n in (-1, 0, 3)]),
    "jnp.linalg.multi_dot": ("|A B C", lambda *arrays: jnp.linalg.multi_dot(arrays)),
    "jnp.linalg.tensorinv": ("|A", lambda a: jnp.linalg.tensorinv(a.reshape(8, 4, 2), 1)),
    "jnp.linalg.tensorsolve": ("|A v", lambda a, v: jnp.linalg.tensorsolve(a, v)),
    # --- jax.nn, jax.scipy --------------------------------------------------------------------------------------------
    "nn.dot_product_attention": ("x y z", lambda q, k, v: nn.dot_product_attention(q[None], k[None], v[None])),
    "nn.one_hot": ("i", lambda i: nn.one_hot(i, 4)),
    "special.bernoulli": ("", lambda: special.bernoulli(9)),
    "special.bessel_jn": ("|v", lambda v: special.bessel_jn(v, v=3)),
    "special.expn": ("|p", lambda p: special.expn(2, p)),
    "special.hyp2f1": ("|p q u", lambda p, q, u: special.hyp2f1(p, q, p + q, u)),
    "special.multigammaln": ("p", lambda p: special.multigammaln(p + 2, 2)),
    "special.polygamma": ("p", lambda p: special.polygamma(2, p)),
    "scipy.linalg.cho_solve": ("|L B", lambda a, b: linalg.cho_solve((a, True), b)),
    "scipy.linalg.eigh_tridiagonal": ("|v", lambda v: linalg.eigh_tridiagonal(v, v[1:], eigvals_only=True)),
    "scipy.linalg.lu_solve": ("|A B", lambda a, b: linalg.lu_solve((a, jnp.arange(8)), b)),
    "scipy.linalg.solve_triangular": ("|L B", lambda a, b: linalg.solve_triangular(a, b, trans=1, lower=True)),
    "image.resize": (
        "x",
        lambda x: [jax.image.resize(x, (5, 3, 13), how) for how in ("nearest", "linear", "cubic", "lanczos3")],
    ),
    "image.scale_and_translate": (
        "x",
        lambda x: jax.image.scale_and_translate(
            x, (4, 5, 6), (1, 2), jnp.array([2.0, 0.7]), jnp.array([0.3, 1.0]), "cubic"
        ),
    ),
    # --- jax.random ---------------------------------------------------------------------------------------------------
    "random.ball": ("k x", lambda k, x: random.ball(k, 3, shape=(50,), dtype=x.dtype)),
    "random.bernoulli": ("k", lambda k: random.bernoulli(k, 0.3, (500,))),
    "random.beta": ("k x", _drawn("beta", 0.7, 2.0)),
    "random.binomial": ("k x", _drawn("binomial", 20, 0.3)),
    "random.bits": ("k", lambda k: random.bits(k, (500,))),
    "random.categorical": ("k x", lambda k, x: random.categorical(k, x)),
    "random.cauchy": ("k x", _drawn("cauchy")),
    "random.chisquare": ("k x", _drawn("chisquare", 3.0)),
    "random.choice": ("k x", lambda k, x: random.choice(k, x.reshape(-1), (9,), p=nn.softmax(x.reshape(-1)))),
    "random.dirichlet": ("k x", lambda k, x: random.dirichlet(k, abs(x[0, 0]) + 0.5, (9,), dtype=x.dtype)),
    "random.double_sided_maxwell": ("k x", _drawn("double_sided_maxwell", 1.0, 2.0)),
    "random.exponential": ("k x", _drawn("exponential")),
    "random.f": ("k x", _drawn("f", 3.0, 5.0)),
    "random.fold_in": ("k", lambda k: random.fold_in(k, 3)),
    "random.gamma": ("k x", _drawn("gamma", 0.7)),
    "random.generalized_normal": ("k x", _drawn("generalized_normal", 1.5)),
    "random.geometric": ("k", lambda k: random.geometric(k, 0.3, (500,))),
    "random.gumbel": ("k x", _drawn("gumbel")),
    "random.laplace": ("k x", _drawn("laplace")),
    "random.loggamma": ("k x", _drawn("loggamma", 0.7)),
    "random.logistic": ("k x", _drawn("logistic")),
    "random.lognormal": ("k x", _drawn("lognormal")),
    "random.maxwell": ("k x", _drawn("maxwell")),
    "random.multinomial": ("k x", lambda k, x: random.multinomial(k, 20, nn.softmax(x), dtype=x.dtype)),
    "random.multivariate_normal": (
        "k x |v S",
        lambda k, x, v, s: random.multivariate_normal(k, v, s, (9,), dtype=x.dtype),
    ),
    "random.normal": ("k x", _drawn("normal")),
    "random.orthogonal": ("k x", lambda k, x: random.orthogonal(k, 5, dtype=x.dtype)),
    "random.pareto": ("k x", _drawn("pareto", 2.0)),
    "random.permutation": ("k x", lambda k, x: random.permutation(k, x)),
    "random.poisson": ("k", lambda k: [random.poisson(k, mean, (500,)) for mean in (0.5, 30.0)]),
    "random.rademacher": ("k", lambda k: random.rademacher(k, (500,))),
    "random.randint": ("k", lambda k: random.randint(k, (500,), 0, 100)),
    "random.rayleigh": ("k x", _drawn("rayleigh", 1.0)),
    "random.t": ("k x", _drawn("t", 3.0)),
    "random.triangular": ("k x", _drawn("triangular", 0.0, 0.3, 1.0)),
    "random.truncated_normal": ("k x", _drawn("truncated_normal", -2.0, 2.0)),
    "random.uniform": ("k x", _drawn("uniform")),
    "random.wald": ("k x", _drawn("wald", 1.0)),
    "random.weibull_min": ("k x", _drawn("weibull_min", 1.0, 2.0)),
}
