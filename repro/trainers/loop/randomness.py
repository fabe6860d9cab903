"""Random numbers of a run: pure functions of (seed, purpose, epoch).

Nothing is drawn from a framework's generator. The numbers are the raw 64-bit words of NumPy's counter-based `Philox`
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), whose stream NumPy keeps stable; the key is (seed,
purpose) and the epoch sits in the counter. So resuming needs no generator's state, all frameworks see the same data,
and the number of loader workers cannot matter.
"""

import enum
import functools
import math

import numpy as np

from repro.trainers.loop import layout


class Purpose(enum.IntEnum):
    """The use of a stream of numbers. Each has a stream of its own, keyed by its value: never reuse one."""

    WEIGHTS = 1
    ORDER = 2
    DROPOUT = 3


def words(seed: int, purpose: Purpose, epoch: int, count: int, start: int = 0) -> np.ndarray:
    """`count` random 64-bit words of a stream, from its word number `start` on, uint64 [count]."""
    key = np.array([seed, purpose], np.uint64)  # as a list, a seed of 64 bits would be rounded to a float
    block, skipped = divmod(start, 4)  # a value of the counter gives four words
    return np.random.Philox(key=key, counter=[block, 0, epoch, 0]).random_raw(skipped + count)[skipped:]


def initial_weights(seed: int, model: str) -> dict[str, np.ndarray]:
    """The weights before the first step, float32: uniform in +-1/sqrt(fan-in), kernels and biases alike.

    Each is a 24-bit integer scaled to [-1, 1), times the bound. Square root, division and product are single correctly
    rounded float64 operations and one rounding to float32 ends them, so every machine computes the same bits.
    """
    shapes, fan_in = layout.MODELS[model].weights, layout.MODELS[model].fan_in
    sizes = [math.prod(shape) for shape in shapes.values()]
    raw = words(seed, Purpose.WEIGHTS, 0, sum(sizes))
    signed = (raw >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0
    parts = np.split(signed, np.cumsum(sizes)[:-1])
    return {
        name: (part * (1.0 / math.sqrt(fan_in(name)))).astype(np.float32).reshape(shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def initial_state(seed: int, model: str, optimizer: str) -> dict[str, np.ndarray]:
    """The state before the first step: initial weights, and the optimizer's slots, all zero."""
    weights = initial_weights(seed, model)
    slots = {
        layout.slot(name, weight): np.zeros_like(array)
        for name in layout.SLOTS[optimizer]
        for weight, array in weights.items()
    }
    count = {layout.ADAM_COUNT: np.zeros((), np.float32)} if optimizer == "adam" else {}
    return weights | slots | count


def order(seed: int, epoch: int, samples: int) -> np.ndarray:
    """The order in which an epoch visits the samples: a permutation, int32 [samples].

    A stable argsort of raw words, because the stream of NumPy's `permutation` may change between versions.
    """
    return np.argsort(words(seed, Purpose.ORDER, epoch, samples), kind="stable").astype(np.int32)


def dropout_bits(seed: int, epoch: int, model: str, start: int, stop: int) -> np.ndarray:
    """The units that each sample keeps in an epoch: 1 keep, 0 drop, uint8 [stop - start, units].

    The samples are those visited as number [start, stop) of the epoch. A unit spends as many random bits as
    layout.Dropout says, and is dropped where all of them are 0.
    """
    layers = layout.MODELS[model].dropout
    spent = np.array([layer.units * layer.bits for layer in layers])  # by each sample
    word, skipped = divmod(start * int(spent.sum()), 64)
    count = skipped + (stop - start) * int(spent.sum())
    raw = words(seed, Purpose.DROPOUT, epoch, -(-count // 64), word).astype("<u8")
    bits = np.unpackbits(raw.view(np.uint8), count=count, bitorder="little")[skipped:].reshape(stop - start, -1)
    parts = np.split(bits, np.cumsum(spent)[:-1], axis=1)
    return np.concatenate([_any(part, layer.bits) for part, layer in zip(parts, layers, strict=True)], axis=1)


def _any(bits: np.ndarray, n: int) -> np.ndarray:
    """1 where any of n neighbors is 1: [N, units * n] -> [N, units]."""
    return functools.reduce(np.bitwise_or, (bits[:, i::n] for i in range(n)))
