"""Layout of the models' weights: names, shapes, orders.

All frameworks share it. Convolution kernels are [height, width, in, out], dense kernels [in, out], and the features
that enter `dense1` are flattened in the order (height, width, channel). A trainer converts to its framework's own
layout and back, so that a checkpoint written by one framework resumes in another.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Dropout:
    """A dropout layer that switches off each of `units` of a sample with probability 2^-bits."""

    units: int
    bits: int
    """The number of random bits for a unit: it is dropped where all of them are 0."""


@dataclass(frozen=True)
class Model:
    """A network's weights and dropout, without its framework."""

    weights: dict[str, tuple[int, ...]]
    dropout: tuple[Dropout, ...]
    """Dropouts in the order in which a sample passes them."""

    @property
    def units(self) -> int:
        """The units that dropout can switch off, for each sample."""
        return sum(layer.units for layer in self.dropout)

    def fan_in(self, weight: str) -> int:
        """The number of inputs to one output of this kernel's or bias' layer."""
        *inputs, _ = self.weights[weight.split(".")[0] + ".kernel"]
        return math.prod(inputs)


MODELS = {
    "lenet": Model(
        {
            "conv1.kernel": (5, 5, 1, 10),
            "conv1.bias": (10,),
            "conv2.kernel": (5, 5, 10, 20),
            "conv2.bias": (20,),
            "dense1.kernel": (320, 50),
            "dense1.bias": (50,),
            "dense2.kernel": (50, 10),
            "dense2.bias": (10,),
        },
        (Dropout(20, bits=1), Dropout(50, bits=1)),  # whole channels of conv2, then units of dense1
    ),
    "convnet": Model(
        {
            "conv1.kernel": (3, 3, 1, 32),
            "conv1.bias": (32,),
            "conv2.kernel": (3, 3, 32, 64),
            "conv2.bias": (64,),
            "dense1.kernel": (9216, 128),
            "dense1.bias": (128,),
            "dense2.kernel": (128, 10),
            "dense2.bias": (10,),
        },
        (Dropout(9216, bits=2), Dropout(128, bits=1)),  # what enters dense1, then units of dense1
    ),
}

# The arrays of an optimizer for every weight. Adam also counts its updates.
SLOTS: dict[str, tuple[str, ...]] = {
    "sgd": ("momentum",),
    "adam": ("first_moment", "second_moment"),
    "adadelta": ("squared_gradient", "squared_update"),
}
ADAM_COUNT = "adam.count"


def slot(name: str, weight: str) -> str:
    """The name of a weight's slot in the state: `momentum/conv1.kernel`."""
    return f"{name}/{weight}"


def weights_of(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights without the optimizer's slots: the arrays of the fingerprint."""
    return {name: array for name, array in state.items() if is_weight(name)}


def is_weight(name: str) -> bool:
    """True if a name in the state is that of a weight, not of an optimizer's slot."""
    return "/" not in name and name != ADAM_COUNT


STEPS_PER_CALL = 256  # enough to make a call's cost small, few enough to show progress
BYTES_PER_CALL = 2**27  # of dropout bits; a whole epoch's may not fit in memory


def steps_per_call(model: str, batch_size: int) -> int:
    """The largest number of steps in one call of a trainer; it changes no bit."""
    return max(1, min(STEPS_PER_CALL, BYTES_PER_CALL // (batch_size * MODELS[model].units)))


LEAST = 16  # images for a thread: with fewer, waiting for the others takes the time that sharing saves


def shares_of(size: int, threads: int) -> int:
    """The number of threads that share `size` images: the most that cut them into equal shares, none too small."""
    return max(n for n in range(1, threads + 1) if n == 1 or (size % n == 0 and size // n >= LEAST))


def part_of(size: int, least: int = LEAST) -> int:
    """The number of `size` images to work on at a time: `least` to twice that, where it divides them, or else all.

    XLA makes patches of them in memory: of so few, these fit the caches of a CPU's core.
    """
    return max((part for part in range(least, 2 * least) if size % part == 0), default=size)
