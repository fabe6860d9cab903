"""The models of scores.py in JAX; group norm instead of batch norm."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

SIZE, HEADS, BLOCKS, GROUPS = 32, 4, 2, 4
CHANNELS = (3, 16, 32, 64)
Weights = dict[str, Any]


def norm(x: Array, axes: tuple[int, ...] = (-1,)) -> Array:
    return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + 1e-5)


def block(weights: Weights, x: Array) -> Array:
    batch, length, _ = x.shape
    q, k, v = jnp.moveaxis((norm(x) @ weights["attended"]).reshape(batch, length, 3, HEADS, -1), 2, 0)
    seen = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + seen.reshape(batch, length, SIZE) @ weights["out"]
    return x + jax.nn.gelu(norm(x) @ weights["wide"]) @ weights["narrow"]


@jax.jit
def gpt(weights: Weights, x: Array) -> Array:
    """Words, int32 [B, T] -> the log-likelihood of each but the first, float32 [B, T - 1]."""
    hidden = weights["words"][x] + weights["places"][: x.shape[1]]
    for each in weights["blocks"]:
        hidden = block(each, hidden)
    logits = jax.nn.log_softmax(norm(hidden[:, :-1]) @ weights["words"].T)
    return jnp.take_along_axis(logits, x[:, 1:, None], -1)[..., 0]


def convolution(x: Array, weight: Array, stride: int) -> Array:
    y = lax.conv_general_dilated(x, weight, (stride, stride), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    grouped = y.reshape(len(y), GROUPS, -1)
    return norm(grouped).reshape(y.shape)


@jax.jit
def resnet(weights: Weights, x: Array) -> Array:
    """Pictures, float32 [B, 3, H, W] -> logits, float32 [B, 10]."""
    for place, (first, second, short) in enumerate(weights["residual"]):
        stride = 2 if place else 1
        y = convolution(jax.nn.relu(convolution(x, first, stride)), second, 1)
        x = jax.nn.relu(y + convolution(x, short, stride))
    return x.mean((2, 3)) @ weights["last"]


def models(words: int, longest: int, pictures: np.ndarray) -> list[Callable[[np.ndarray], np.ndarray]]:
    """The likelihoods of texts, and the logits of pictures."""
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def drawn(*shape: int) -> Array:
        return jax.random.normal(next(keys), shape) / np.sqrt(np.float32(shape[0] if len(shape) == 2 else shape[1] * 9))

    sizes = {"attended": (SIZE, 3 * SIZE), "out": (SIZE, SIZE), "wide": (SIZE, 4 * SIZE), "narrow": (4 * SIZE, SIZE)}
    weights = {
        "words": drawn(words, SIZE),
        "places": drawn(longest, SIZE),
        "blocks": [{name: drawn(*shape) for name, shape in sizes.items()} for _ in range(BLOCKS)],
        "residual": [
            [drawn(to, channels, 3, 3), drawn(to, to, 3, 3), drawn(to, channels, 1, 1)]
            for channels, to in pairwise(CHANNELS)
        ],
        "last": drawn(CHANNELS[-1], 10),
    }
    return [partial(computed, model, weights) for model in (gpt, resnet)]


def computed(model: Callable[[Weights, Array], Array], weights: Weights, x: np.ndarray) -> np.ndarray:
    return np.asarray(model(weights, jnp.asarray(x)))
