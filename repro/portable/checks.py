"""The self-check: small cases of all that portable numerics rely on, and what must come out, with `==`.

Each framework computes them when training starts, on its device, compiled as a step is. So it shows when a library or a
compiler takes liberties: products by a transform (Winograd, FFT), in TF32, or with sums in float32; emulated float64; a
rounding to float32 that is dropped between two operations (as XLA does: openxla/xla issues 10687 and 41605); a constant
that is added and taken away again, and folded; approximate division or roots; another order of operations; small
numbers that become 0.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from repro.errors import ReproError
from repro.portable import reference, rules
from repro.run import float32
from repro.run.config import Params

FACTOR = 0.3
"""No float32, and its products with float64 numbers are not exact: what follows must wait for them to be rounded."""
SGD, ADAM = Params(learning_rate=0.1, momentum=0.9), Params(optimizer="adam", learning_rate=0.001)
ADAM_COUNT = 3


@cache
def products() -> tuple[np.ndarray, ...]:
    """Integers to convolve, and what must come out, computed in int64.

    Images [4, 12, 12, 10] and a kernel [5, 5, 10, 20] of integers of up to 17 bits, their valid convolution y, and the
    gradients with respect to kernel and images where the gradient with respect to y is sign(y).
    """
    size = 4 * 12 * 12 * 10
    words = np.random.Philox(key=[0, 0]).random_raw(size + 5 * 5 * 10 * 20)
    integers = (words >> np.uint64(46)).astype(np.int64) - 2**17
    images, kernel = integers[:size].reshape(4, 12, 12, 10), integers[size:].reshape(5, 5, 10, 20)
    shifts = [(i, j, images[:, i : i + 8, j : j + 8]) for i in range(5) for j in range(5)]
    y = np.sum([part @ kernel[i, j] for i, j, part in shifts], axis=0)
    sign = np.sign(y)
    kernel_gradient = np.zeros_like(kernel)
    images_gradient = np.zeros_like(images)
    for i, j, part in shifts:
        kernel_gradient[i, j] = part.reshape(-1, 10).T @ sign.reshape(-1, 20)
        images_gradient[:, i : i + 8, j : j + 8] += sign @ kernel[i, j].T
    return images, kernel, y, kernel_gradient, images_gradient


OPERATIONS = {
    "rounding": "a rounding to float32 between two operations",
    "maximum": "the maximum of numbers rounded to float32",
    "grid": "rounding to a grid",
    "loss": "the softmax cross-entropy",
    "sgd": "a step of SGD",
    "adam": "a step of Adam",
}


@cache
def inputs() -> dict[str, tuple[np.ndarray, ...]]:
    """The arrays that each operation is given. None is given twice, or a compiler would join the operations.

    Of `loss` logits [64, 10] and labels int32 [64]; of `sgd` weight, momentum and gradient; of `adam` weight, both
    moments and gradient, after ADAM_COUNT updates.
    """
    wide, state = 2.0**-110, float32.TINY  # from below what the state keeps, and from its smallest number
    slots = [reference.to_state(_numbers(key, (4096,), state)) for key in range(4, 11)]
    return {
        "rounding": (_numbers(1, (64, 64), wide),),
        "maximum": (_numbers(2, (64, 64), wide),),
        "grid": (_numbers(3, (64, 64), wide),),
        "loss": (_numbers(0, (64, 10), 2.0**-3) * 4, np.arange(64, dtype=np.int32) % 10),
        "sgd": tuple(slots[:3]),
        "adam": (slots[3], slots[4], np.abs(slots[5]), slots[6]),
    }


def _numbers(key: int, shape: tuple[int, ...], smallest: float) -> np.ndarray:
    """float64 of both signs and all 53 bits; of each, as many between 1 and 2 as in each octave down to `smallest`."""
    words = np.random.Philox(key=[1, key]).random_raw(2 * int(np.prod(shape))).reshape(2, *shape)
    significands = (words[0] >> np.uint64(11)) * 2.0**-52 + 1  # [1, 3)
    octaves = (words[1] >> np.uint64(1)).astype(np.int64) % (1 - int(np.log2(smallest)))
    return np.where(words[1] & np.uint64(1), -1, 1) * np.ldexp(significands / 2, -octaves)


@cache
def expected() -> dict[str, tuple[np.ndarray, ...]]:
    """What the reference makes of inputs(): of `loss` the gradient, too, and of a step the new weight and slots."""
    given = inputs()
    (rounding,), (maximum,), (grid,) = given["rounding"], given["maximum"], given["grid"]
    weight, momentum, gradient = given["sgd"]
    sgd = reference.sgd(weight, momentum, gradient, *map(float32.nearest, (SGD.learning_rate, SGD.momentum)))
    weight, first, second, gradient = given["adam"]
    corrections = tuple(rules.adam_corrections()[:, ADAM_COUNT])
    adam = reference.adam(weight, first, second, gradient, float32.nearest(ADAM.learning_rate), corrections)
    return {
        "rounding": (reference.to_state(rounding * FACTOR).astype(np.float64) * FACTOR,),
        "maximum": (reference.to_state(maximum * FACTOR).max(1).astype(np.float64),),
        "grid": (reference.round_to_grid(grid, reference.exponent(grid, (1,)), rules.BITS),),
        "loss": reference.softmax_cross_entropy(*given["loss"]),
        "sgd": sgd,
        "adam": adam,
    }


def check_products(name: str, *found: np.ndarray) -> None:
    """ReproError if y and the two gradients that a library found for products() differ from the exact ones."""
    for result, exact in zip(found, products()[2:], strict=True):
        if not np.array_equal(result, exact):
            worst = np.abs(result - exact).max()
            raise ReproError(
                f"portable numerics: {name} is not exact on this device: off by up to {worst:g} on integers; "
                "use another device (params.device) or version, or params.numerics=deterministic"
            )


def check_operations(name: str, found: Mapping[str, Sequence[np.ndarray]]) -> None:
    """ReproError if what a library found for inputs() has other bits than expected()."""
    for operation, title in OPERATIONS.items():
        for result, right in zip(found[operation], expected()[operation], strict=True):
            wrong = int(np.count_nonzero(np.asarray(result) != right))
            if wrong:
                raise ReproError(
                    f"portable numerics: {name} does not compute {title} by the rules on this device: {wrong} of "
                    f"{right.size} numbers differ; use another device (params.device) or version, take flags out of "
                    "environment in train.yaml, or use params.numerics=deterministic"
                )
