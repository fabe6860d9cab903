"""Random numbers: those of TensorFlow's generators, whose bits are exact, and functions of them.

Its kernels make bits by Philox or ThreeFry, and uniform numbers of these. Normal ones follow from the same bits by
functions, which are defined here. Gamma samples have bits of their own.
"""

import math
from itertools import count
from typing import Any

import numpy as np
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op, dtypes, tensor_util
from tensorflow.python.ops import (
    array_ops,
    gen_array_ops,
    gen_random_ops,
    gen_stateful_random_ops,
    gen_stateless_random_ops,
    gen_stateless_random_ops_v2,
    math_ops,
)

from repro.portable.backends.numpy import Array, Backend
from repro.portable.compiler.numpy import elements
from repro.portable.definitions import distributions, exponentials
from repro.portable.definitions.functions.errors import ndtr
from repro.portable.definitions.functions.logarithmic import log
from repro.portable.definitions.functions.quantiles import ndtri
from repro.portable.definitions.functions.trigonometric import cos, sin
from repro.portable.definitions.random import philox
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose, define
from repro.portable.modes.tensorflow.dispatcher.graphs import Answering, Attribute, as_operation, calculated
from repro.portable.modes.tensorflow.dispatcher.types import cast_back

WORD = 2**32
SMALLEST_SHARE = float(np.float32(1e-7))
"""A share of 0 has no logarithm: TensorFlow's own takes this in its place."""


def _numpy(dtype: Any) -> np.dtype:
    return np.dtype(dtypes.as_dtype(dtype).as_numpy_dtype)


def _normal_of_bits(given: Attributes, words: Array, shape: Array) -> Array:
    """Normal numbers from uint32 words, two for two numbers: G. Box and M. Muller, as TensorFlow has it for float32."""
    shares = (words & np.uint32(0x7FFFFF)).astype(np.float64) * 2.0**-23

    def numbers(xp: Any, first: Array, second: Array) -> Array:
        radius = xp.sqrt(log(xp, np.maximum(first, SMALLEST_SHARE), 24) * -2.0)
        angle = second * (2.0 * math.pi)
        return radius * sin(xp, angle, 24, large=False), radius * cos(xp, angle, 24, large=False)

    pairs = shares.reshape(-1, 2)
    normals = numbers(Backend, pairs[:, 0].copy(), pairs[:, 1].copy())
    flat = np.stack(normals, 1).reshape(-1)[: math.prod(map(int, shape))]
    return cast_back(flat.reshape(tuple(map(int, shape))), _numpy(given["dtype"]))


def _truncated_of_bits(given: Attributes, words: Array, shape: Array) -> Array:
    """The quantile function, between those of -2 and 2, of uint32 words."""

    def numbers(xp: Any, share: Array) -> Array:
        low = ndtr(xp, np.array([-2.0]))[0]
        return xp.clip(ndtri(xp, share * (1.0 - 2.0 * low) + low), -2.0, 2.0)

    flat = words[: math.prod(map(int, shape))].astype(np.float64) + 0.5
    result = elements.run(numbers, flat * (1.0 / WORD))
    return cast_back(result.reshape(tuple(map(int, shape))), _numpy(given["dtype"]))


DISTRIBUTIONS = {"normal": _normal_of_bits, "truncated": _truncated_of_bits}


def _drawn(kind: str, given: Attributes, shape: Any, words: Any) -> Any:
    """Numbers of a shape. `words` makes that many uint32."""
    shape = math_ops.cast(shape, dtypes.int32)
    number = math_ops.reduce_prod(shape)
    bits = words(array_ops.reshape((number + 3) // 4 * 4, [1]))
    dtype = dtypes.as_dtype(given["dtype"])
    known = tensor_util.constant_value_as_shape(shape)
    (result,) = calculated(
        f"random_{kind}", DISTRIBUTIONS[kind], {"dtype": dtype.as_datatype_enum}, [bits, shape], [dtype], [known]
    )
    return result


def _stateless(kind: str, *names: str) -> None:
    @compose(names[0])
    def by_key(given: Attributes, shape: Any, key: Any, counter: Any, algorithm: Any) -> Any:
        make = gen_stateless_random_ops_v2.stateless_random_uniform_full_int_v2
        return _drawn(kind, given, shape, lambda n: make(n, key, counter, algorithm, dtype=dtypes.uint32))

    @compose(names[1])
    def by_seed(given: Attributes, shape: Any, seed: Any) -> Any:
        make = gen_stateless_random_ops.stateless_random_uniform_full_int
        return _drawn(kind, given, shape, lambda n: make(n, seed, dtype=dtypes.uint32))

    @compose(names[2])
    def by_operation(given: Attributes, shape: Any) -> Any:
        seeds = int(given["seed"]), int(given["seed2"])

        def make(n: Any) -> Any:
            low, high = (constant_op.constant(each, dtypes.int64) for each in (0, WORD))
            drawn = gen_random_ops.random_uniform_int(n, low, high, seed=seeds[0], seed2=seeds[1])
            return math_ops.cast(drawn, dtypes.uint32)

        return _drawn(kind, given, shape, make)

    @compose(names[3])
    def by_generator(given: Attributes, resource: Any, algorithm: Any, shape: Any) -> Any:
        make = gen_stateful_random_ops.stateful_uniform_full_int
        return _drawn(kind, given, shape, lambda n: make(resource, algorithm, n, dtype=dtypes.uint32))


_stateless(
    "normal", "StatelessRandomNormalV2", "StatelessRandomNormal", "RandomStandardNormal", "StatefulStandardNormalV2"
)
_stateless(
    "truncated", "StatelessTruncatedNormalV2", "StatelessTruncatedNormal", "TruncatedNormal", "StatefulTruncatedNormal"
)


# --- by rejection -----------------------------------------------------------------------------------------------------


def _accepted(words: Array, shape: Array, choose: Any, *parameters: Array) -> Array:
    """The first accepted number of each element, float64, with the definition's own bits: its key is made of TensorFlow's words.

    `choose` gives a definition and the places where it serves, of flat parameters, for one after another.
    """
    halves = [np.array([int(whole) >> bits & (WORD - 1)]) for whole in words for bits in (0, 32)]
    low, high, *_ = philox(Backend, tuple(halves[:4]), tuple(halves[4:]))
    mixed = low | high >> 1 << 32
    whole = tuple(map(int, shape))
    flat = [np.broadcast_to(each, whole).reshape(-1).astype(np.float64) for each in parameters]
    numbers = np.empty_like(flat[0])
    for definition, left in choose(*flat):
        for part in count():
            if not left.size:
                break
            drawn, accepted = definition(Backend, left, mixed, part, *(each[left] for each in flat))
            numbers[left[accepted]] = drawn[accepted]
            left = left[~accepted]
    return numbers.reshape(whole)


@define("StatelessRandomGammaV3")
def gamma(given: Attributes, shape: Array, key: Array, counter: Array, algorithm: Array, alpha: Array) -> Array:
    """Numbers of the gamma distribution of scale 1."""
    every = [(distributions.gamma, np.arange(math.prod(map(int, shape))))]
    numbers = _accepted([*counter, *key], shape, lambda _: every, alpha)
    return cast_back(np.maximum(numbers, float(np.finfo(np.float32).tiny)), alpha.dtype)


@compose("RandomGamma")
def gamma_by_operation(given: Attributes, shape: Any, alpha: Any) -> Any:
    """A block of samples for each parameter, of bits that the operation draws."""
    drawn = _words(given)
    whole = array_ops.concat([math_ops.cast(shape, dtypes.int32), array_ops.shape(alpha)], 0)
    make = gen_stateless_random_ops_v2.stateless_random_gamma_v3
    samples = make(whole, drawn[:1], drawn[1:], constant_op.constant(1), alpha)
    if context.executing_eagerly():
        return samples
    (kept,) = calculated("random_gamma", _last, {}, [shape, alpha, samples], [alpha.dtype], [samples.shape])
    types = {"S": shape.dtype, "T": alpha.dtype}
    attributes = {name: Attribute(type=each.as_datatype_enum) for name, each in types.items()}
    attributes |= {name: Attribute(i=int(given[name])) for name in ("seed", "seed2")}
    return as_operation(kept.op, _Sampling, "RandomGamma", attributes)


class _Sampling(Answering):
    """A node for `RandomGamma`: its last input, the samples, is none of the operation's, which has a gradient for each."""

    @property
    def inputs(self) -> Any:
        return tuple(super().inputs)[:-1]


def _last(given: Attributes, *arrays: Array) -> Array:
    """The last of a node's inputs. The first ones are those of the operation, whose gradient asks for them."""
    return arrays[-1]


def _words(given: Attributes) -> Any:
    """A key and a counter, uint64 [3], by an operation's seeds."""
    low, high = (constant_op.constant(each, dtypes.int64) for each in (0, 2**62))
    seeds = {"seed": int(given["seed"]), "seed2": int(given["seed2"])}
    return math_ops.cast(gen_random_ops.random_uniform_int([3], low, high, **seeds), dtypes.uint64)


def _poisson(given: Attributes, words: Array, shape: Array, rate: Array) -> Array:
    def choose(mean: Array) -> list[tuple[Any, Array]]:
        few = ~(mean >= distributions.FEW)
        return [(distributions.few_poisson, np.flatnonzero(few)), (distributions.poisson, np.flatnonzero(~few))]

    numbers = _accepted(words, shape, choose, np.where(rate >= 0, rate, math.nan))
    return cast_back(numbers, _numpy(given["dtype"]))


def _poisson_of(given: Attributes, words: Any, shape: Any, rate: Any) -> Any:
    dtype = dtypes.as_dtype(given["dtype"])
    shape = math_ops.cast(shape, dtypes.int32)
    known = tensor_util.constant_value_as_shape(shape)
    given = {"dtype": dtype.as_datatype_enum}
    (result,) = calculated("random_poisson", _poisson, given, [words, shape, rate], [dtype], [known])
    return result


@compose("RandomPoissonV2")
def poisson(given: Attributes, shape: Any, rate: Any) -> Any:
    whole = array_ops.concat([math_ops.cast(shape, dtypes.int32), array_ops.shape(rate)], 0)
    return _poisson_of(given, _words(given), whole, rate)


@compose("StatelessRandomPoisson")
def poisson_by_seed(given: Attributes, shape: Any, seed: Any, rate: Any) -> Any:
    key, counter = gen_stateless_random_ops_v2.stateless_random_get_key_counter(seed)
    return _poisson_of(given, array_ops.concat([counter, key], 0), shape, rate)


# --- classes ----------------------------------------------------------------------------------------------------------


def _chosen(given: Attributes, logits: Array, drawn: Array) -> Array:
    """The class in whose share of the sum of exp(logits) each number of [0, 1) lies: [N, V], [N, S] -> [N, S]."""
    steps = np.rint(logits.astype(np.float32).astype(np.float64) * 2.0**20)
    power, total = exponentials.powers(Backend, steps)
    ends = np.rint(power).cumsum(-1)
    place = drawn * total
    classes = np.stack([np.searchsorted(row, at, side="right") for row, at in zip(ends, place, strict=True)])
    return np.minimum(classes, logits.shape[1] - 1).astype(_numpy(given["output_dtype"]))


def _classes(given: Attributes, logits: Any, number: Any, make: Any) -> Any:
    shape = gen_array_ops.pack([array_ops.shape(logits)[0], number])
    dtype = dtypes.as_dtype(given["output_dtype"])
    known = [logits.shape[0], tensor_util.constant_value(number)]
    given = {"output_dtype": dtype.as_datatype_enum}
    (result,) = calculated("categorical", _chosen, given, [logits, make(shape)], [dtype], [known])
    return result


@compose("Multinomial")
def multinomial(given: Attributes, logits: Any, number: Any) -> Any:
    seeds = int(given["seed"]), int(given["seed2"])

    def make(shape: Any) -> Any:
        return gen_random_ops.random_uniform(shape, dtypes.float64, seed=seeds[0], seed2=seeds[1])

    return _classes(given, logits, number, make)


@compose("StatelessMultinomial")
def stateless_multinomial(given: Attributes, logits: Any, number: Any, seed: Any) -> Any:
    make = gen_stateless_random_ops.stateless_random_uniform
    return _classes(given, logits, number, lambda shape: make(shape, seed, dtype=dtypes.float64))
