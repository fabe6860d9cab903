"""Calls of TensorFlow and Keras: raw operations, the Python that is made of them, layers."""

from collections.abc import Iterator
from itertools import chain

import tensorflow as tf

import repro.portable.tensorflow as portable
from programs.fuzz import tensorflow_layers, tensorflow_python, tensorflow_raw
from programs.fuzz.cases import Case
from programs.fuzz.settings import Setting


def start(setting: Setting) -> None:
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(setting.threads)
    tf.config.threading.set_inter_op_parallelism_threads(setting.threads)
    if setting.portable:
        portable.enable()


def cases(everything: bool, only: str) -> Iterator[Case]:
    parts = (each.cases(everything) for each in (tensorflow_raw, tensorflow_python, tensorflow_layers))
    return (each for each in chain.from_iterable(parts) if only in each.operation)
