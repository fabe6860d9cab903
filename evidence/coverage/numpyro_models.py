"""Inference of NumPyro's models."""

from typing import Any

import jax
import numpyro
import optax
from jax import Array
from jax import numpy as jnp
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, TraceMeanField_ELBO, autoguide

from evidence.coverage.jax_training import integers, normal
from evidence.coverage.registry import STEPS, program

X, Y = normal(20, 3), normal(20, key=1)


def regression(x: Array, y: Array | None = None) -> None:
    """Linear, with an unknown spread."""
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    bias = numpyro.sample("bias", dist.StudentT(4.0, 0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ weights + bias, spread), obs=y)


def inferred(model: Any, guide: Any, optimizer: Any, *data: Any, loss: Any = None) -> Any:
    """The parameters of a guide, and losses."""
    svi = SVI(model, guide, optimizer, loss or Trace_ELBO())
    result = svi.run(jax.random.key(0), STEPS, *data, progress_bar=False)
    return {"params": result.params, "losses": result.losses}


@program("numpyro", "svi, AutoNormal")
def auto_normal() -> Any:
    return inferred(regression, autoguide.AutoNormal(regression), numpyro.optim.Adam(0.01), X, Y)


@program("numpyro", "svi, AutoMultivariateNormal")
def auto_multivariate() -> Any:
    """With a Cholesky factor."""
    guide = autoguide.AutoMultivariateNormal(regression)
    return inferred(regression, guide, optax.adam(0.01), X, Y)


@program("numpyro", "svi, AutoLaplaceApproximation")
def auto_laplace() -> Any:
    """Its covariance is by second derivatives."""
    guide = autoguide.AutoLaplaceApproximation(regression)
    svi = SVI(regression, guide, numpyro.optim.Adam(0.01), Trace_ELBO())
    result = svi.run(jax.random.key(0), STEPS, X, Y, progress_bar=False)
    return {
        "params": result.params,
        "samples": guide.sample_posterior(jax.random.key(1), result.params, (), sample_shape=(4,)),
    }


@program("numpyro", "svi of other distributions")
def distributions() -> Any:
    """Gamma, beta, Dirichlet and categorical ones; implicit gradients."""

    def model(counts: Array, labels: Array) -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        share = numpyro.sample("share", dist.Beta(2.0, 3.0))
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(4)))
        with numpyro.plate("data", len(counts)):
            numpyro.sample("count", dist.ZeroInflatedPoisson(share, rate), obs=counts)
            numpyro.sample("label", dist.Categorical(shares), obs=labels)

    def guide(counts: Array, labels: Array) -> None:
        positive = dist.constraints.positive
        a = numpyro.param("a", jnp.array([2.0, 1.0, 1.5, 1.5]), constraint=positive)
        numpyro.sample("rate", dist.Gamma(a[0], a[1]))
        numpyro.sample("share", dist.Beta(a[2], a[3]))
        numpyro.sample("shares", dist.Dirichlet(numpyro.param("b", jnp.ones(4), constraint=positive)))

    data = integers(5, 20), integers(4, 20, key=2)
    return inferred(model, guide, numpyro.optim.Adagrad(0.1), *data, loss=TraceMeanField_ELBO())


SCHOOLS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]


def eight_schools(effects: Any, spreads: Any) -> None:
    """Not centered."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    spread = numpyro.sample("spread", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", 8):
        offsets = numpyro.sample("offsets", dist.Normal(0.0, 1.0))
        numpyro.sample("effect", dist.Normal(mean + spread * offsets, spreads), obs=effects)


@program("numpyro", "nuts, eight schools")
def nuts() -> Any:
    mcmc = MCMC(NUTS(eight_schools), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(jax.random.key(0), *map(jnp.asarray, SCHOOLS))
    return mcmc.get_samples()


@program("numpyro", "gaussian process, nuts")
def gaussian_process() -> Any:
    """A Cholesky factor, and its gradient, of a matrix of kernels."""
    x, y = jnp.linspace(-1.0, 1.0, 8), jnp.asarray(normal(8, key=3))

    def model(x: Array, y: Array) -> None:
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
        length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
        noise = numpyro.sample("noise", dist.LogNormal(0.0, 1.0))
        kernel = scale * jnp.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + (noise + 1e-4) * jnp.eye(len(x))
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), kernel), obs=y)

    mcmc = MCMC(NUTS(model, max_tree_depth=4), num_warmup=5, num_samples=5, progress_bar=False)
    mcmc.run(jax.random.key(0), x, y)
    return mcmc.get_samples()
