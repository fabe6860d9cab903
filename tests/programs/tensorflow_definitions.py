"""Definitions of TensorFlow's mode that PyTorch's mode does not have: gamma samples, linear systems, bytes."""

from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.tensorflow.mode import checks, dispatch


def same(a: Any, b: Any) -> bool:
    """Whether nested arrays have the same bits."""
    pairs = zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


# --- gamma samples ----------------------------------------------------------------------------------------------------


def sampled(shape: Any, key: Any, alpha: Any) -> Any:
    return tf.random.stateless_gamma(shape, [key, 2], alpha)


def samples() -> dict[str, bool]:
    alpha = np.array([0.2, 1.0, 4.0], np.float32)
    many, again = sampled([20000, 3], 1, alpha), sampled([20000, 3], 3, alpha)
    mean, spread = np.mean(many, 0), np.var(many, 0)
    return {
        "eager and graph": same(many, tf.function(sampled)([20000, 3], 1, alpha)),
        "keys": not bool(np.any(many[:9] == again[:9])),
        "mean": bool((np.abs(mean - alpha) < 5 * np.sqrt(alpha / 20000)).all()),
        "spread": bool((np.abs(spread - alpha) < 0.1 * alpha).all()),
    }


# --- linear systems ---------------------------------------------------------------------------------------------------


def solved(a: Any, b: Any) -> list[Any]:
    """By factors, inverses, determinants; and what their gradients give."""
    with tf.GradientTape() as tape:
        tape.watch(a)
        square = tf.matmul(a, a, transpose_b=True)
        lower = tf.linalg.cholesky(square)
        found = [lower, tf.linalg.solve(a, b), tf.linalg.inv(a), tf.linalg.det(a), tf.linalg.slogdet(a)[1]]
        found += [tf.linalg.triangular_solve(lower, b), tf.linalg.triangular_solve(lower, b, adjoint=True)]
        total = tf.add_n([tf.reduce_sum(tf.sin(each)) for each in found])
    return [*found, tape.gradient(total, a)]


def systems() -> dict[str, bool]:
    a, b = tf.reshape(checks.doubles(30, 32, 2), [2, 4, 4]), tf.reshape(checks.doubles(31, 24, 2), [2, 4, 3])
    found = solved(a, b)
    lower, x, inverse, determinant, size, forward, backward, _ = (each.numpy() for each in found)
    across = lower.swapaxes(-1, -2)
    errors = [lower @ across - a @ a.numpy().swapaxes(-1, -2), a @ x - b, a @ inverse - np.eye(4)]
    errors += (
        determinant - np.linalg.det(a),
        size - np.log(np.abs(determinant)),
        lower @ forward - b,
        across @ backward - b,
    )
    with dispatch.Passing():
        gradient = solved(a, b)[-1]
    return {
        "eager and graph": same(found, tf.function(solved)(a, b)),
        "right": max(float(np.abs(each).max()) for each in errors) < 1e-10,
        "gradient": bool(np.abs(gradient - found[-1]).max() < 1e-10 * np.abs(gradient).max()),
        "not positive definite": bool(np.isnan(tf.linalg.cholesky(-tf.eye(2))[1]).all()),
    }


# --- bytes, of which fractions are made -------------------------------------------------------------------------------


def resized(images: Any) -> list[Any]:
    return [tf.image.resize(images, (17, 43), method=method) for method in ("bilinear", "bicubic")]


def images() -> dict[str, bool]:
    """Of bytes, as of the same numbers in float32."""
    given = (checks.words(32, 5394) % 256).astype(np.uint8).reshape(2, 31, 29, 3)
    found = resized(given.astype(np.float32))
    return {"eager": same(resized(given), found), "graph": same(tf.function(resized)(tf.constant(given)), found)}
