"""The network's weights: one set of names, shapes and orders for all frameworks.

Convolution kernels are [height, width, in, out], dense kernels [in, out], and the features that enter `dense1` are
flattened in the order (height, width, channel). A trainer converts to its framework's own layout and back, so that a
checkpoint written by one framework resumes in another.
"""

import numpy as np

WEIGHTS: dict[str, tuple[int, ...]] = {
    "conv1.kernel": (5, 5, 1, 10),
    "conv1.bias": (10,),
    "conv2.kernel": (5, 5, 10, 20),
    "conv2.bias": (20,),
    "dense1.kernel": (320, 50),
    "dense1.bias": (50,),
    "dense2.kernel": (50, 10),
    "dense2.bias": (10,),
}

# The units that dropout can switch off, for each sample: the channels of conv2, then the units of dense1.
DROPOUT_CHANNELS = 20
DROPOUT_UNITS = 50
DROPOUT_BITS = DROPOUT_CHANNELS + DROPOUT_UNITS

# What each optimizer remembers for every weight, besides the weight itself. Adam also counts its updates.
SLOTS: dict[str, tuple[str, ...]] = {"sgd": ("momentum",), "adam": ("first_moment", "second_moment")}
ADAM_COUNT = "adam.count"


def slot(name: str, weight: str) -> str:
    """The name under which an optimizer's slot for a weight is kept in the state: `momentum/conv1.kernel`."""
    return f"{name}/{weight}"


def fan_in(weight: str) -> int:
    """How many inputs feed one output of the layer that this kernel or bias belongs to."""
    *inputs, _ = WEIGHTS[weight.split(".")[0] + ".kernel"]
    product = 1
    for size in inputs:
        product *= size
    return product


def weights_of(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights alone, without the optimizer's slots: what the fingerprint is of."""
    return {name: array for name, array in state.items() if "/" not in name and name != ADAM_COUNT}
