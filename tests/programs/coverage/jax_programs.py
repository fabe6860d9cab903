"""Programs of JAX alone: transformations, control flow, types, random numbers, eager training."""

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array, lax, nn
from jax import numpy as jnp
from jax import random as jr
from jax.scipy import special as sp
from jax.scipy import stats
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from programs.coverage.jax_training import Training, integers, normal
from programs.coverage.registry import program

Params = list[tuple[Array, Array]]


def batches() -> list[Any]:
    return [(normal(16, 8, key=key), integers(4, 16, key=key)) for key in range(2)]


def initial(dtype: Any = jnp.float32, sizes: tuple[int, ...] = (8, 16, 4), key: int = 0) -> Params:
    keys = jr.split(jr.key(key), len(sizes))
    made = nn.initializers.glorot_normal(dtype=dtype)
    return [(made(key, (m, n)), jnp.zeros(n, dtype)) for key, m, n in zip(keys, sizes, sizes[1:], strict=False)]


def forward(params: Params, x: Array) -> Array:
    *hidden, (last, bias) = params
    for weight, shift in hidden:
        x = jnp.tanh(x @ weight + shift)
    return x @ last + bias


def loss_of(params: Params, batch: Any) -> Array:
    x, y = batch
    return -jnp.take_along_axis(nn.log_softmax(forward(params, x)), y[:, None], 1).mean()


def descended(params: Any, gradients: Any, rate: float = 0.1) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def descent(loss: Any, params: Any, given: Any = None, **options: Any) -> Training:
    """Plain steps down the gradient."""

    def step(params: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        return descended(params, gradients), value

    return Training(params, step, batches() if given is None else given, **options)


@program("jax", "mlp")
def mlp() -> Training:
    return descent(loss_of, initial())


@program("jax", "mlp, without jit")
def eager() -> Training:
    return descent(loss_of, initial(), compiled=False)


@program("jax", "bfloat16 alone")
def bfloat16() -> Training:
    return descent(loss_of, initial(jnp.bfloat16), [(x.astype(jnp.bfloat16), y) for x, y in batches()])


@program("jax", "float16, scaled loss")
def float16() -> Training:
    """Steps whose gradients are not finite are left out, and the scale is halved."""

    def step(state: Any, batch: Any) -> Any:
        params, scale = state
        halves = jax.tree.map(lambda p: p.astype(jnp.float16), params)
        x, y = batch
        value, gradients = jax.value_and_grad(lambda p: loss_of(p, (x.astype(jnp.float16), y)) * scale)(halves)
        gradients = jax.tree.map(lambda g: g.astype(jnp.float32) / scale, gradients)
        finite = jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(gradients)]).all()
        params = lax.cond(finite, lambda: descended(params, gradients), lambda: params)
        return (params, jnp.where(finite, scale, scale / 2)), value.astype(jnp.float32)

    return Training((initial(), jnp.float32(2.0**14)), step, batches())


@program("jax", "float64")
def float64() -> Any:
    with jax.enable_x64(True):
        made = descent(loss_of, initial(jnp.float64), [(x.astype(np.float64), y) for x, y in batches()])
        return made.run()


@program("jax", "checkpoint, by a policy")
def checkpointed() -> Training:
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

    def loss(params: Params, batch: Any) -> Array:
        x, y = batch
        layer = jax.checkpoint(lambda x, layer: nn.gelu(x @ layer[0] + layer[1]), policy=policy)
        for each in params[:-1]:
            x = layer(x, each)
        return loss_of(params[-1:], (x, y))

    return descent(loss, initial(sizes=(8, 16, 16, 4)))


@program("jax", "vmap of an ensemble")
def ensemble() -> Training:
    params = [initial(key=key) for key in range(3)]

    def loss(params: Any, batch: Any) -> Array:
        return jax.vmap(loss_of, (0, None))(params, batch).sum()

    return descent(loss, jax.tree.map(lambda *each: jnp.stack(each), *params))


@jax.custom_vjp
def clipped(x: Array) -> Array:
    """Gradients are clipped."""
    return x


clipped.defvjp(lambda x: (x, None), lambda _, gradient: (jnp.clip(gradient, -0.01, 0.01),))


@jax.custom_jvp
def softened(x: Array) -> Array:
    """The positive part, with the derivative of a sigmoid function."""
    return jnp.maximum(x, 0)


@softened.defjvp
def _softened_jvp(primals: Any, tangents: Any) -> Any:
    return softened(*primals), nn.sigmoid(4.0 * primals[0]) * tangents[0]


@program("jax", "custom_vjp, custom_jvp")
def custom() -> Training:
    def loss(params: Params, batch: Any) -> Array:
        x, y = batch
        (weight, bias), *rest = params
        return loss_of(rest, (clipped(softened(x @ weight + bias)), y))

    return descent(loss, initial())


@program("jax", "while_loop, cond, switch, fori_loop")
def control_flow() -> Training:
    """A fixed point, whose derivative is by the implicit function theorem; steps that depend on numbers."""

    @jax.custom_vjp
    def fixed(weight: Array, x: Array) -> Array:
        def unsettled(state: Any) -> Array:
            old, new, count = state
            return (jnp.abs(new - old).max() > 1e-5) & (count < 50)

        return lax.while_loop(unsettled, lambda s: (s[1], jnp.tanh(s[1] @ weight + x), s[2] + 1), (x, x + 1, 0))[1]

    def forwards(weight: Array, x: Array) -> Any:
        found = fixed(weight, x)
        return found, (weight, x, found)

    def backwards(saved: Any, gradient: Array) -> Any:
        weight, x, found = saved
        _, pull = jax.vjp(lambda z: jnp.tanh(z @ weight + x), found)
        total = lax.fori_loop(0, 10, lambda _, u: gradient + pull(u)[0], gradient)
        return jax.vjp(lambda w, x: jnp.tanh(found @ w + x), weight, x)[1](total)

    fixed.defvjp(forwards, backwards)

    def loss(params: Any, batch: Any) -> Array:
        x, y = batch
        z = fixed(params["inner"], x)
        z = lax.switch(jnp.argmax(z.sum(0)) % 3, [jnp.sin, jnp.cos, nn.relu], z)
        z = lax.cond(z.sum() > 0, lambda z: z * 2.0, lambda z: z / 3.0, z)
        return loss_of(params["outer"], (z, y))

    inner = 0.05 * jnp.asarray(normal(8, 8, key=5))
    return descent(loss, {"inner": inner, "outer": initial(sizes=(8, 4))})


@program("jax", "second derivatives")
def second() -> Training:
    """A Hessian, a product with it, Jacobians forward and back; a step of Newton's by conjugate gradients."""

    def step(params: Any, batch: Any) -> Any:
        x, y = batch

        def loss(weight: Array) -> Array:
            return loss_of([(weight, jnp.zeros(4))], (x, y)) + 0.1 * (weight**2).sum()

        value, gradient = jax.value_and_grad(loss)(params)
        product = lambda v: jax.jvp(jax.grad(loss), (params,), (v,))[1]  # noqa: E731
        found, _ = jax.scipy.sparse.linalg.cg(product, gradient, maxiter=5)
        row = params[0]
        whole = jax.hessian(lambda row: loss(params.at[0].set(row)))(row)
        return params - found - 0.001 * (whole @ row)[None], value

    return Training(jnp.asarray(normal(8, 4, key=3)), step, batches())


@program("jax", "jacobians")
def jacobians() -> Any:
    x = jnp.asarray(normal(6, key=2))
    function = lambda x: jnp.cumsum(jnp.sort(x) ** 3) / (1.0 + jnp.exp(x))  # noqa: E731
    return jax.jit(jax.jacfwd(function))(x), jax.jit(jax.jacrev(function))(x), jax.jvp(function, (x,), (x,))


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


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("batch",))


@program("jax", "shard_map")
def shard_map() -> Training:
    """On the devices that there are: one, if the program was not given others."""
    mesh = _mesh()

    def gradient(params: Params, x: Array, y: Array) -> Any:
        return lax.pmean(jax.value_and_grad(loss_of)(params, (x, y)), "batch")

    part = PartitionSpec("batch")
    mapped = jax.shard_map(
        gradient, mesh=mesh, in_specs=(PartitionSpec(), part, part), out_specs=PartitionSpec(), check_vma=False
    )

    def step(params: Params, batch: Any) -> Any:
        value, gradients = mapped(params, *batch)
        return descended(params, gradients), value

    return Training(initial(), step, batches())


@program("jax", "pmap")
def pmap() -> Any:
    mapped = jax.pmap(lambda p, b: lax.pmean(jax.value_and_grad(loss_of)(p, b), "i"), axis_name="i", in_axes=(None, 0))
    params = initial()
    for number in range(3):
        batch = jax.tree.map(lambda x: x.reshape(jax.device_count(), -1, *x.shape[1:]), batches()[number % 2])
        _, gradients = mapped(params, batch)
        params = descended(params, jax.tree.map(lambda g: g[0], gradients))
    return params


@program("jax", "arrays of a sharding, donated")
def sharded() -> Any:
    mesh = _mesh()
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))

    @partial(jax.jit, donate_argnums=0, in_shardings=(whole, rows), out_shardings=whole)
    def step(params: Params, batch: Any) -> Params:
        return descended(params, jax.grad(loss_of)(params, batch))

    params = jax.device_put(initial(), whole)
    for number in range(3):
        params = step(params, jax.device_put(batches()[number % 2], rows))
    return params


@program("jax", "attention of jax.nn")
def attention() -> Training:
    """Grouped heads, causal, with a bias; in blocks by a scan beside it."""

    def loss(params: Any, x: Array) -> Array:
        q, k, v = (jnp.einsum("btd,dhe->bthe", x, each) for each in params)
        bias = -jnp.abs(jnp.arange(9)[:, None] - jnp.arange(9.0))[None, None] * 0.5
        found = nn.dot_product_attention(q, k, v, bias=bias, is_causal=True)
        return (found**2).mean() + nn.logsumexp(found, axis=-1).mean()

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
        found = jnp.sort(rows, 0) * rows[order] + jnp.cumprod(1.0 + 0.1 * rows, 0) + lax.cumlogsumexp(rows, 0)
        best, _ = lax.top_k(found.T, 3)
        parts = jax.ops.segment_sum(found, index % 4, 4)
        return best.sum() + (parts**2).mean() + jnp.median(found) + jnp.var(found) + jnp.linalg.norm(found)

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
        found = jnp.fft.irfft(jnp.fft.rfft(x) * params)
        return ((found - jnp.roll(x, 1, -1)) ** 2).mean()

    return descent(loss, jnp.ones(9), [normal(3, 16, key=key) for key in range(2)])


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


@program("jax", "callbacks that print")
def printed() -> Training:
    """debug.print and debug.callback compute nothing."""

    def loss(params: Params, batch: Any) -> Array:
        jax.debug.callback(lambda x: None, params[0][0])
        return loss_of(params, batch)

    return descent(loss, initial())
