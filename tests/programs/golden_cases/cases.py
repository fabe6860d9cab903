"""Arrays that operations of golden/operations.txt are computed of, and the digests of their results.

All numbers follow from words of Philox by exact arithmetic, so that they are the same on any machine.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from typing import Any

import numpy as np

from programs.golden_cases.table import Row

DRAWS = 3
"""PyTorch traces an operation in its second call, and runs its kernels from the third on."""
LONGEST = 2**17
"""Numbers of the largest results."""
FLOATS = ("float32", "float64")
LAYOUTS = ("contiguous", "strided")


@dataclass(frozen=True)
class Input:
    """An array: its shape, and what its numbers are."""

    shape: tuple[int, ...]
    kind: str = "normal"
    below: int = 0

    def drawn(self, key: str, draw: int, dtype: str) -> np.ndarray:
        if self.kind == "index":
            return (words(key, self.shape) % np.uint64(self.below)).astype(np.int64)
        if self.kind == "mask":
            return words(key, self.shape) % np.uint64(3) > 0
        return MAKERS[self.kind](key, draw, self.shape).astype(dtype)

    @property
    def floating(self) -> bool:
        return self.kind not in ("index", "mask")


@dataclass(frozen=True)
class Case:
    """An operation of arrays."""

    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    gradient: bool = True
    """True if it has a gradient."""
    floats: tuple[str, ...] = FLOATS


def filler(table: dict[str, Case]) -> Callable[..., None]:
    """A function that adds a case to a table; without inputs, a case of several frameworks."""

    def case(
        name: str, function: Callable[..., Any], *inputs: Input, gradient: bool = True, floats: tuple[str, ...] = FLOATS
    ) -> None:
        assert name not in table, name
        assert (name in INPUTS) != bool(inputs), name
        table[name] = Case(function, inputs or INPUTS[name], gradient, floats)

    return case


# --- numbers ----------------------------------------------------------------------------------------------------------


def words(key: str, shape: tuple[int, ...]) -> np.ndarray:
    """uint64."""
    count = int(np.prod(shape, dtype=np.int64))
    generator = np.random.Philox(key=[zlib.crc32(key.encode()), len(key)])
    return np.asarray(generator.random_raw(count), np.uint64).reshape(shape)


def uniform(key: str, shape: tuple[int, ...]) -> np.ndarray:
    """float64 from -1 to before 1."""
    return (words(key, shape) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def normal(key: str, draw: int, shape: tuple[int, ...]) -> np.ndarray:
    """Of one magnitude, of many, and small ones."""
    scales = (4.0, 2.0 ** ((words(f"{key} scale", shape) % np.uint64(13)).astype(np.float64) - 8.0), 0.25)
    return uniform(key, shape) * scales[draw]


def special(key: str, draw: int, shape: tuple[int, ...]) -> np.ndarray:
    """Also far numbers, zeros, infinities and NaN, in the last draw."""
    result = normal(key, draw, shape)
    if draw == DRAWS - 1:
        result.flat[: 2 * len(AWKWARD)] = [*AWKWARD, *(-each for each in AWKWARD)]
    return result


def definite(key: str, draw: int, shape: tuple[int, ...]) -> np.ndarray:
    """Symmetric matrices of positive eigenvalues, of integers."""
    result = np.rint(uniform(key, shape) * 64.0)
    return (result @ result.swapaxes(-1, -2) + 512.0 * np.eye(shape[-1])) * 2.0 ** (-9 - draw)


AWKWARD = (0.0, np.inf, np.nan, 1.0, 0.5, 2.0**-24, 2.0**-100, 20.0, 88.0, 104.0, 300.0, 2.0**23 + 1, 2.0**100, 3.0)
MAKERS: dict[str, Callable[[str, int, tuple[int, ...]], np.ndarray]] = {
    "normal": normal,
    "special": special,
    "positive": lambda *given: np.abs(normal(*given)) + 2.0**-10,
    "half line": lambda *given: np.abs(special(*given)),
    "unit": lambda key, draw, shape: uniform(key, shape),
    "share": lambda key, draw, shape: np.abs(uniform(key, shape)) * 0.75 + 0.125,
    "above 1": lambda *given: np.abs(normal(*given)) + 1.0,
    "ties": lambda key, draw, shape: np.rint(uniform(key, shape) * 4.0),
    "definite": definite,
    "triangular": lambda *given: np.tril(definite(*given)),
}


def array(*shape: int, kind: str = "normal") -> Input:
    return Input(shape, kind)


def mask(*shape: int) -> Input:
    return Input(shape, "mask")


def index(below: int, *shape: int) -> Input:
    return Input(shape, "index", below)


# --- digests ----------------------------------------------------------------------------------------------------------


def digest(results: Iterable[np.ndarray]) -> str:
    """Of all bits of arrays. Each NaN is one, numbers below the smallest normal one are zeros, and integers int64."""
    digest = hashlib.sha256()
    for each in results:
        if each.dtype.kind == "f":
            each = np.where(np.isnan(each), each.dtype.type(np.nan), each)
            each = np.where(np.abs(each) < np.finfo(each.dtype).tiny, each.dtype.type(0), each)
        else:
            each = each.astype(np.int64)
        digest.update(f"{each.dtype}{each.shape}".encode() + np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()[:16]


# --- rows -------------------------------------------------------------------------------------------------------------

Arrays = list[np.ndarray]
Computed = Callable[[str, Case, str, str], Iterable[tuple[Arrays, Arrays]]]
"""Of a name, its case, a type and a layout: the results and gradients of each draw."""


def drawn(name: str, inputs: tuple[Input, ...], draw: int, dtype: str) -> Arrays:
    return [each.drawn(f"{name} {i}", draw, dtype) for i, each in enumerate(inputs)]


@cache
def upstream(draw: int, dtype: str) -> np.ndarray:
    """Numbers for the gradients of results: the one of number i begins with number i."""
    return uniform(f"upstream {draw}", (LONGEST,)).astype(dtype)


def rows(
    cases: dict[str, Case], computed: Computed, refused: tuple[type[Exception], ...], only: str = ""
) -> dict[Row, str]:
    """Digests by row; "refused" where the mode refuses an operation of this type."""
    result: dict[Row, str] = {}
    for name, case in cases.items():
        for dtype, layout in product(case.floats, LAYOUTS) if only in name else ():
            try:
                results, gradients = zip(*computed(name, case, dtype, layout), strict=True)
            except refused:
                result[name, dtype, "forward", layout] = "refused"
                continue
            result[name, dtype, "forward", layout] = digest(chain(*results))
            if any(gradients):
                result[name, dtype, "gradient", layout] = digest(chain(*gradients))
    return result


# --- operations of several frameworks ---------------------------------------------------------------------------------

VECTOR, MATRIX = array(300), array(6, 50)
IMAGES, KERNEL = array(3, 8, 7, 4), array(3, 3, 4, 6)
VOLUMES = array(2, 5, 6, 4, 3)
SQUARES, RIGHT = array(2, 6, 6, kind="definite"), array(2, 6, 4)

_REAL = array(300, kind="special")
_POSITIVE = array(300, kind="half line")
_UNIT = array(300, kind="unit")
_REALS = (
    *("exp", "exp2", "expm1", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc", "sinh", "cosh", "asinh", "atan"),
    *("i0e", "i1e", "lgamma", "digamma", "elu", "selu", "softplus", "softsign", "square", "relu", "reciprocal"),
)
COMPLEX = (
    *("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
"""Functions of complex numbers."""
BESSEL = "j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e"
"""Bessel functions by TensorFlow's names."""
INPUTS: dict[str, tuple[Input, ...]] = {
    **dict.fromkeys(_REALS, (_REAL,)),
    **dict.fromkeys(("log", "log1p", "sqrt", "rsqrt"), (_POSITIVE,)),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (_UNIT,)),
    **dict.fromkeys(("i0", "i1"), (VECTOR,)),
    **dict.fromkeys(BESSEL, (array(240, kind="half line"),)),
    "zeta": (array(240, kind="above 1"), array(240, kind="positive")),
    "polygamma": (array(240, kind="special"),),
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "gamma_slope"), (array(240, kind="positive"),) * 2),
    "betainc": (*[array(240, kind="positive")] * 2, array(240, kind="share")),
    "rfft-long": (array(2, 5000),),
    "fft-prime": (array(1, 4099), array(1, 4099)),
    "acosh": (array(300, kind="above 1"),),
    "ndtri": (array(300, kind="share"),),
    "exp-large": (array(70000),),
    "atan2": (_REAL, array(300, kind="special")),
    "pow": (array(300, kind="positive"), VECTOR),
    "pow-number": (array(300, kind="positive"),),
    "xlogy": (VECTOR, array(300, kind="positive")),
    "xlog1py": (VECTOR, array(300, kind="positive")),
    "add": (MATRIX, array(50)),
    "sub": (MATRIX, array(50)),
    "mul": (MATRIX, array(50)),
    "div": (MATRIX, array(50, kind="positive")),
    "maximum": (MATRIX, array(50)),
    "minimum": (MATRIX, array(50)),
    # products
    "matmul": (array(9, 40), array(40, 7)),
    "matmul-batched": (array(3, 9, 40), array(3, 40, 7)),
    "matmul-large": (array(60, 150), array(150, 70)),
    "matmul-vector": (array(9, 40), array(40)),
    "dot": (array(70), array(70)),
    "einsum": (array(2, 5, 3, 4), array(2, 6, 3, 4)),
    # complex numbers: real and imaginary parts
    "complex-mul": (array(6, 20), array(6, 20)),
    "complex-matmul": (array(6, 20), array(20, 5)),
    **dict.fromkeys((f"complex-{name}" for name in COMPLEX), (array(60), array(60))),
    "rfft2": (array(3, 6, 33),),
    # sums
    "sum": (MATRIX,),
    "sum-all": (MATRIX,),
    "sum-axes": (array(3, 8, 7, 4),),
    "sum-large": (array(70, 1100),),
    "mean": (MATRIX,),
    "mean-all": (MATRIX,),
    "prod": (array(6, 20),),
    "prod-all": (array(6, 5),),
    "norm": (MATRIX,),
    "cumsum": (MATRIX,),
    "cumsum-backward": (MATRIX,),
    "cumprod": (array(6, 20),),
    "cumlogsumexp": (MATRIX,),
    "cumlogsumexp-forward": (MATRIX,),
    "logsumexp": (MATRIX,),
    "var": (MATRIX,),
    "std": (MATRIX,),
    "max": (array(6, 50),),
    # softmax, losses
    "softmax": (MATRIX,),
    "softmax-large": (array(130, 130),),
    "log_softmax": (MATRIX,),
    "cross_entropy": (array(9, 11), index(11, 9)),
    "cross_entropy-shares": (array(9, 11), array(9, 11, kind="share")),
    # windows
    "conv1d": (array(3, 12, 4), array(3, 4, 6)),
    "conv1d-dilated": (array(3, 12, 4), array(3, 4, 6)),
    "conv2d": (IMAGES, KERNEL),
    "conv2d-stride": (IMAGES, KERNEL),
    "conv2d-same": (IMAGES, KERNEL),
    "conv2d-dilated": (IMAGES, KERNEL),
    "conv2d-grouped": (IMAGES, array(3, 3, 2, 6)),
    "conv2d-depthwise": (IMAGES, array(3, 3, 4, 1)),
    "conv2d-point": (IMAGES, array(1, 1, 4, 6)),
    "conv2d-large": (array(4, 20, 20, 16), array(3, 3, 16, 32)),
    "conv3d": (VOLUMES, array(2, 3, 2, 3, 4)),
    "conv3d-stride": (VOLUMES, array(2, 3, 2, 3, 4)),
    "conv_transpose1d": (array(3, 12, 4), array(3, 4, 6)),
    "conv_transpose2d": (IMAGES, KERNEL),
    "conv_transpose3d": (VOLUMES, array(2, 3, 2, 3, 4)),
    "avg_pool2d": (IMAGES,),
    "avg_pool2d-overlap": (IMAGES,),
    "avg_pool3d": (VOLUMES,),
    "max_pool2d": (IMAGES,),
    "max_pool2d-ties": (array(3, 8, 7, 4, kind="ties"),),
    "max_pool3d": (VOLUMES,),
    "batch_norm": (IMAGES, array(4), array(4)),
    "batch_norm-fixed": (IMAGES, array(4), array(4), array(4), array(4, kind="positive")),
    "bilinear": (IMAGES,),
    "bilinear-larger": (IMAGES,),
    "nearest": (IMAGES,),
    # by index
    "embedding": (array(11, 5), index(11, 40)),
    "index_add": (array(11, 3), index(11, 50), array(50, 3)),
    "index_sub": (array(11, 3), index(11, 50), array(50, 3)),
    "index_set": (array(11, 3), index(11, 50), array(50, 3)),
    "segment_sum": (array(50, 3), index(11, 50)),
    "gather": (array(11, 3), index(11, 50)),
    "pad-mirror": (array(5, 9),),
    "sparse-product": (index(9, 8), array(8), array(9, 4)),
    "sparse-product-rows": (index(9, 8), array(8), array(9, 4)),
    # linear algebra
    "qr": (array(2, 6, 4),),
    "cholesky": (SQUARES,),
    "triangular_solve": (array(2, 6, 6, kind="triangular"), RIGHT),
    "solve": (SQUARES, RIGHT),
    "inverse": (SQUARES,),
    "determinant": (SQUARES,),
    "slogdet": (SQUARES,),
    "eigh": (SQUARES,),
    "svd": (array(2, 6, 4),),
    "reflections": (array(2, 6, 4),),
    "householder_product": (array(2, 6, 4), array(2, 4, kind="share")),
    "ormqr": (array(2, 6, 4), array(2, 4, kind="share"), array(2, 6, 3)),
    "lstsq": (array(6, 4), array(6, 3)),
    "cross": (array(9, 3), array(9, 3)),
    "tridiagonal_solve": (array(2, 3, 7), array(2, 7, 4)),
}
"""By name. Images are [B, H, W, C], and weights of convolutions [H, W, C, K]."""
