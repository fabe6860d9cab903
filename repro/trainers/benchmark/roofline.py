"""Roofline of an epoch: its least time.

Its floating-point operations over the rate of matrix products on this machine.
"""

import math
import time

import numpy as np

from repro.trainers.loop import layout

# The side of each convolution's output, a square: what layout.MODELS does not say of a network.
SIDES = {"lenet": {"conv1": 24, "conv2": 8}, "convnet": {"conv1": 26, "conv2": 24}}
SIDE = 1536  # of the matrices: large enough that a product runs at full speed, small enough to take a few hundredths
PRODUCTS = 6


def flops_per_image(model: str) -> int:
    """Operations, additions and multiplications, of the matrix products and convolutions of one training step.

    Forward, the gradient with respect to each kernel, and the one with respect to each layer's input but the first.
    """
    kernels = {name: shape for name, shape in layout.MODELS[model].weights.items() if name.endswith(".kernel")}
    forward = [2 * math.prod(shape) * SIDES[model].get(name.split(".")[0], 1) ** 2 for name, shape in kernels.items()]
    return 3 * sum(forward) - forward[0]


def rate(dtype: type, threads: int) -> float:
    """Operations a second of NumPy's own matrix product on this CPU, the best of a few."""
    from threadpoolctl import threadpool_limits  # of the extra [trainers]; a report of benchmarks does without

    matrix: np.ndarray = np.ones((SIDE, SIDE), dtype)
    fastest = math.inf
    with threadpool_limits(threads, "blas"):
        for _ in range(PRODUCTS):
            started = time.perf_counter()
            matrix @ matrix
            fastest = min(fastest, time.perf_counter() - started)
    return 2 * SIDE**3 / fastest
