"""Each loss of Keras."""

from collections.abc import Callable

import keras
import numpy as np
from keras import layers, losses

from evidence.coverage.keras_optimizers import BATCHES, CLASSES, network
from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, fitted, integers, normal

NUMBERS = (
    *("MeanSquaredError", "MeanAbsoluteError", "MeanSquaredLogarithmicError", "Huber", "LogCosh"),
    *("CosineSimilarity", "Hinge", "SquaredHinge", "CategoricalHinge"),
)
"""Losses of any numbers."""
POSITIVE = ("MeanAbsolutePercentageError", "Poisson")
SHARES = (
    *("BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy"),
    *("KLDivergence", "Dice"),
)
"""Losses of probabilities."""


def _with_loss(name: str, last: str, least: float = 0.0, **options: float) -> Callable[[], Training]:
    """Targets are `least`, or 1 more where the class is."""

    def train() -> Training:
        wanted = np.eye(CLASSES, dtype=np.float32) + np.float32(least)
        return fitted(network(last), "sgd", getattr(losses, name)(**options), [(x, wanted[y]) for x, y in BATCHES])

    return train


for _name in NUMBERS:
    program("losses", _name)(_with_loss(_name, "linear"))
for _name in POSITIVE:
    program("losses", _name)(_with_loss(_name, "softplus", 1.0))
for _name in SHARES:
    program("losses", _name)(_with_loss(_name, "softmax"))
program("losses", "Tversky")(_with_loss("Tversky", "softmax", alpha=0.3, beta=0.7))


@program("losses", "SparseCategoricalCrossentropy, classes ignored")
def sparse() -> Training:
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1)
    return fitted(network(), "sgd", loss, BATCHES)


@program("losses", "CategoricalGeneralizedCrossEntropy")
def generalized() -> Training:
    return fitted(network("softmax"), "sgd", losses.CategoricalGeneralizedCrossEntropy(), BATCHES)


@program("losses", "Circle")
def circle() -> Training:
    """Distances of labelled vectors of length 1."""
    model = keras.Sequential([keras.Input((8,)), layers.Dense(4), layers.UnitNormalization()])
    return fitted(model, "adam", losses.Circle(), BATCHES)


@program("losses", "CTC")
def ctc() -> Training:
    model = keras.Sequential([keras.Input((12, 4)), layers.Dense(6)])
    batches = [(normal(4, 12, 4, key=key), 1 + integers(5, 4, 3, key=key)) for key in range(2)]
    return fitted(model, "sgd", losses.CTC(), batches)
