"""Classes that are drawn as negative examples, and how often each is expected."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from tensorflow.python.framework import constant_op, dtypes
from tensorflow.python.ops import gen_random_ops

from repro.portable.backends.numpy import Array, Backend
from repro.portable.definitions import random
from repro.portable.definitions.functions.exponential import exp, expm1
from repro.portable.definitions.functions.logarithmic import log, log1p
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose
from repro.portable.modes.tensorflow.dispatcher.graphs import calculated

TYPES = (dtypes.int64, dtypes.float32, dtypes.float32)
Draw = Callable[[Array, int], Array]


def _uniform(share: Array, classes: int) -> Array:
    return np.floor(share * classes)


def _uniform_probability(chosen: Array, classes: int) -> Array:
    return np.full(chosen.shape, 1.0 / classes)


def _log_uniform(share: Array, classes: int) -> Array:
    """Classes by Zipf's law: low numbers are frequent."""
    return np.floor(exp(Backend, share * _log(classes + 1.0))) - 1.0


def _log_uniform_probability(chosen: Array, classes: int) -> Array:
    more = chosen + 1.0
    return (log(Backend, more + 1.0) - log(Backend, more)) / _log(classes + 1.0)


def _log(x: float) -> Array:
    return log(Backend, np.array([x]))


def _drawn(draw: Draw, key: Array, given: Attributes) -> tuple[Array, int]:
    """The classes, and the number of draws."""
    number, classes, chosen = given["num_sampled"], given["range_max"], np.empty(0, np.int64)
    for part in count():
        words = random.words(Backend, np.arange(number), key.astype(np.int64), part)[:2]
        share = (words[0] * 2**20 + (words[1] >> 12)) * 2.0**-52
        more = np.minimum(draw(share, classes), classes - 1.0).astype(np.int64)
        if not given["unique"]:
            return more, number
        chosen = np.concatenate([chosen, more])
        _, first = np.unique(chosen, return_index=True)
        if len(first) >= number:
            first = np.sort(first)[:number]
            return chosen[first], int(first[-1]) + 1
    raise AssertionError


def _sampler(name: str, draw: Draw, probability: Draw) -> None:
    def sampled(given: Attributes, true: Array, key: Array) -> tuple[Array, Array, Array]:
        chosen, tries = _drawn(draw, key, given)

        def expected(each: Array) -> Array:
            share = probability(each.reshape(-1).astype(np.float64), given["range_max"])
            again = tries > given["num_sampled"]  # as TensorFlow has it: without a repetition nothing was rejected
            result = -expm1(Backend, log1p(Backend, -share) * tries) if again else share * tries
            return result.reshape(each.shape).astype(np.float32)

        return chosen, expected(true), expected(chosen)

    @compose(name)
    def candidates(given: Attributes, true: Any) -> list[Any]:
        if given["unique"] and given["num_sampled"] > given["range_max"]:
            raise ValueError(f"{given['num_sampled']} classes of {given['range_max']} cannot be unique")
        low, high = (constant_op.constant(each, dtypes.int64) for each in (0, 2**62))
        seeds = {"seed": int(given["seed"]), "seed2": int(given["seed2"])}
        key = gen_random_ops.random_uniform_int([1], low, high, **seeds)
        how = {each: given[each] for each in ("num_sampled", "range_max", "unique")}
        number = given["num_sampled"]
        return calculated(name, sampled, how, [true, key], TYPES, [[number], true.shape, [number]])


_sampler("UniformCandidateSampler", _uniform, _uniform_probability)
_sampler("LogUniformCandidateSampler", _log_uniform, _log_uniform_probability)
