"""What results of JAX's operations depend on, under portable numerics. Prints JSON, as scopes.report has it."""

import json
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from jax import Array, lax, nn
from jax import numpy as jnp

import repro.portable.jax as portable
from programs.dependence.scopes import (
    CALL,
    ITS_COLUMN,
    ITS_ROW,
    ITS_SAMPLE,
    ITSELF,
    NEAR,
    ROW_SO_FAR,
    ROWS_SO_FAR,
    Case,
    Cases,
    constant,
    report,
)


def flat(x: Array) -> Array:
    """Rows of all samples."""
    return x.reshape(-1, x.shape[-1])


def sample_of(x: Array) -> Array:
    """The sample of each row."""
    return jnp.arange(len(x)).repeat(x.shape[1])


def convolved(x: Array, before: int, after: int) -> Array:
    names = ("NHC", "HIO", "NHC")
    return lax.conv_general_dilated(x, constant(9, 3, 6, 6), (1,), [(before, after)], dimension_numbers=names)


def convolved_2d(x: Array) -> Array:
    return lax.conv(x[:, None], constant(10, 1, 1, 3, 3), (1, 1), "SAME")[:, 0]


def pooled(x: Array) -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")


def weight_gradient(x: Array) -> Array:
    return jax.grad(lambda weight: (flat(x) @ weight).sum())(constant(1, x.shape[-1], 7))[None]


def segments(x: Array) -> Array:
    return jax.ops.segment_sum(flat(x), sample_of(x), len(x))[:, None]


def numbers_added(x: Array) -> Array:
    place = jnp.broadcast_to(sample_of(x)[:, None], flat(x).shape)
    return jnp.zeros((len(x), x.shape[2])).at[place, jnp.arange(x.shape[2])].add(flat(x))[:, None]


def embedding_gradient(x: Array) -> Array:
    weight = jnp.ones((len(x), x.shape[2]))
    return jax.vjp(lambda table: table[sample_of(x)], weight)[1](flat(x))[0][:, None]


def both(z: Array) -> Array:
    return jnp.concatenate([z.real, z.imag], -1)


def square(x: Array) -> Array:
    """Matrices of positive eigenvalues, of samples without NaN."""
    x = jnp.clip(jnp.nan_to_num(x), -4, 4)
    return x @ x.mT + jnp.eye(x.shape[1])


def recurrent(x: Array) -> Array:
    kernel, more = constant(11, x.shape[-1], 5), constant(12, 5, 5)

    def step(state: Array, each: Array) -> tuple[Array, Array]:
        state = jnp.tanh(each @ kernel + state @ more)
        return state, state

    return lax.scan(step, jnp.zeros((len(x), 5)), x.swapaxes(0, 1))[1].swapaxes(0, 1)


CASES: Cases = {
    "sums, products, quotients of elements": Case(lambda x: (x + 0.3) * x / 1.7, ITSELF),
    "functions: exp, sin, sqrt, erf": Case(lambda x: jnp.exp(x) + jnp.sin(x) * jnp.sqrt(abs(x)) + lax.erf(x), ITSELF),
    "activations: gelu, silu, relu": Case(lambda x: nn.gelu(x) + nn.silu(x) + nn.relu(x), ITSELF),
    "sum, mean of a row": Case(lambda x: x.sum(-1, keepdims=True) + x.mean(-1, keepdims=True), ITS_ROW),
    "sum, mean of a column": Case(lambda x: x.sum(1, keepdims=True) + x.mean(1, keepdims=True), ITS_COLUMN),
    "prod": Case(lambda x: x.prod(-1, keepdims=True), ITS_ROW),
    "logsumexp": Case(lambda x: nn.logsumexp(x, -1, keepdims=True), ITS_ROW),
    "cumsum": Case(lambda x: x.cumsum(-1), ROW_SO_FAR),
    "cumprod, logcumsumexp": Case(lambda x: x.cumprod(-1) + lax.cumlogsumexp(x, 2), ROW_SO_FAR),
    "matmul, bmm, einsum, the first factor": Case(lambda x: x @ constant(4, x.shape[-1], 7), ITS_ROW),
    "matmul, bmm, einsum, the second factor": Case(lambda x: constant(5, 7, x.shape[1]) @ x, ITS_COLUMN),
    "gradients of weights and biases": Case(weight_gradient, CALL, gradient=False),
    "conv1d": Case(lambda x: convolved(x, 1, 1), NEAR),
    "conv1d, causal": Case(lambda x: convolved(x, 2, 0), ROWS_SO_FAR),
    "conv2d": Case(convolved_2d, NEAR),
    "max_pool2d": Case(pooled, NEAR),
    "layer_norm, rms_norm": Case(lambda x: nn.standardize(x), ITS_ROW),
    "softmax, log_softmax": Case(lambda x: nn.softmax(x) + nn.log_softmax(x), ITS_ROW),
    "LSTM, GRU, RNN": Case(recurrent, ROWS_SO_FAR),
    "index_add": Case(segments, ITS_COLUMN),
    "scatter_add": Case(numbers_added, ITS_COLUMN),
    "gradients of embeddings": Case(embedding_gradient, ITS_COLUMN, gradient=False),
    "sort, topk, median": Case(lambda x: jnp.sort(x) + lax.top_k(x, 1)[0], ITS_ROW),
    "fft": Case(lambda x: both(jnp.fft.rfft(x)), ITS_ROW, any_shape=False),
    "solve, inv, det": Case(lambda x: jnp.linalg.solve(square(x), x), ITS_SAMPLE),
}


def forward(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(function)(x))


@cache
def gradient_of(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return jax.jit(lambda x, gradient: jax.vjp(function, x)[1](gradient)[0])


def backward(function: Callable[[Any], Any], x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    return np.asarray(gradient_of(function)(x, gradient))


if __name__ == "__main__":
    portable.enable()
    names = sys.argv[1:] or list(CASES)
    print(json.dumps(report({name: CASES[name] for name in names}, forward, backward)))
