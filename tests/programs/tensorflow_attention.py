"""Attention of Keras under portable numerics: prints what depends on keys that a query does not see, as JSON."""

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf

import repro.portable.tensorflow as portable


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.Generator(np.random.Philox(seed + sum(shape))).standard_normal(shape, np.float32)


def by_matmul(query: Any, key: Any, value: Any, mask: Any) -> Any:
    query, key, value = (tf.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
    scores = tf.where(mask, tf.matmul(query, tf.transpose(key, (0, 1, 3, 2))) / 4, np.float32(-3e38))
    return tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))


def by_layer(query: Any, key: Any, value: Any, mask: Any) -> Any:
    scale = [tf.reduce_sum(x, -1) for x in (query, key, value)]  # [B, T, N]
    return LAYER(scale[0], scale[2], key=scale[1], attention_mask=mask[:, 0])


LAYER = keras.layers.MultiHeadAttention(2, 4)
WAYS: dict[str, Callable[..., Any]] = {
    "keras.ops": lambda q, k, v, mask: keras.ops.dot_product_attention(q, k, v, mask=mask),
    "matmul": by_matmul,
    "layer": by_layer,
}


def split(function: Callable[..., Any]) -> list[str]:
    """The ways to split queries and keys with other bits than the whole."""
    query, key, value = random(2, 9, 2, 16), random(2, 13, 2, 16), random(2, 13, 2, 16, seed=1)
    more, triangle = random(2, 5, 2, 16) * np.float32(1e6), np.tril(np.ones((9, 9), bool))

    def called(first: int, last: int, columns: int, seen: Any, hidden: int = 0) -> Any:
        keys, values = (np.concatenate([x[:, :columns], more[:, :hidden]], 1) for x in (key, value))
        mask = np.zeros((2, 2, last - first, columns + hidden), bool)
        mask[..., :columns] = seen
        return np.asarray(function(query[:, first:last], keys, values, mask))

    whole = called(0, 9, 13, True)
    cached = [called(t, t + 1, t + 1, True) for t in range(9)]
    ways = {
        "padding": (whole, called(0, 9, 13, True, 5)),
        "cache": (called(0, 9, 9, triangle), np.concatenate(cached, 1)),
    }
    return [name for name, (a, b) in ways.items() if not (a == b).all()]


def of_other_numbers(function: Callable[..., Any]) -> bool:
    """If shares have the bits of eager code in a graph that took other numbers of their shape first."""
    shares, value = tf.nn.softmax(random(3, 2, 7, 11)), random(3, 11, 2, 5)
    graph = tf.function(function)
    for seed in range(4):
        graph(random(3, 2, 7, 11, seed=seed), value)
    return bool(tf.reduce_all(graph(shares, value) == function(shares, value)))


PRODUCTS: dict[str, Callable[..., Any]] = {
    "einsum": lambda shares, value: tf.einsum("bnts,bsnh->btnh", shares, value),
    "matmul of rows": lambda shares, value: tf.matmul(shares, tf.transpose(value, (0, 2, 3, 1)), transpose_b=True),
    "matmul": lambda shares, value: tf.matmul(shares, tf.transpose(value, (0, 2, 1, 3))),
}


if __name__ == "__main__":
    portable.enable()
    found = {
        f"{name} {how}": split(function if how == "eager" else tf.function(function, jit_compile=how == "compiled"))
        for name, function in WAYS.items()
        for how in ("eager", "graph", "compiled")
    }
    found |= {name: ["after others"] for name, function in PRODUCTS.items() if not of_other_numbers(function)}
    print(json.dumps({name: ways for name, ways in found.items() if ways}))
