"""Reference implementation: every operation in plain NumPy.

Forward and backward, by docs/reference/specification.md.

It shares no code with repro/portable/operations, whose mistakes it is there to find. Read it before you write them for
another framework. Arrays between operations are float32. Inside, a sum that must be exact is one of int64. The rest is
float64, one correctly rounded operation at a time.

A file has one subject.

An operation's `..._gradients` takes the same arrays, and then `gradient`, that of a loss with respect to the result. It
gives the gradient with respect to each array, None where there is none.
"""

from reference.arithmetic import (
    cumulative_sum,
    exact_dot,
    exact_mean,
    exact_sum,
    f64,
    grid,
    length,
    r32,
    sum_by_index,
    swap,
)
from reference.attention import attention, attention_gradients, exponentials, softmax, softmax_gradients
from reference.convolution import (
    average_pool,
    average_pool_gradients,
    channels,
    convolution,
    convolution_gradients,
    convolution_gradients_highest,
    convolution_highest,
    max_pool,
    max_pool_gradients,
    mean,
    mean_gradients,
    meetings,
    sizes,
)
from reference.linear import embedding, embedding_gradients, linear, linear_gradients, matmul, matmul_highest
from reference.losses import cross_entropy, cross_entropy_gradients, logarithm, mse, mse_gradients
from reference.normalization import normalize, normalize_by, normalize_by_gradients, normalize_gradients
from reference.optimizers import adadelta, adam, clip, moving, sgd
from reference.pointwise import (
    activation,
    activation_gradients,
    add,
    add_gradients,
    affine,
    affine_gradients,
    dropout,
    dropout_gradients,
    keep,
    philox,
    relu,
    relu_gradients,
    rotate,
    rotate_gradients,
)

__all__ = [
    "activation",
    "activation_gradients",
    "adadelta",
    "adam",
    "add",
    "add_gradients",
    "affine",
    "affine_gradients",
    "attention",
    "attention_gradients",
    "average_pool",
    "average_pool_gradients",
    "channels",
    "clip",
    "convolution",
    "convolution_gradients",
    "convolution_gradients_highest",
    "convolution_highest",
    "cross_entropy",
    "cross_entropy_gradients",
    "cumulative_sum",
    "dropout",
    "dropout_gradients",
    "embedding",
    "embedding_gradients",
    "exact_dot",
    "exact_mean",
    "exact_sum",
    "exponentials",
    "f64",
    "grid",
    "keep",
    "length",
    "linear",
    "linear_gradients",
    "logarithm",
    "matmul",
    "matmul_highest",
    "max_pool",
    "max_pool_gradients",
    "mean",
    "mean_gradients",
    "meetings",
    "moving",
    "mse",
    "mse_gradients",
    "normalize",
    "normalize_by",
    "normalize_by_gradients",
    "normalize_gradients",
    "philox",
    "r32",
    "relu",
    "relu_gradients",
    "rotate",
    "rotate_gradients",
    "sgd",
    "sizes",
    "softmax",
    "softmax_gradients",
    "sum_by_index",
    "swap",
]
