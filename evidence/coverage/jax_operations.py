"""Programs of JAX's operations and random numbers."""

from functools import partial
from typing import Any

import jax
from jax import Array, lax, nn
from jax import numpy as jnp
from jax import random as jr
from jax.scipy import special as sp
from jax.scipy import stats

from evidence.coverage.jax_networks import descent
from evidence.coverage.jax_training import Training, integers, normal
from evidence.coverage.registry import program


@program("jax", "random numbers")
def random_numbers() -> Any:
    """Of most of jax.random's distributions."""
    key, shape = jr.key(7), (5, 8)
    functions = {
        "bits": partial(jr.bits, shape=shape),
        "uniform": partial(jr.uniform, shape=shape, minval=-1.0, maxval=2.0),
        "normal": partial(jr.normal, shape=shape),
        "normal, bfloat16": partial(jr.normal, shape=shape, dtype=jnp.bfloat16),
        "truncated normal": partial(jr.truncated_normal, lower=-1.0, upper=2.0, shape=shape),
        "bernoulli": partial(jr.bernoulli, p=0.3, shape=shape),
        "categorical": partial(jr.categorical, logits=jnp.asarray(normal(5, 8))),
        "gumbel": partial(jr.gumbel, shape=shape),
        "exponential": partial(jr.exponential, shape=shape),
        "laplace": partial(jr.laplace, shape=shape),
        "logistic": partial(jr.logistic, shape=shape),
        "cauchy": partial(jr.cauchy, shape=shape),
        "gamma": partial(jr.gamma, a=jnp.linspace(0.3, 4.0, 8), shape=shape),
        "loggamma": partial(jr.loggamma, a=jnp.linspace(0.3, 4.0, 8), shape=shape),
        "beta": partial(jr.beta, a=2.0, b=0.7, shape=shape),
        "dirichlet": partial(jr.dirichlet, alpha=jnp.linspace(0.5, 2.0, 4), shape=(5,)),
        "chi-square": partial(jr.chisquare, df=3.0, shape=shape),
        "student": partial(jr.t, df=3.0, shape=shape),
        "poisson": partial(jr.poisson, lam=jnp.linspace(0.5, 20.0, 8), shape=shape),
        "binomial": partial(jr.binomial, n=20.0, p=0.4, shape=shape),
        "geometric": partial(jr.geometric, p=0.3, shape=shape),
        "rayleigh": partial(jr.rayleigh, scale=2.0, shape=shape),
        "weibull": partial(jr.weibull_min, scale=1.0, concentration=2.0, shape=shape),
        "pareto": partial(jr.pareto, b=3.0, shape=shape),
        "maxwell": partial(jr.maxwell, shape=shape),
        "wald": partial(jr.wald, mean=1.5, shape=shape),
        "triangular": partial(jr.triangular, left=0.0, mode=0.3, right=1.0, shape=shape),
        "double-sided maxwell": partial(jr.double_sided_maxwell, loc=0.0, scale=1.0, shape=shape),
        "generalized normal": partial(jr.generalized_normal, p=1.5, shape=shape),
        "orthogonal": partial(jr.orthogonal, n=5),
        "rademacher": partial(jr.rademacher, shape=shape),
        "permutation": partial(jr.permutation, x=20),
        "choice": partial(jr.choice, a=20, shape=(6,), replace=False, p=jnp.full(20, 0.05)),
        "multivariate normal": partial(jr.multivariate_normal, mean=jnp.zeros(3), cov=jnp.eye(3) + 0.2, shape=(5,)),
        "ball": partial(jr.ball, d=3, shape=(5,)),
    }
    return {name: jax.jit(function)(key) for name, function in functions.items()}


@program("jax", "gradient of a gamma sample")
def gamma_gradient() -> Training:
    def step(state: Any, _: Any) -> Any:
        shape, key = state
        key, own = jr.split(key)
        value, gradient = jax.value_and_grad(lambda a: (jr.gamma(own, a, (16, 3)) ** 2).mean())(shape)
        return (shape - 0.01 * gradient, key), value

    return Training((jnp.array([0.5, 1.0, 3.0]), jr.key(0)), step, [None])


@program("jax", "attention of jax.nn")
def attention() -> Training:
    """Grouped heads, causal, with a bias; in blocks by a scan beside it."""

    def loss(params: Any, x: Array) -> Array:
        q, k, v = (jnp.einsum("btd,dhe->bthe", x, each) for each in params)
        bias = -jnp.abs(jnp.arange(9)[:, None] - jnp.arange(9.0))[None, None] * 0.5
        outputs = nn.dot_product_attention(q, k, v, bias=bias, is_causal=True)
        return (outputs**2).mean() + nn.logsumexp(outputs, axis=-1).mean()

    params = [jnp.asarray(normal(8, heads, 8, key=key)) * 0.3 for key, heads in enumerate((4, 2, 2))]
    return descent(loss, params, [normal(2, 9, 8, key=key) for key in range(2)])


@program("jax", "selective state space, associative_scan")
def state_space() -> Training:
    def loss(params: Any, x: Array) -> Array:
        gates = jnp.exp(-nn.softplus(x @ params["gate"]))
        inputs = (1.0 - gates) * (x @ params["in"])
        _, states = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (gates, inputs), axis=1)
        return ((states @ params["out"] - jnp.roll(x, -1, 1)) ** 2).mean()

    params = {name: 0.2 * jnp.asarray(normal(8, 8, key=key)) for key, name in enumerate(("gate", "in", "out"))}
    return descent(loss, params, [normal(2, 11, 8, key=key) for key in range(2)])


@program("jax", "convolutions and pooling of lax")
def convolutions() -> Training:
    """One, two and three axes; dilated, grouped, transposed; windows of sums and maxima."""

    def loss(params: Any, x: Array) -> Array:
        dims = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, params["a"], (2, 1), "SAME", dimension_numbers=dims)
        y = lax.conv_general_dilated(
            nn.relu(y),
            params["b"],
            (1, 1),
            [(2, 1), (0, 2)],
            rhs_dilation=(2, 1),
            dimension_numbers=dims,
            feature_group_count=2,
        )
        z = lax.conv_transpose(y, params["c"], (2, 2), "SAME", dimension_numbers=dims)
        z = lax.reduce_window(z, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        z = lax.reduce_window(z, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
        line = lax.conv_general_dilated(z.reshape(2, 2, -1), params["d"], (3,), "VALID")
        return (line**2).mean() + jax.image.resize(y, (2, 9, 5, 4), "bilinear").mean()

    shapes = {"a": (3, 3, 2, 4), "b": (2, 3, 2, 4), "c": (3, 3, 4, 2), "d": (3, 2, 5)}
    params = {name: 0.1 * jnp.asarray(normal(*shape, key=key)) for key, (name, shape) in enumerate(shapes.items())}
    return descent(loss, params, [normal(2, 8, 8, 2, key=key) for key in range(2)])


@program("jax", "indexing, sorting, segments")
def indexing() -> Training:
    def loss(params: Array, index: Array) -> Array:
        rows = params[index]
        rows = rows.at[index % 5].add(0.5).at[::2].multiply(1.1, unique_indices=True).at[0].max(0.3)
        order = jnp.argsort(rows[:, 0])
        outputs = jnp.sort(rows, 0) * rows[order] + jnp.cumprod(1.0 + 0.1 * rows, 0) + lax.cumlogsumexp(rows, 0)
        best, _ = lax.top_k(outputs.T, 3)
        parts = jax.ops.segment_sum(outputs, index % 4, 4)
        return best.sum() + (parts**2).mean() + jnp.median(outputs) + jnp.var(outputs) + jnp.linalg.norm(outputs)

    return descent(loss, jnp.asarray(normal(7, 6, key=4)), [integers(7, 12, key=key) for key in range(2)])


@program("jax", "products over segments")
def segment_products() -> Any:
    return jax.jit(lambda x, i: jax.ops.segment_prod(x, i, 4))(normal(12, 6), integers(4, 12))


@program("jax", "linear algebra")
def linear_algebra() -> Training:
    """Cholesky and triangular systems, QR, solve, determinant, inverse."""

    def loss(x: Array, _: Any) -> Array:
        symmetric = x @ x.T + jnp.eye(5)
        factor = jnp.linalg.cholesky(symmetric)
        solved = jax.scipy.linalg.solve_triangular(factor, x, lower=True)
        q, r = jnp.linalg.qr(x)
        return (
            solved.sum()
            + jax.scipy.linalg.cho_solve((factor, True), x).sum()
            + (q * r).sum()
            + jnp.linalg.solve(symmetric, x).mean()
            + jnp.linalg.slogdet(symmetric)[1]
            + jnp.linalg.inv(symmetric).sum()
            + jnp.linalg.det(symmetric / 10.0)
        )

    def step(x: Array, batch: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(x, batch)
        return x - 0.01 * gradient, value

    return Training(0.5 * jnp.asarray(normal(5, 5, key=6)), step, [None])


@program("jax", "eigenvalues, singular values")
def eigenvalues() -> Training:
    def loss(x: Array, _: Any) -> Array:
        values, vectors = jnp.linalg.eigh(x + x.T)
        return (values**2).sum() + (vectors[0] * values).sum() + jnp.linalg.svd(x, compute_uv=False).sum()

    return descent(loss, jnp.asarray(normal(5, 5, key=6)), [None])


@program("jax", "fourier features")
def fourier() -> Training:
    """A filter in the frequencies of a signal."""

    def loss(params: Array, x: Array) -> Array:
        outputs = jnp.fft.irfft(jnp.fft.rfft(x) * params)
        return ((outputs - jnp.roll(x, 1, -1)) ** 2).mean()

    return descent(loss, jnp.ones(9), [normal(3, 16, key=key) for key in range(2)])


@program("jax", "fourier operator")
def fourier_operator() -> Training:
    """Weights for the lowest frequencies of a plane: Z. Li et al., Fourier Neural Operator, arXiv 2010.08895."""

    def loss(params: dict[str, Array], x: Array) -> Array:
        given = jnp.fft.rfft2(x[..., None] * params["lift"], axes=(1, 2))
        weight = lax.complex(params["real"], params["imaginary"])
        kept = jnp.einsum("bxyi,ioxy->bxyo", given[:, :4, :4], weight)
        made = jnp.zeros_like(given).at[:, :4, :4].set(kept)
        outputs = nn.gelu(jnp.fft.irfft2(made, s=x.shape[1:], axes=(1, 2))) @ params["project"]
        return ((outputs - jnp.cumsum(x, -1)) ** 2).mean()

    shapes = {"lift": (5,), "real": (5, 5, 4, 4), "imaginary": (5, 5, 4, 4), "project": (5,)}
    params = {name: 0.3 * jnp.asarray(normal(*shape, key=key)) for key, (name, shape) in enumerate(shapes.items())}
    return descent(loss, params, [normal(3, 16, 12, key=key) for key in range(2)])


@program("jax", "speech from raw sound")
def speech() -> Training:
    """The magnitudes of a spectrogram, bands, a recurrence over frames."""

    def loss(params: dict[str, Array], x: Array) -> Array:
        _, _, spectrum = jax.scipy.signal.stft(x, nperseg=64, noverlap=48)
        bands = jnp.log(jnp.abs(spectrum).mT ** 2 @ jnp.abs(params["bands"]) + 1e-5)

        def step(state: Array, frame: Array) -> tuple[Array, Array]:
            state = jnp.tanh(frame @ params["in"] + state @ params["again"])
            return state, state

        _, states = lax.scan(step, jnp.zeros((x.shape[0], 8)), jnp.moveaxis(bands, 1, 0))
        return -nn.log_softmax(states @ params["out"])[..., 1].mean()

    shapes = {"bands": (33, 6), "in": (6, 8), "again": (8, 8), "out": (8, 5)}
    params = {name: 0.3 * jnp.asarray(normal(*shape, key=key)) for key, (name, shape) in enumerate(shapes.items())}
    return descent(loss, params, [normal(3, 400, key=key) for key in range(2)])


@program("jax", "special functions")
def special() -> Any:
    x = 0.4 * jnp.asarray(normal(64, key=9))
    functions = {
        "erf": sp.erf,
        "erfc": sp.erfc,
        "erfinv": lambda x: sp.erfinv(x),
        "ndtri": lambda x: sp.ndtri(nn.sigmoid(x)),
        "lgamma": lambda x: sp.gammaln(x * x + 0.1),
        "digamma": lambda x: sp.digamma(x * x + 0.1),
        "polygamma": lambda x: sp.polygamma(1, x * x + 0.1),
        "zeta": lambda x: sp.zeta(x * x + 1.1, 2.0),
        "gammainc": lambda x: sp.gammainc(x * x + 0.1, 1.0),
        "gammaincc": lambda x: sp.gammaincc(1.0, x * x + 0.1),
        "betainc": lambda x: sp.betainc(2.0, 0.3, nn.sigmoid(x)),
        "i0": sp.i0,
        "i1e": sp.i1e,
        "xlogy": lambda x: sp.xlogy(x, x * x),
        "expit": sp.expit,
        "logit": lambda x: sp.logit(nn.sigmoid(x)),
        "log_ndtr": sp.log_ndtr,
        "entr": lambda x: sp.entr(x * x),
        "sinc": jnp.sinc,
        "sinh": jnp.sinh,
        "arctan2": lambda x: jnp.arctan2(x, x * x + 1),
        "power": lambda x: jnp.power(x * x, x),
        "logaddexp": lambda x: jnp.logaddexp(x, 2 * x),
        "hypot": lambda x: jnp.hypot(x, 1.0),
        "cbrt": jnp.cbrt,
        "exp2": jnp.exp2,
        "arcsin": jnp.arcsin,
        "arccosh": lambda x: jnp.arccosh(1.5 + x * x),
        "tan": jnp.tan,
        "log2": lambda x: jnp.log2(x * x + 0.1),
        "pdf": stats.norm.logpdf,
        "cdf": lambda x: stats.gamma.logcdf(x * x + 0.1, 2.0),
        "t": lambda x: stats.t.logpdf(x, 4.0),
    }
    both = lambda f: lambda x: (f(x), jax.vmap(jax.grad(f))(x))  # noqa: E731
    return {name: jax.jit(both(function))(x) for name, function in functions.items()}
