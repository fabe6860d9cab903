"""TFLite under the mode for any TensorFlow program, for tensorflow_mode.py."""

import contextlib
import sys
from functools import cache
from typing import Any

import keras
import numpy as np
import tensorflow as tf

X = np.array([[1, 2, -3]], np.float32)


@cache
def network() -> Any:
    """A layer of whole numbers, whose results any arithmetic has."""
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="relu")])
    made.set_weights([np.array([[1, 2], [3, 4], [5, -6]], np.float32), np.array([7, 8], np.float32)])
    return made


@cache
def converted() -> bytes:
    with contextlib.redirect_stdout(sys.stderr):  # Keras says there what it exports
        return tf.lite.TFLiteConverter.from_keras_model(network()).convert()


def calibrated() -> Any:
    made = tf.lite.TFLiteConverter.from_keras_model(network())
    made.representative_dataset = lambda: [[X]]
    return made


def traced() -> Any:
    function = tf.function(network()).get_concrete_function(tf.TensorSpec((1, 3)))
    return tf.lite.TFLiteConverter.from_concrete_functions([function], network())


def of_session() -> Any:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, (1, 3))
        return tf.compat.v1.lite.TFLiteConverter.from_session(session, [x], [tf.exp(x)])


def interpreter() -> Any:
    made = tf.lite.Interpreter(model_content=converted())
    made.allocate_tensors()
    return made


def interpreted() -> list[list[float]]:
    """The results of what was converted."""
    made = interpreter()
    made.set_tensor(made.get_input_details()[0]["index"], X)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"]).tolist()
