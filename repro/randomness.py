"""Every random number of a run, as pure functions of (seed, purpose, epoch).

Nothing is drawn from a framework's generator. The numbers are the raw 64-bit words of NumPy's counter-based `Philox`
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), whose stream NumPy keeps stable; the key is (seed,
purpose) and the epoch sits in the counter. So resuming needs no generator's state, all frameworks see the same data,
and the number of loader workers cannot matter.
"""

import enum
import math

import numpy as np

from repro import layout


class Purpose(enum.IntEnum):
    """What the numbers are for. Each purpose has a stream of its own, keyed by its value: never reuse one."""

    WEIGHTS = 1
    ORDER = 2
    DROPOUT = 3


def words(seed: int, purpose: Purpose, epoch: int, count: int) -> np.ndarray:
    """`count` random 64-bit words, uint64 [count]."""
    key = np.array([seed, purpose], np.uint64)  # as a list, a seed of 64 bits would be rounded to a float
    return np.random.Philox(key=key, counter=[0, 0, epoch, 0]).random_raw(count)


def initial_weights(seed: int) -> dict[str, np.ndarray]:
    """The weights before the first step, float32: uniform in +-1/sqrt(fan-in), kernels and biases alike.

    Each is a 24-bit integer scaled to [-1, 1), times the bound. Square root, division and product are single correctly
    rounded float64 operations and one rounding to float32 ends them, so every machine computes the same bits.
    """
    sizes = [math.prod(shape) for shape in layout.WEIGHTS.values()]
    raw = words(seed, Purpose.WEIGHTS, 0, sum(sizes))
    signed = (raw >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0
    parts = np.split(signed, np.cumsum(sizes)[:-1])
    return {
        name: (part * (1.0 / math.sqrt(layout.fan_in(name)))).astype(np.float32).reshape(shape)
        for (name, shape), part in zip(layout.WEIGHTS.items(), parts, strict=True)
    }


def initial_state(seed: int, optimizer: str) -> dict[str, np.ndarray]:
    """The state before the first step: initial weights, and the optimizer's slots, all zero."""
    weights = initial_weights(seed)
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


def dropout_bits(seed: int, epoch: int, samples: int) -> np.ndarray:
    """Which units each visited sample keeps in an epoch: 1 keep, 0 drop, uint8 [samples, layout.DROPOUT_BITS].

    Dropout with probability one half spends one random bit per unit.
    """
    count = samples * layout.DROPOUT_BITS
    raw = words(seed, Purpose.DROPOUT, epoch, -(-count // 64)).astype("<u8")
    bits = np.unpackbits(raw.view(np.uint8), count=count, bitorder="little")
    return bits.reshape(samples, layout.DROPOUT_BITS)
