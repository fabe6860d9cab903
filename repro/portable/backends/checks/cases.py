"""The self-check: small cases and their bits.

They are of all that portable numerics rely on.

Each framework computes them when training starts, on its device, compiled as a step is. So it shows when a library or a
compiler takes liberties: products by a transform (Winograd, FFT), in TF32, or with sums in float32; emulated float64; a
rounding to float32 that is dropped between two operations (as XLA does: openxla/xla issues 10687 and 41605); a root and
its reciprocal made one; approximate division or roots; another order of operations; small numbers that become 0.
"""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from repro.errors import ReproError
from repro.portable.backends.numpy import Backend as Numbers
from repro.portable.definitions import optimizers
from repro.portable.definitions.convolution import PLAIN
from repro.portable.definitions.grids import quantize, rounded_product
from repro.portable.definitions.losses import cross_entropy
from repro.portable.definitions.xp import Backend
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BETA1, BETA2, BITS, EPSILON, TINY

log = logging.getLogger(__name__)

EXPECTED = Path(__file__).with_name("fingerprints.txt")
FACTOR = 0.3
"""A factor that is no float32, and whose products with float64 are inexact: what follows must wait for them."""
SGD: dict[str, Any] = {"rate": tables.float32(0.1), "decay": 0.0, "beta": tables.float32(0.9), "nesterov": False}

WEIGHTS = {"int16": 0.7, "int8": 1.4}
"""Weights of an engine's time beside float64's, for `auto`. int16 is for convolutions, too; int8 must be clearly faster."""
LARGE = 2**30  # multiplications: a number for which every matmul backend is used

TITLES = {
    "product": "a product of matrices",
    "convolution": "a convolution",
    "kernel": "a convolution's gradient with respect to its kernel",
    "images": "a convolution's gradient with respect to its images",
    "rounding": "a rounding to float32 between two operations",
    "scaled": "a product of matrices, rounded to float32",
    "maximum": "the maximum of numbers rounded to float32",
    "root": "the reciprocal of a root",
    "grid": "rounding to a quantization grid",
    "loss": "the softmax cross-entropy",
    "sgd": "a step of SGD",
    "adam": "a step of Adam",
}


@cache
def inputs() -> dict[str, tuple[Any, ...]]:
    """The arrays that each case is given. None is given twice, or a compiler would join the operations.

    Of `product` integers of up to 13 bits, [48, 608] and [608, 64], the first rows and columns as large as they can be,
    or as their slices can: int8 units without VNNI saturate there (pytorch/pytorch issue 136746).
    Of `scaled` matrices [48, 64] and [64, 32], and grids of the rows: some results are as small as those that become 0.
    Of the convolutions images [10, 12, 12, 32] and kernels [20, 5, 5, 10], and for their gradients those of results,
    [20, 8, 8, 32]: as large as they can be, too, for some of the results. Of `loss` logits [64, 10] and labels int32
    [64]; of `sgd` weight, gradient and momentum; of `adam` weight, gradient and both moments.
    """
    a, b = _integers(0, (48, 608)), _integers(1, (608, 64))
    for place, most in enumerate((2**BITS, 63 * 128 + 63)):  # the largest number, and the one with the largest slices
        part = slice(4 * place, 4 * place + 4)
        a[part], b[:, part] = most, np.where(np.arange(4) % 2, -most, most)
    images, seen = (_integers(key, (10, 12, 12, 32)) for key in (2, 4))
    kernel, weights = (_integers(key, (20, 5, 5, 10)) for key in (3, 6))
    gradient, result = (_integers(key, (20, 8, 8, 32)) for key in (5, 7))
    for first, second in ((images[..., 0], kernel), (seen[0], gradient), (weights[..., 0], result.T)):
        first[:], second[0], second[1] = 2**BITS, 2**BITS, -(2**BITS)  # all that some sums are made of
    slots = [Numbers.r32(_numbers(key, (4096,), TINY)) for key in range(4, 11)]
    return {
        "product": (a, b),
        "convolution": (images, kernel),
        "kernel": (seen, gradient),
        "images": (weights, result),
        "rounding": (_numbers(1, (64, 64), 2.0**-110),),
        "scaled": (
            _integers(8, (48, 64)),
            _integers(9, (64, 32)),
            np.ldexp(np.float32(1), np.arange(-100, -52)[:, None]),
        ),
        "maximum": (_numbers(2, (64, 64), 2.0**-110),),
        "root": (np.abs(Numbers.r32(_numbers(11, (64, 64), TINY))),),
        "grid": (Numbers.r32(_numbers(3, (64, 64), TINY)),),
        "loss": (Numbers.r32(_numbers(0, (64, 10), 2.0**-3) * 4), np.arange(64, dtype=np.int32) % 10),
        "sgd": (slots[0], slots[2], slots[1]),
        "adam": (slots[3], slots[6], slots[4], np.abs(slots[5])),
    }


def _integers(key: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random integers as float32, from -2^13 to 2^13."""
    words = np.random.Philox(key=[2, key]).random_raw(int(np.prod(shape))).reshape(shape)
    return ((words >> np.uint64(11)) % np.uint64(2 ** (BITS + 1) + 1)).astype(np.float32) - 2**BITS


def _numbers(key: int, shape: tuple[int, ...], smallest: float) -> np.ndarray:
    """Random float64 of both signs and all 53 bits, equally many in each octave from `smallest` to 2."""
    words = np.random.Philox(key=[1, key]).random_raw(2 * int(np.prod(shape))).reshape(2, *shape)
    significands = (words[0] >> np.uint64(11)) * 2.0**-52 + 1  # [1, 3)
    octaves = (words[1] >> np.uint64(1)).astype(np.int64) % (1 - int(np.log2(smallest)))
    return np.where(words[1] & np.uint64(1), -1, 1) * np.ldexp(significands / 2, -octaves)


def adam() -> dict[str, Any]:
    """Adam's constants, for the update after three."""
    corrections = tuple(float(each) for each in tables.adam(BETA1, BETA2)[:, 3])
    constants = {"beta1": BETA1, "beta2": BETA2, "eps": EPSILON, "decoupled": False}
    return {"corrections": corrections, "rate": SGD["rate"], "decay": 0.0, **constants}


def computed(xp: Backend, given: Mapping[str, Sequence]) -> dict[str, tuple]:
    """Results of a framework's backend for inputs()."""
    (rounding,), (maximum,), (root,), (grid,) = (given[name] for name in ("rounding", "maximum", "root", "grid"))
    plain, operands = tuple(PLAIN.values()), partial(xp.operands, work=LARGE)
    images_and = partial(operands, layout=PLAIN["layout"])
    (kernel, result), (images, gradient) = given["images"], given["kernel"]
    *factors, grids = given["scaled"]
    loss, (residual,) = cross_entropy.forward(xp, *given["loss"], mean=False)
    inverse = xp.f64(xp.r32(1.0 / xp.f64(xp.r32(xp.sqrt(xp.f64(root) + EPSILON)))))
    return {
        "product": (xp.matmul(*operands(*given["product"])),),
        "convolution": (xp.convolve(*images_and(*given["convolution"]), *plain),),
        "kernel": (xp.convolve_with(*images_and(images, gradient), (20, 5, 5, 10), *plain),),
        "images": (xp.convolve_back(*images_and(result, kernel), (10, 12, 12, 32), *plain),),
        "rounding": (xp.f64(xp.r32(rounding * FACTOR)) * FACTOR,),
        "scaled": (rounded_product(xp, *operands(*factors), grids),),
        "maximum": (xp.maximum_of(xp.f64(xp.r32(maximum * FACTOR))),),
        "root": (inverse * FACTOR,),
        "grid": quantize(xp, grid, (1,)),
        "loss": (loss, residual),
        "sgd": optimizers.sgd(xp, *given["sgd"], **SGD),
        "adam": optimizers.adam(xp, *given["adam"], **adam()),
    }


@cache
def expected() -> dict[str, list[str]]:
    """The fingerprint of each result, by case: fingerprints.txt, which tests compare with the reference implementation."""
    lines = [line.split() for line in EXPECTED.read_text().splitlines()]
    return {name: digests for name, *digests in lines}


def fingerprint(result: np.ndarray) -> str:
    """The first 16 digits of the SHA-256 of numbers as float64, zeros without a sign."""
    return hashlib.sha256((np.asarray(result, np.float64) + 0.0).tobytes()).hexdigest()[:16]


def check(name: str, results: Mapping[str, Sequence[np.ndarray]]) -> None:
    """Raises ReproError if what a library computed for inputs() has other bits than expected()."""
    for case, title in TITLES.items():
        if [fingerprint(result) for result in results[case]] != expected()[case]:
            raise ReproError(
                f"portable numerics: {name} does not compute {title} by the rules on this device; use another device "
                "(params.device) or version, take flags out of environment in train.yaml, or use "
                "params.numerics=deterministic"
            )


def choose_engine(
    name: str,
    xp: Backend,
    wanted: str,
    run: Callable[[], Mapping],
    multiply: Callable[[], object],
    paired: bool = False,
    int8_may_be_faster: bool = True,
) -> None:
    """Checks a library, and sets its matmul backend, `xp.engine`: the one that is wanted, or with `auto` the fastest.

    `run` gives what the library computes of inputs(), `multiply` is a large product, both by the matmul backend of that
    moment. With `paired` there is int16, and `auto` does not time int8 unless that may be faster. For one that is not
    there, or fails its check, float64 is taken, with a line in the log.
    ReproError where that fails, too.
    """
    xp.engine = "float64"
    check(name, run())
    if wanted == "float64":
        return
    if wanted == "int16" and not paired:
        log.warning("portable: %s has no matmul backend %s on this device, so it is float64", name, wanted)
        return
    asked = [wanted]
    if wanted == "auto":
        asked = ["int16"] * paired + ["int8"] * (int8_may_be_faster or not paired)
    taken = {"float64": _seconds(multiply) if wanted == "auto" else math.inf}
    for xp.engine in asked:
        try:
            check(name, run())
            taken[xp.engine] = WEIGHTS[xp.engine] * _seconds(multiply) if wanted == "auto" else 0.0
        except Exception as error:  # a library may lack the product altogether: on some GPUs, for some sizes
            own = isinstance(error, ReproError)
            said = (
                str(error).split("; ")[0]
                if own
                else f"portable: {name} has no such products on this device ({_first_line(error)})"
            )
            log.warning("%s; so the matmul backend is not %s", said, xp.engine)
    xp.engine = min(taken, key=taken.__getitem__)
    log.info("portable: the matmul backend is %s", xp.engine)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def _seconds(work: Callable[[], object]) -> float:
    """The least of seven calls."""
    seconds = []
    for _ in range(7):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


@cache
def large() -> tuple[np.ndarray, np.ndarray]:
    """Integers for `multiply`, float32 [768, 768] each."""
    return _integers(8, (768, 768)), _integers(9, (768, 768))
