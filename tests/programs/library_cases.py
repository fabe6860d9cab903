"""Cases for the libraries of JAX and TensorFlow.

Functions, and two networks.

Both frameworks have images as [B, H, W, C] and kernels as [.., in, out], so weights and data are the same arrays.
"""

import json
from typing import Any

import numpy as np

STEPS = 3
RESUMED = 2  # after so many steps


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) + np.float32(0.5)


X, IMAGES, CHANNELS = normal(4, 5, 6), normal(3, 7, 8, 4), normal(4)
QUERY, KEY, VALUE = normal(2, 3, 5, 4), normal(2, 3, 5, 4, seed=1), normal(2, 3, 5, 6)
LOGITS, LABELS = 3 * normal(7, 9), np.arange(7) % 9
MANY = positive(5000)
MASK = np.random.default_rng(0).random((5, 5)) < 0.7

# name: function, positional arguments (arrays of float32 have gradients), the others
CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "linear": ("linear", (X, normal(6, 3), normal(3)), {}),
    "linear without bias": ("linear", (X, normal(6, 3)), {}),
    "conv2d": ("conv2d", (IMAGES, normal(3, 2, 4, 6), normal(6)), {}),
    "conv2d, same": ("conv2d", (IMAGES, normal(3, 2, 4, 6)), {"padding": "SAME", "stride": (2, 1)}),
    "conv2d, groups": (
        "conv2d",
        (IMAGES, normal(2, 3, 2, 6)),
        {"padding": (1, 2), "dilation": (2, 1), "groups": 2},
    ),
    "max_pool2d": ("max_pool2d", (IMAGES, 2), {}),
    "max_pool2d, same": ("max_pool2d", (IMAGES, 3, 2), {"padding": "SAME"}),
    "avg_pool2d": ("avg_pool2d", (IMAGES, (3, 2), (2, 1)), {"padding": 1}),
    "global_avg_pool2d": ("global_avg_pool2d", (IMAGES,), {}),
    "embedding": ("embedding", (np.array([[1, 4, 1], [0, 1, 2]]), normal(5, 3)), {}),
    "attention": ("scaled_dot_product_attention", (QUERY, KEY, VALUE), {"is_causal": True}),
    "attention, mask": ("scaled_dot_product_attention", (QUERY, KEY, VALUE, MASK), {"scale": 0.3}),
    "relu": ("relu", (X,), {}),
    "gelu": ("gelu", (X,), {}),
    "gelu, approximate": ("gelu", (X,), {"approximate": True}),
    "silu": ("silu", (X,), {}),
    "tanh": ("tanh", (X,), {}),
    "sigmoid": ("sigmoid", (X,), {}),
    "softmax": ("softmax", (X,), {}),
    "dropout": ("dropout", (MANY, 0.25, 7, 3), {}),
    "dropout, step": ("dropout", (MANY, 0.25, 7, 4), {}),
    "dropout, seed": ("dropout", (MANY, 0.25, 2**61 + 7, 3), {}),
    "layer_norm": ("layer_norm", (X, normal(6), normal(6, seed=1)), {}),
    "layer_norm, plain": ("layer_norm", (X,), {"epsilon": 1e-3}),
    "rms_norm": ("rms_norm", (X, normal(6)), {}),
    "group_norm": ("group_norm", (IMAGES, 2, CHANNELS, normal(4, seed=1)), {}),
    "batch_norm": (
        "batch_norm",
        (IMAGES, normal(4, seed=2), positive(4), CHANNELS, normal(4, seed=1)),
        {"training": True, "momentum": 0.01},
    ),
    "batch_norm, evaluated": ("batch_norm", (IMAGES, normal(4, seed=2), positive(4), CHANNELS), {}),
    "rotary": ("rotary", (QUERY,), {}),
    "add": ("add", (X, normal(4, 5, 6, seed=1)), {}),
    "cross_entropy": ("cross_entropy", (LOGITS, LABELS), {}),
    "cross_entropy, smoothed": ("cross_entropy", (LOGITS, LABELS), {"label_smoothing": 0.1}),
    "mse": ("mse", (X, normal(4, 5, 6, seed=1)), {}),
}

# --- optimizers -------------------------------------------------------------------------------------------------------

# name: arguments that both frameworks have by one name, and by names of JAX's and of Keras'
OPTIMIZERS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "sgd": ({"learning_rate": 0.1}, {}, {}),
    "adam": ({"learning_rate": 1e-2, "weight_decay": 1e-2}, {"eps": 1e-7}, {}),
    "adamw": ({"learning_rate": 1e-2, "weight_decay": 0.01}, {"b2": 0.95}, {"beta_2": 0.95, "epsilon": 1e-8}),
    "adadelta": ({"learning_rate": 0.5, "weight_decay": 1e-2, "rho": 0.9}, {"eps": 1e-6}, {"epsilon": 1e-6}),
}
WEIGHTS = {"a": normal(20, 30), "b": normal(30)}
GRADIENTS = [{name: normal(*each.shape, seed=step + 1) for name, each in WEIGHTS.items()} for step in range(STEPS)]

# --- networks ---------------------------------------------------------------------------------------------------------

CNN_WEIGHTS: dict[str, dict[str, np.ndarray]] = {
    "conv": {"kernel": normal(3, 3, 3, 8) / 5, "bias": np.zeros(8, np.float32)},
    "norm": {"scale": np.ones(8, np.float32), "bias": np.zeros(8, np.float32)},
    "dense": {"kernel": normal(8, 10) / 3, "bias": np.zeros(10, np.float32)},
}
CNN_SGD: dict[str, Any] = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}
DROPOUT: dict[str, Any] = {"rate": 0.25, "stream": 1, "seed": 5}
BATCHES = [(normal(6, 9, 9, 3, seed=step), (np.arange(6) + step) % 10) for step in range(STEPS)]

WORDS, PLACES, WIDTH, HEADS = 11, 7, 8, 2
BLOCK_WEIGHTS: dict[str, np.ndarray] = {
    "words": normal(WORDS, WIDTH),
    "places": normal(PLACES, WIDTH),
    "norm1_scale": np.ones(WIDTH, np.float32),
    "norm1_bias": np.zeros(WIDTH, np.float32),
    "query": normal(WIDTH, WIDTH, seed=1) / 3,
    "key": normal(WIDTH, WIDTH, seed=2) / 3,
    "value": normal(WIDTH, WIDTH, seed=3) / 3,
    "joined": normal(WIDTH, WIDTH, seed=4) / 3,
    "norm2_scale": np.ones(WIDTH, np.float32),
    "up": normal(WIDTH, 4 * WIDTH) / 3,
    "up_bias": np.zeros(4 * WIDTH, np.float32),
    "down": normal(4 * WIDTH, WIDTH) / 6,
    "logits": normal(WIDTH, WORDS) / 3,
}
LIMIT = 0.5
TEXTS = [np.random.default_rng(step).integers(0, WORDS, (4, PLACES + 1)) for step in range(STEPS)]


def block(functional: Any, reshape: Any, transpose: Any, weights: dict[str, Any], text: Any) -> Any:
    """The loss of a transformer block: texts of integers [B, PLACES + 1], each word but the first to be foretold."""
    w, f, batch = weights, functional, text.shape[0]

    def heads(x: Any) -> Any:
        return transpose(reshape(x, (batch, PLACES, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    places = np.tile(np.arange(PLACES), (batch, 1))
    x = f.add(f.embedding(text[:, :-1], w["words"]), f.embedding(places, w["places"]))
    x, y = f.fan_out(x, 2)
    for_query, for_key, for_value = f.fan_out(f.layer_norm(y, w["norm1_scale"], w["norm1_bias"]), 3)
    query, key = f.rotary(heads(f.linear(for_query, w["query"]))), f.rotary(heads(f.linear(for_key, w["key"])))
    y = f.scaled_dot_product_attention(query, key, heads(f.linear(for_value, w["value"])), is_causal=True)
    y = f.linear(reshape(transpose(y, (0, 2, 1, 3)), (batch, PLACES, WIDTH)), w["joined"])
    x, y = f.fan_out(f.add(x, y), 2)
    y = f.gelu(f.linear(f.rms_norm(y, w["norm2_scale"]), w["up"], w["up_bias"]))
    x = f.add(x, f.linear(y, w["down"]))
    return f.cross_entropy(f.linear(x, w["logits"]), text[:, 1:], label_smoothing=0.1)


# --- indices out of range ---------------------------------------------------------------------------------------------


def labeled(functional: Any, weight: Any, index: Any) -> Any:
    return functional.cross_entropy(functional.linear(X[0], weight), index)


def embedded(functional: Any, weight: Any, index: Any) -> Any:
    return functional.mse(functional.embedding(index, weight), normal(5, 3))


# name: a loss of a weight and an index, the weight, and the number of indices
INDEXED: dict[str, tuple[Any, np.ndarray, int]] = {
    "labels": (labeled, normal(6, 9), 9),
    "index": (embedded, normal(8, 3), 8),
}


def outside(size: int) -> dict[str, np.ndarray]:
    """Indices of which one is no integer from 0 to size - 1."""
    wrong = {"below": -1, "above": size, "far above": 2**32 + 1}
    return {name: np.array([0, 1, each, 2, 3]) for name, each in wrong.items()}


# --- what a worker writes ---------------------------------------------------------------------------------------------


def save(path: str, results: dict[str, dict[str, dict[str, Any]]], lines: dict[str, str]) -> None:
    """Arrays by MODE/CASE/NAME, and the lines by which something was refused."""
    arrays: dict[str, Any] = {
        f"{mode}/{case}/{name}": np.asarray(array)
        for mode, every in results.items()
        for case, several in every.items()
        for name, array in several.items()
    }
    np.savez(path, lines=np.array(json.dumps(lines)), **arrays)
