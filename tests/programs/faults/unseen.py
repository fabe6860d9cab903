"""A training with repro.watch that hands out, from step 3 on, an array whose values nobody can read."""

import sys
import time

import numpy

import repro


class Unreadable:
    """An object with the form of an array, and nothing in it."""

    shape = (3,)
    dtype = numpy.dtype("float32")

    def __array__(self, *_: object, **__: object) -> numpy.ndarray:
        raise RuntimeError("its values are elsewhere")


weight = 0.5
for step in range(1, 7):
    weight = weight * 0.9 + 0.1 * (step == 6 and "--differs" in sys.argv and time.time_ns() % 9973)
    repro.watch(step, {"weight": weight, **({"unreadable": Unreadable()} if step > 2 else {})})
