"""Calls of TensorFlow and Keras."""

from collections.abc import Iterator

import tensorflow as tf

import repro.portable.tensorflow as portable
from programs.fuzz import tensorflow_raw
from programs.fuzz.cases import Case
from programs.fuzz.settings import Setting


def start(setting: Setting) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(setting.threads)
    tf.config.threading.set_inter_op_parallelism_threads(setting.threads)
    if setting.portable:
        portable.enable()


def cases(everything: bool, only: str) -> Iterator[Case]:
    for each in tensorflow_raw.cases(everything):
        if only in each.operation:
            yield each
