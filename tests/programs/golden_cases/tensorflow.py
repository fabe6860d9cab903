"""golden/operations.txt in TensorFlow: rows of cases, and operations that other frameworks have as well.

Plain arrays are given to eager code; others are made in a graph.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import repro.portable.tensorflow as portable
from programs.golden_cases import cases, exceptions, tensorflow_cases, tensorflow_variables
from programs.golden_cases.cases import DRAWS, Arrays, Case, drawn, filler, upstream
from programs.golden_cases.table import Row
from repro.portable.modes.tensorflow.dispatcher import dispatch, registry

SINGLE = ("float32",)
"""The types of what TensorFlow does not have in float64."""
CASES: dict[str, Case] = {}
case = filler(CASES)


def both(z: tf.Tensor) -> tf.Tensor:
    """The real and the imaginary parts, side by side."""
    return tf.stack([tf.math.real(z), tf.math.imag(z)], -1)


# --- elements ---------------------------------------------------------------------------------------------------------

for _name in (
    *("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
    *("cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "lgamma", "ndtri"),
    *("square", "reciprocal", "atan2", "pow", "xlogy", "xlog1py", "maximum", "minimum", "add"),
):
    case(_name, getattr(tf.math, _name))
for _name in ("i0", "i0e", "i1", "i1e"):
    case(_name, getattr(tf.math, f"bessel_{_name}"))
for _name in ("elu", "selu", "softplus", "softsign", "relu"):
    case(_name, getattr(tf.nn, _name))
case("digamma", tf.math.digamma, gradient=False)
case("sub", tf.subtract)
case("mul", tf.multiply)
case("div", tf.divide)
case("exp-large", tf.exp)
case("pow-number", lambda x: x**1.7)

# --- products and sums ------------------------------------------------------------------------------------------------

case("matmul", tf.matmul)
case("matmul-batched", tf.matmul)
case("matmul-large", tf.matmul)
case("matmul-vector", tf.linalg.matvec)
case("einsum", lambda a, b: tf.einsum("bqhd,bkhd->bhqk", a, b))
case("complex-mul", lambda a, b: both(tf.complex(a, b) * tf.complex(b, a)))
case("complex-matmul", lambda a, b: both(tf.complex(a, -a) @ tf.complex(b, b + b)))
for _name in cases.COMPLEX:
    case(f"complex-{_name}", lambda a, b, name=_name: both(getattr(tf.math, name)(tf.complex(a, b))))
for _name in cases.BESSEL:
    case(_name, getattr(tf.math.special, f"bessel_{_name}"))
case("zeta", tf.math.zeta, gradient=False)
for _name in ("igamma", "igammac"):
    case(_name, getattr(tf.math, _name))
case("betainc", tf.math.betainc, gradient=False)
case("igamma_grad_a", lambda a, x: tf.raw_ops.IgammaGradA(a=a, x=x), gradient=False)
case("gamma_slope", lambda a, x: tf.raw_ops.RandomGammaGrad(alpha=a, sample=x), gradient=False)
case("polygamma", lambda x: tf.math.polygamma(tf.fill(x.shape, tf.constant(2, x.dtype)), x), gradient=False)
case("rfft-long", lambda x: both(tf.signal.rfft(x)))
case("fft-prime", lambda a, b: both(tf.signal.fft(tf.complex(a, b))))
case("rfft2", lambda x: both(tf.signal.rfft2d(x)))
case("sum", lambda x: tf.reduce_sum(x, 1))
case("sum-all", tf.reduce_sum)
case("sum-axes", lambda x: tf.reduce_sum(x, (0, 2)))
case("sum-large", lambda x: tf.reduce_sum(x, 1))
case("mean", lambda x: tf.reduce_mean(x, 0))
case("mean-all", tf.reduce_mean)
case("prod", lambda x: tf.reduce_prod(x, 1))
case("prod-all", tf.reduce_prod)
case("norm", lambda x: tf.math.reduce_euclidean_norm(x, 1))
case("cumsum", lambda x: tf.cumsum(x, 1))
case("cumsum-backward", lambda x: tf.cumsum(x, 1, reverse=True))
case("cumprod", lambda x: tf.math.cumprod(x, 1))
case("cumlogsumexp", lambda x: tf.math.cumulative_logsumexp(x, 1))
case("cumlogsumexp-forward", lambda x: tf.math.cumulative_logsumexp(x, 1), gradient=False)
case("logsumexp", lambda x: tf.reduce_logsumexp(x, 1))
case("var", lambda x: tf.math.reduce_variance(x, 1))
case("std", lambda x: tf.math.reduce_std(x, 1))
case("max", lambda x: tf.reduce_max(x, 1))
case("softmax", tf.nn.softmax)
case("softmax-large", tf.nn.softmax)
case("log_softmax", tf.nn.log_softmax)
case("cross_entropy", lambda x, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))
case("cross_entropy-shares", lambda x, shares: tf.nn.softmax_cross_entropy_with_logits(shares, x))

# --- windows ----------------------------------------------------------------------------------------------------------


def transposed(x: Any, w: Any) -> Any:
    """From [..., C] to [..., K]."""
    w = tf.transpose(w, (*range(w.shape.rank - 2), -1 % w.shape.rank, -2 % w.shape.rank))
    sizes = [2 * (n - 1) + k for n, k in zip(x.shape[1:-1], w.shape[:-2], strict=True)]
    return tf.nn.conv_transpose(x, w, (x.shape[0], *sizes, w.shape[-2]), 2, "VALID")


def normalized(x: Any, scale: Any, shift: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, scale, shift, epsilon=2.0**-10)[0]


def fixed(x: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
    return tf.compat.v1.nn.fused_batch_norm(x, scale, shift, mean, variance, epsilon=2.0**-10, is_training=False)[0]


case("conv1d", lambda x, w: tf.nn.conv1d(x, w, 1, "VALID"))
case("conv1d-dilated", lambda x, w: tf.nn.conv1d(x, w, 1, "VALID", dilations=2))
case("conv2d", lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"))
case("conv2d-stride", lambda x, w: tf.nn.conv2d(x, w, 2, "VALID"))
case("conv2d-same", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))
case("conv2d-dilated", lambda x, w: tf.nn.conv2d(x, w, 1, "VALID", dilations=2))
case("conv2d-grouped", lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"))
case("conv2d-depthwise", lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"))
case("conv2d-point", lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"))
case("conv2d-large", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"))
case("conv3d", lambda x, w: tf.nn.conv3d(x, w, [1] * 5, "VALID"))
case("conv3d-stride", lambda x, w: tf.nn.conv3d(x, w, [1, 2, 2, 2, 1], "VALID"))
for _d in (1, 2, 3):
    case(f"conv_transpose{_d}d", transposed)
case("avg_pool2d", lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"))
case("avg_pool2d-overlap", lambda x: tf.nn.avg_pool2d(x, 3, 2, "VALID"))
case("avg_pool3d", lambda x: tf.nn.avg_pool3d(x, 2, 2, "VALID"), floats=SINGLE)
case("max_pool2d", lambda x: tf.nn.max_pool2d(x, 3, 2, "VALID"))
case("max_pool2d-ties", lambda x: tf.nn.max_pool2d(x, 3, 2, "VALID"))
case("max_pool3d", lambda x: tf.nn.max_pool3d(x, 2, 1, "VALID"), floats=SINGLE)
case("batch_norm", normalized, floats=SINGLE)
case("batch_norm-fixed", fixed, floats=SINGLE)
case("bilinear", lambda x: tf.image.resize(x, (5, 9)))
case("bilinear-larger", lambda x: tf.image.resize(x, (13, 9)))
case("nearest", lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, (5, 9), half_pixel_centers=True))

# --- by index, linear algebra -----------------------------------------------------------------------------------------

case("embedding", tf.gather)
case("index_add", lambda x, i, y: tf.tensor_scatter_nd_add(x, i[:, None], y))
case("index_sub", lambda x, i, y: tf.tensor_scatter_nd_sub(x, i[:, None], y))
case("index_set", lambda x, i, y: tf.tensor_scatter_nd_update(x, i[:, None], y), gradient=False)
case("segment_sum", lambda x, i: tf.math.unsorted_segment_sum(x, i, 11))
case("gather", tf.gather)
case("pad-mirror", lambda x: tf.pad(x, ((0, 0), (2, 3)), "REFLECT"))
case(
    "sparse-product",
    lambda i, x, b: tf.sparse.sparse_dense_matmul(
        tf.SparseTensor(tf.stack([tf.range(8, dtype=tf.int64), i], 1), x, (8, 9)), b
    ),
)


def singular(x: Any) -> Any:
    """Vectors as columns, values, vectors as rows."""
    values, left, right = tf.linalg.svd(x)
    return left, values, tf.linalg.matrix_transpose(right)


case("qr", tf.linalg.qr)
case("cholesky", tf.linalg.cholesky)
case("triangular_solve", tf.linalg.triangular_solve)
case("solve", tf.linalg.solve)
case("inverse", tf.linalg.inv)
case("determinant", tf.linalg.det)
case("slogdet", tf.linalg.slogdet)
case("eigh", tf.linalg.eigh)
case("svd", singular)
case("lstsq", tf.linalg.lstsq)
case("cross", tf.linalg.cross)
case("tridiagonal_solve", tf.linalg.tridiagonal_solve)

# --- rows -------------------------------------------------------------------------------------------------------------


def padded(x: np.ndarray) -> np.ndarray:
    """Every other number of a larger array, with its axes turned around."""
    turned = np.zeros((*x.shape[:0:-1], 2 * x.shape[0]) if x.ndim else (2,), x.dtype)
    turned[..., ::2] = x.T
    return turned


def chosen(x: Any) -> Any:
    return tf.transpose(x[..., ::2])


def tensors(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def passed(case: Case, layout: str) -> Callable[..., Any]:
    """A function of arrays and of numbers for gradients, which gives results and gradients."""

    def both(given: list[Any], numbers: Any) -> Any:
        given = [chosen(x) if layout == "strided" else x for x in given]
        leaves = [x for x in given if x.dtype.is_floating and case.gradient]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            results = tensors(case.function(*given))
        floating = [y for y in results if y.dtype.is_floating]
        if not leaves or not floating:
            return results, []
        last = [tf.reshape(numbers[i : i + tf.size(y)], tf.shape(y)) for i, y in enumerate(floating)]
        last = [tf.cast(each, y.dtype) for each, y in zip(last, floating, strict=True)]
        slopes = tape.gradient(floating, leaves, last, tf.UnconnectedGradients.ZERO)
        return results, [tf.convert_to_tensor(each) for each in slopes]

    return both


def computed(name: str, case: Case, dtype: str, layout: str) -> Iterator[tuple[Arrays, Arrays]]:
    function = passed(case, layout)
    function = tf.function(function) if layout == "strided" else function
    for draw in range(DRAWS):
        tf.random.set_seed(draw)
        given = drawn(name, case.inputs, draw, dtype)
        given = [padded(x) for x in given] if layout == "strided" else given
        results, slopes = function([tf.constant(x) for x in given], tf.constant(upstream(draw, dtype)))
        yield [each.numpy() for each in results], [each.numpy() for each in slopes]


def rows(only: str = "") -> dict[Row, str]:
    portable.enable()
    return cases.rows(
        CASES | tensorflow_cases.CASES | tensorflow_variables.CASES, computed, (portable.RefusedError,), only
    )


def missing() -> list[str]:
    """Definitions of the mode's registry that no row computed, and that are no exceptions."""
    registry.load()
    return exceptions.unknown("tensorflow", set(dispatch.definitions) - set(dispatch.counts))
