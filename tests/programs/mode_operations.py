"""Operations of the mode in one framework, on drawn numbers.

    python mode_operations.py pytorch|tensorflow|jax

JAX has fewer: its softmax, means, normalizations and activations are made of others. Prints JSON: by operation the SHA-256 of its results for 25 arrays of each of its arguments. Images are [B, H, W, C].
"""

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

DRAWS = 25


def arrays(name: str, *shapes: tuple[int, ...]) -> list[list[np.ndarray]]:
    """float32 numbers of several magnitudes, the same in every framework."""
    random = np.random.Generator(np.random.Philox(key=[7, int.from_bytes(name.encode()[:7])]))
    drawn = []
    for _ in range(DRAWS):
        scale = np.float32(2.0) ** random.integers(-6, 6)
        drawn.append([(random.standard_normal(shape, np.float32) * scale).astype(np.float32) for shape in shapes])
    return drawn


def normal(x: np.ndarray) -> np.ndarray:
    """Numbers, with 0 in the place of those that XLA takes for 0."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, 0, x)


FUNCTIONS = (
    *("exp", "expm1", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc", "sinh", "cosh", "asinh", "atan", "lgamma"),
    *("log", "log1p", "rsqrt", "sqrt", "digamma"),
)
POSITIVE = {"log", "log1p", "rsqrt", "sqrt", "lgamma", "digamma"}
VECTOR, MATRIX, SQUARE, IMAGES = (300,), (6, 50), (6, 6), (3, 8, 7, 4)
INDEX = np.arange(50) * 7 % 11
FAR = 2.0 ** (-30 * (INDEX % 3)[:, None])
"""Factors of float64 numbers: those of some indices are far below the others."""
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "matmul": ((9, 40), (40, 7)),
    "batched matmul": ((3, 9, 40), (3, 40, 7)),
    "matmul of float64": ((9, 40), (40, 7)),
    "sum": (MATRIX,),
    "sum of all": (MATRIX,),
    "sum of float64": (MATRIX,),
    "mean": (MATRIX,),
    "cumsum": (MATRIX,),
    "prod": (MATRIX,),
    "softmax": (MATRIX,),
    "log_softmax": (MATRIX,),
    "power": (VECTOR,),
    "square": (VECTOR,),
    "atan2": (VECTOR, VECTOR),
    "elu": (VECTOR,),
    "selu": (VECTOR,),
    "sum by index": ((50, 3),),
    "sum by index of float64": ((50, 3),),
    "cumsum of float64": (MATRIX,),
    "convolution": (IMAGES, (3, 3, 4, 6)),
    "convolution of float64": (IMAGES, (3, 3, 4, 6)),
    "convolution in steps": (IMAGES, (3, 3, 4, 6)),
    "grouped convolution": (IMAGES, (3, 3, 2, 6)),
    "depthwise convolution": (IMAGES, (3, 3, 4, 1)),
    "gradient of images": (IMAGES, (3, 3, 4, 6)),
    "gradient of weight": (IMAGES, (3, 3, 4, 6)),
    "average pooling": (IMAGES,),
    "max pooling": (IMAGES,),
    "batch norm": (IMAGES, (4,), (4,)),
    "bilinear": (IMAGES,),
    "qr": ((6, 4),),
    "qr of float64": ((9, 5),),
    "cholesky of float64": (SQUARE,),
    "triangular solve of float64": (SQUARE, (6, 3)),
    "solve of float64": (SQUARE, (6, 3)),
    "inverse of float64": (SQUARE,),
    "determinant of float64": (SQUARE,),
    "log determinant of float64": (SQUARE,),
    "lu of float64": ((6, 4),),
    "eigenvalues of float64": (SQUARE,),
    "eigenvectors of float64": (SQUARE,),
    "singular values of float64": ((7, 4),),
    "singular vectors of float64": ((7, 4),),
} | dict.fromkeys(FUNCTIONS, (VECTOR,))


def pytorch() -> tuple[dict[str, Callable[..., Any]], Callable[..., Any], Callable[..., np.ndarray]]:
    import torch
    from torch.nn import functional as f

    import repro.portable.pytorch as portable

    portable.enable()

    def planes(x: Any) -> Any:
        return x.permute(0, 3, 1, 2)

    def rows(x: Any) -> Any:
        return x.permute(0, 2, 3, 1)

    def convolved(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
        return rows(f.conv2d(planes(x), w.permute(3, 2, 0, 1), stride=stride, groups=groups))

    def gradient(place: int) -> Callable[..., Any]:
        def of(*given: Any) -> Any:
            leaves = [each.clone().requires_grad_() for each in given]
            convolved(*leaves).square().mul(0.5).sum().backward()
            return leaves[place].grad

        return of

    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        return rows(f.batch_norm(planes(x), None, None, scale, shift, training=True, eps=2.0**-10))

    def added(x: Any) -> Any:
        return torch.zeros(11, 3, dtype=x.dtype).index_add(0, torch.from_numpy(INDEX), x)

    results = {name: getattr(torch, name) for name in FUNCTIONS} | {
        "matmul": torch.matmul,
        "batched matmul": torch.bmm,
        "matmul of float64": lambda a, b: a.double() @ b.double(),
        "sum": lambda x: x.sum(1),
        "sum of all": torch.sum,
        "sum of float64": lambda x: x.double().sum(1),
        "mean": lambda x: x.mean(0),
        "cumsum": lambda x: x.cumsum(1),
        "prod": lambda x: x.prod(1),
        "softmax": lambda x: f.softmax(x, -1),
        "log_softmax": lambda x: f.log_softmax(x, -1),
        "power": lambda x: x.abs() ** 1.7,
        "square": lambda x: x**2,
        "atan2": torch.atan2,
        "elu": f.elu,
        "selu": f.selu,
        "sum by index": added,
        "sum by index of float64": lambda x: added(x.double() * torch.from_numpy(FAR)),
        "cumsum of float64": lambda x: x.double().cumsum(1),
        "convolution": convolved,
        "convolution of float64": lambda x, w: convolved(x.double(), w.double()),
        "convolution in steps": lambda x, w: convolved(x, w, 2),
        "grouped convolution": lambda x, w: convolved(x, w, 1, 2),
        "depthwise convolution": lambda x, w: convolved(x, w.transpose(2, 3), 1, 4),
        "gradient of images": gradient(0),
        "gradient of weight": gradient(1),
        "average pooling": lambda x: rows(f.avg_pool2d(planes(x), 3, 2)),
        "max pooling": lambda x: rows(f.max_pool2d(planes(x), 3, 2)),
        "batch norm": normalized,
        "bilinear": lambda x: rows(f.interpolate(planes(x), size=(5, 9), mode="bilinear")),
        "qr": lambda x: torch.linalg.qr(x)[0],
        "qr of float64": lambda x: torch.cat(torch.linalg.qr(x.double())),
        "cholesky of float64": lambda x: torch.linalg.cholesky(x.double() @ x.double().mT),
        "triangular solve of float64": lambda a, b: torch.linalg.solve_triangular(a.double(), b.double(), upper=False),
        "solve of float64": lambda a, b: torch.linalg.solve(a.double(), b.double()),
        "inverse of float64": lambda x: torch.linalg.inv(x.double()),
        "determinant of float64": lambda x: torch.linalg.det(x.double()),
        "log determinant of float64": lambda x: torch.stack(torch.linalg.slogdet(x.double())),
        "lu of float64": lambda x: torch.linalg.lu_factor(x.double())[0],
        "eigenvalues of float64": lambda x: torch.linalg.eigh(x.double())[0],
        "eigenvectors of float64": lambda x: torch.linalg.eigh(x.double())[1],
        "singular values of float64": lambda x: torch.linalg.svd(x.double())[1],
        "singular vectors of float64": lambda x: torch.linalg.svd(x.double())[0],
    }
    return results, torch.from_numpy, lambda x: x.detach().contiguous().numpy()


def tensorflow() -> tuple[dict[str, Callable[..., Any]], Callable[..., Any], Callable[..., np.ndarray]]:
    import tensorflow as tf

    from repro.portable.modes import tensorflow as portable

    portable.enable()

    def gradient(place: int) -> Callable[..., Any]:
        def of(*given: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(given)
                y = tf.reduce_sum(tf.square(tf.nn.conv2d(*given, 1, "VALID")) * 0.5)
            return tape.gradient(y, given[place])

        return of

    def double(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: function(*(tf.cast(each, tf.float64) for each in given))

    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        return tf.compat.v1.nn.fused_batch_norm(x, scale, shift, epsilon=2.0**-10)[0]

    results = {name: getattr(tf.math, name) for name in FUNCTIONS} | {
        "matmul": tf.matmul,
        "batched matmul": tf.matmul,
        "matmul of float64": lambda a, b: tf.cast(a, tf.float64) @ tf.cast(b, tf.float64),
        "sum": lambda x: tf.reduce_sum(x, 1),
        "sum of all": tf.reduce_sum,
        "sum of float64": lambda x: tf.reduce_sum(tf.cast(x, tf.float64), 1),
        "mean": lambda x: tf.reduce_mean(x, 0),
        "cumsum": lambda x: tf.cumsum(x, 1),
        "prod": lambda x: tf.reduce_prod(x, 1),
        "softmax": tf.nn.softmax,
        "log_softmax": tf.nn.log_softmax,
        "power": lambda x: tf.abs(x) ** 1.7,
        "square": lambda x: x**2,
        "atan2": tf.atan2,
        "elu": tf.nn.elu,
        "selu": tf.nn.selu,
        "sum by index": lambda x: tf.math.unsorted_segment_sum(x, INDEX, 11),
        "sum by index of float64": lambda x: tf.math.unsorted_segment_sum(tf.cast(x, tf.float64) * FAR, INDEX, 11),
        "cumsum of float64": lambda x: tf.cumsum(tf.cast(x, tf.float64), 1),
        "convolution": lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"),
        "convolution of float64": lambda x, w: tf.nn.conv2d(tf.cast(x, tf.float64), tf.cast(w, tf.float64), 1, "VALID"),
        "convolution in steps": lambda x, w: tf.nn.conv2d(x, w, 2, "VALID"),
        "grouped convolution": lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"),
        "depthwise convolution": lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"),
        "gradient of images": gradient(0),
        "gradient of weight": gradient(1),
        "average pooling": lambda x: tf.nn.avg_pool2d(x, 3, 2, "VALID"),
        "max pooling": lambda x: tf.nn.max_pool2d(x, 3, 2, "VALID"),
        "batch norm": normalized,
        "bilinear": lambda x: tf.image.resize(x, (5, 9)),
        "qr": lambda x: tf.linalg.qr(x)[0],
        "qr of float64": double(lambda x: tf.concat(tf.linalg.qr(x), 0)),
        "cholesky of float64": double(lambda x: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True))),
        "triangular solve of float64": double(tf.linalg.triangular_solve),
        "solve of float64": double(tf.linalg.solve),
        "inverse of float64": double(tf.linalg.inv),
        "determinant of float64": double(tf.linalg.det),
        "log determinant of float64": double(lambda x: tf.stack(tf.linalg.slogdet(x))),
    }
    return results, tf.constant, lambda x: x.numpy()


def jax() -> tuple[dict[str, Callable[..., Any]], Callable[..., Any], Callable[..., np.ndarray]]:
    import jax
    from jax import lax
    from jax import numpy as jnp

    import repro.portable.jax as portable

    portable.enable()

    def convolved(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        steps = (stride, stride)
        return lax.conv_general_dilated(x, w, steps, "VALID", dimension_numbers=names, feature_group_count=groups)

    def pooled(x: Any, first: float, choose: Any) -> Any:
        return lax.reduce_window(x, first, choose, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")

    def added(x: Any) -> Any:
        return jnp.zeros((11, 3), x.dtype).at[INDEX].add(x)

    def double(function: Callable[..., Any]) -> Callable[..., Any]:
        def of(*given: Any) -> Any:
            with jax.enable_x64(True):
                return function(*(jnp.asarray(each, jnp.float64) for each in given))

        return of

    named = {"sigmoid": lax.logistic, "erf": lax.erf, "erfc": lax.erfc, "rsqrt": lax.rsqrt}
    named |= {"digamma": lax.digamma, "lgamma": lax.lgamma}
    results = {name: named.get(name) or getattr(jnp, name) for name in FUNCTIONS} | {
        "matmul": jnp.matmul,
        "batched matmul": jnp.matmul,
        "matmul of float64": double(jnp.matmul),
        "sum": lambda x: jnp.sum(x, 1),
        "sum of all": jnp.sum,
        "sum of float64": double(lambda x: jnp.sum(x, 1)),
        "cumsum": lambda x: jnp.cumsum(x, 1),
        "prod": lambda x: jnp.prod(x, 1),
        "power": lambda x: jnp.abs(x) ** 1.7,
        "square": lambda x: x**2,
        "atan2": jnp.arctan2,
        "sum by index": added,
        "sum by index of float64": double(lambda x: added(x * FAR)),
        "cumsum of float64": double(lambda x: jnp.cumsum(x, 1)),
        "convolution": convolved,
        "convolution of float64": double(convolved),
        "convolution in steps": lambda x, w: convolved(x, w, 2),
        "grouped convolution": lambda x, w: convolved(x, w, 1, 2),
        "depthwise convolution": lambda x, w: convolved(x, w.reshape(3, 3, 1, 4), 1, 4),
        "gradient of images": jax.grad(lambda x, w: (convolved(x, w) ** 2 * 0.5).sum()),
        "max pooling": lambda x: pooled(x, -jnp.inf, lax.max),
        "qr": lambda x: jnp.linalg.qr(x)[0],
        "qr of float64": double(lambda x: jnp.concatenate(jnp.linalg.qr(x))),
        "cholesky of float64": double(lambda x: jnp.linalg.cholesky(x @ x.mT, symmetrize_input=False)),
        "triangular solve of float64": double(partial(lax.linalg.triangular_solve, left_side=True, lower=True)),
        "solve of float64": double(jnp.linalg.solve),
        "inverse of float64": double(jnp.linalg.inv),
        "log determinant of float64": double(lambda x: jnp.stack(jnp.linalg.slogdet(x))),
        "lu of float64": double(lambda x: lax.linalg.lu(x)[0]),
        "eigenvalues of float64": double(lambda x: jnp.linalg.eigh(x, symmetrize_input=False)[0]),
        "eigenvectors of float64": double(lambda x: jnp.linalg.eigh(x, symmetrize_input=False)[1]),
        "singular values of float64": double(lambda x: jnp.linalg.svd(x)[1]),
        "singular vectors of float64": double(lambda x: jnp.linalg.svd(x)[0]),
    }
    return results, np.asarray, np.asarray


if __name__ == "__main__":
    operations, given, result = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax}[sys.argv[1]]()
    hashes = {}
    for name, shapes in SHAPES.items():
        if name not in operations:
            continue
        digest = hashlib.sha256()
        for drawn in arrays(name, *shapes):
            values = [np.abs(each) if name in POSITIVE else each for each in drawn]
            digest.update(normal(np.asarray(result(operations[name](*map(given, values))))).tobytes())
        hashes[name] = digest.hexdigest()
    print(json.dumps(hashes))
