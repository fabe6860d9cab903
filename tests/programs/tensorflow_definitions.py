"""Definitions of TensorFlow's mode that PyTorch's mode does not have: samples, linear systems, bytes, classes."""

from typing import Any

import numpy as np
import tensorflow as tf

from repro.portable.modes.tensorflow.dispatcher import checks, dispatch


def same(a: Any, b: Any) -> bool:
    """True if nested arrays have the same bits."""
    pairs = zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


# --- samples ----------------------------------------------------------------------------------------------------------


def sampled(shape: Any, key: Any, alpha: Any) -> Any:
    return tf.random.stateless_gamma(shape, [key, 2], alpha)


def slopes(alpha: Any) -> Any:
    """The gradient of a mean of gamma samples, which is near 1."""
    with tf.GradientTape() as tape:
        tape.watch(alpha)
        mean = tf.reduce_sum(tf.reduce_mean(tf.random.gamma([20000], alpha), 0))
    return tape.gradient(mean, alpha)


def numbers() -> dict[str, bool]:
    """Poisson numbers."""
    rates = np.array([0.3, 9.5, 200.0], np.float32)

    def drawn(key: int) -> Any:
        return tf.random.stateless_poisson([20000, 3], [key, 2], rates)

    many = drawn(1).numpy()
    mean, spread = np.mean(many, 0, np.float64), np.var(many, 0, dtype=np.float64)
    return {
        "Poisson's, eager and graph": same(many, tf.function(drawn)(1)),
        "Poisson's keys": not same(many, drawn(3)),
        "Poisson's mean": bool((np.abs(mean - rates) < 5 * np.sqrt(rates / 20000)).all()),
        "Poisson's spread": bool((np.abs(spread - rates) < 0.1 * rates).all()),
    }


def samples() -> dict[str, bool]:
    alpha = np.array([0.2, 1.0, 4.0], np.float32)
    many, again = sampled([20000, 3], 1, alpha), sampled([20000, 3], 3, alpha)
    mean, spread = np.mean(many, 0), np.var(many, 0)
    return {
        "eager and graph": same(many, tf.function(sampled)([20000, 3], 1, alpha)),
        "keys": not bool(np.any(many[:9] == again[:9])),
        "mean": bool((np.abs(mean - alpha) < 5 * np.sqrt(alpha / 20000)).all()),
        "spread": bool((np.abs(spread - alpha) < 0.1 * alpha).all()),
        "gradient": bool((np.abs(slopes(tf.constant(alpha)).numpy() - 1) < 0.05).all()),
        "gradient in a graph": bool((np.abs(tf.function(slopes)(tf.constant(alpha)).numpy() - 1) < 0.05).all()),
        **numbers(),
    }


# --- linear systems ---------------------------------------------------------------------------------------------------


def solved(a: Any, b: Any) -> list[Any]:
    """By factors, inverses, determinants; and what their gradients give."""
    with tf.GradientTape() as tape:
        tape.watch(a)
        square = tf.matmul(a, a, transpose_b=True)
        lower = tf.linalg.cholesky(square)
        results = [lower, tf.linalg.solve(a, b), tf.linalg.inv(a), tf.linalg.det(a), tf.linalg.slogdet(a)[1]]
        results += [tf.linalg.triangular_solve(lower, b), tf.linalg.triangular_solve(lower, b, adjoint=True)]
        total = tf.add_n([tf.reduce_sum(tf.sin(each)) for each in results])
    return [*results, tape.gradient(total, a)]


def systems() -> dict[str, bool]:
    a, b = tf.reshape(checks.doubles(30, 32, 2), [2, 4, 4]), tf.reshape(checks.doubles(31, 24, 2), [2, 4, 3])
    result = solved(a, b)
    lower, x, inverse, determinant, size, forward, backward, _ = (each.numpy() for each in result)
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
        "eager and graph": same(result, tf.function(solved)(a, b)),
        "right": max(float(np.abs(each).max()) for each in errors) < 1e-10,
        "gradient": bool(np.abs(gradient - result[-1]).max() < 1e-10 * np.abs(gradient).max()),
        **spectra(a, b),
        "not positive definite": bool(np.isnan(tf.linalg.cholesky(-tf.eye(2))[1]).all()),
    }


def ranked(a: Any, b: Any) -> list[Any]:
    """Singular values and eigenvalues, least squares with a penalty and without, and the gradient of all."""
    with tf.GradientTape() as tape:
        tape.watch(a)
        tall = a[..., :3]
        results = [
            tf.linalg.svd(tall, compute_uv=False),
            tf.linalg.eigvalsh(a + tf.linalg.matrix_transpose(a)),
            tf.linalg.pinv(tall),
            tf.linalg.lstsq(tall[0], b[0]),
            tf.linalg.lstsq(tall[0], b[0], l2_regularizer=0.5),
        ]
        total = tf.add_n([tf.reduce_sum(each**2) for each in results])
    return [*results, tf.linalg.lstsq(tf.transpose(tall[0]), b[0, :3], fast=False), tape.gradient(total, a)]


def spectra(a: Any, b: Any) -> dict[str, bool]:
    results, tall = ranked(a, b), a.numpy()[..., :3]
    penalty = np.linalg.solve(tall[0].T @ tall[0] + 0.5 * np.eye(3), tall[0].T @ b[0].numpy())
    right = [np.linalg.svd(tall, compute_uv=False), np.linalg.eigvalsh(a.numpy() + a.numpy().swapaxes(1, 2))]
    right += [np.linalg.pinv(tall), np.linalg.pinv(tall[0]) @ b[0].numpy(), penalty]
    right += [np.linalg.pinv(tall[0].T) @ b[0, :3].numpy()]
    with dispatch.Passing():
        gradient = ranked(a, b)[-1].numpy()
    return {
        "ranks, eager and graph": same(results, tf.function(ranked)(a, b)),
        "ranks": all(np.allclose(x, y, 1e-11, 1e-11) for x, y in zip(results, right, strict=False)),
        "ranks, gradient": bool(np.abs(gradient - results[-1]).max() < 1e-10 * np.abs(gradient).max()),
    }


# --- bytes, of which fractions are made -------------------------------------------------------------------------------


SMOOTH = ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def resized(images: Any) -> list[Any]:
    results = [tf.image.resize(images, (17, 43), method=method) for method in ("bilinear", "bicubic")]
    return results + [tf.image.resize(images, (17, 11), method=method, antialias=True) for method in SMOOTH]


def derivatives(x: Any) -> list[Any]:
    """Of smoothed images."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        sums = [tf.reduce_sum(tf.sin(each / 99.0)) for each in resized(x)[2:]]
    return [tape.gradient(each, x) for each in sums]


def images() -> dict[str, bool]:
    """Of bytes, as of the same numbers in float32."""
    given = (checks.words(32, 5394) % 256).astype(np.uint8).reshape(2, 31, 29, 3)
    result, slopes = resized(given.astype(np.float32)), derivatives(tf.constant(given, tf.float32))
    x = tf.constant(given, tf.float32)
    with dispatch.Passing():
        near = [np.abs(a - b).max() for a, b in zip(result[2:], resized(x)[2:], strict=True)]
        near += [np.abs(a - b).max() * 99 for a, b in zip(slopes, derivatives(x), strict=True)]
    return {
        "eager": same(resized(given), result),
        "graph": same(tf.function(resized)(tf.constant(given)), result),
        "gradients": same(tf.function(derivatives)(x), slopes),
        "smoothed as TensorFlow has it": max(map(float, near)) < 1e-3,
    }


# --- classes that are drawn -------------------------------------------------------------------------------------------

SAMPLERS = {
    "uniform": tf.random.uniform_candidate_sampler,
    "log-uniform": tf.random.log_uniform_candidate_sampler,
}
TRUE = np.array([[1, 3], [7, 0]])


def drawn(name: str, unique: bool) -> Any:
    tf.random.set_seed(1)
    return tuple(SAMPLERS[name](TRUE, 2, 7, unique, 9, seed=5))


def classes() -> dict[str, bool]:
    results = {}
    for name in SAMPLERS:
        own = tf.function(lambda name=name: drawn(name, True))
        chosen, _, _ = drawn(name, True)
        results[f"{name}, eager and graph"] = same(drawn(name, True), own())
        results[f"{name}, unique"] = len(set(chosen.numpy().tolist())) == 7
        many = [SAMPLERS[name](TRUE, 2, 7, False, 9)[0].numpy() for _ in range(300)]
        _, expected, _ = drawn(name, False)
        times = np.array([(np.concatenate(many) == each).sum() for each in TRUE.flat]) / 300
        results[f"{name}, as often as expected"] = bool((np.abs(times - expected.numpy().ravel()) < 0.3).all())
        with dispatch.Passing():
            _, theirs, _ = drawn(name, False)
        results[f"{name}, expected as TensorFlow has it"] = bool(np.abs(theirs - expected).max() < 1e-6)
    return results
