"""tf.data: what a shuffle and parallel maps give, twice over, with seeds alone and then with strict determinism."""

import json
import os
import time

import numpy as np
import tensorflow as tf

import repro

COUNT = 16


def twice(data: tf.data.Dataset) -> list[list[int]]:
    """What two epochs of a data set hold."""
    return [[int(element) for element in data] for _ in range(2)]


def load(element: np.int64) -> np.int64:
    """Takes uneven time, as decoding a file does: so uneven that no two processes give one order by chance."""
    time.sleep(0.05 if element == 0 else os.urandom(1)[0] / 1e4)
    return element


def slow(element: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tf.numpy_function(load, [element], tf.int64), [])


def noise(element: tf.Tensor) -> tf.Tensor:
    """Random numbers from TensorFlow's own generator: which element gets which depends on who comes first."""
    with tf.control_dependencies([slow(element)]):
        return tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int32)


def stateless(element: tf.Tensor) -> tf.Tensor:
    """The remedy: a function of a seed and the element alone."""
    with tf.control_dependencies([slow(element)]):
        return tf.random.stateless_uniform([], [0, element], maxval=2**31 - 1, dtype=tf.int32)


def orders() -> dict[str, list[list[int]]]:
    numbers = tf.data.Dataset.range(COUNT)
    parallel = {"num_parallel_calls": 4, "deterministic": True}
    return {
        "shuffle": twice(numbers.shuffle(COUNT)),
        "shuffle once": twice(numbers.shuffle(COUNT, reshuffle_each_iteration=False)),
        "map, any order": twice(numbers.map(slow, num_parallel_calls=4, deterministic=False)),
        "map": twice(numbers.map(slow, **parallel)),
        "noise": twice(numbers.map(noise, **parallel)),
        "stateless noise": twice(numbers.map(stateless, **parallel)),
    }


results = {}
for name, deterministic in (("seeds", False), ("strict", True)):
    repro.set_seeds(0, deterministic)
    results[name] = orders()
print(json.dumps(results))
