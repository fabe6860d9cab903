"""Each optimizer of Keras, and what goes with them: schedules, clipping, averages."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers, optimizers

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, integers, normal

schedules = optimizers.schedules
CLASSES = 4
BATCHES = [(normal(16, 8, key=key), integers(CLASSES, 16, key=key)) for key in range(2)]


def network(last: str = "linear") -> keras.Model:
    """Two dense layers, with 8 inputs and 4 classes."""
    return keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, activation="gelu"), layers.Dense(CLASSES, activation=last)]
    )


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optimizers.SGD(1e-2),
    "SGD, momentum": lambda: optimizers.SGD(1e-2, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "RMSprop": lambda: optimizers.RMSprop(1e-3, momentum=0.9, centered=True),
    "Adam": lambda: optimizers.Adam(1e-3),
    "Adam, amsgrad": lambda: optimizers.Adam(1e-3, amsgrad=True),
    "AdamW": lambda: optimizers.AdamW(1e-3, weight_decay=1e-2),
    "Adadelta": lambda: optimizers.Adadelta(1.0),
    "Adagrad": lambda: optimizers.Adagrad(1e-2),
    "Adamax": lambda: optimizers.Adamax(1e-3),
    "Adafactor": lambda: optimizers.Adafactor(1e-2),
    "Nadam": lambda: optimizers.Nadam(1e-3),
    "Ftrl": lambda: optimizers.Ftrl(1e-2, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3),
    "Lion": lambda: optimizers.Lion(1e-3),
    "Lamb": lambda: optimizers.Lamb(1e-3),
    "Muon": lambda: optimizers.Muon(1e-2),
    "ScheduleFreeAdamW": lambda: optimizers.ScheduleFreeAdamW(1e-3),
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(1e-3), initial_scale=1024.0),
    "clipnorm": lambda: optimizers.SGD(0.1, clipnorm=0.1),
    "global_clipnorm": lambda: optimizers.SGD(0.1, global_clipnorm=0.1),
    "clipvalue": lambda: optimizers.SGD(0.1, clipvalue=0.01),
    "average of weights": lambda: optimizers.Adam(1e-3, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=2),
    "accumulated gradients": lambda: optimizers.Adam(1e-3, gradient_accumulation_steps=2),
}
SCHEDULES: dict[str, Callable[[], Any]] = {
    "CosineDecay": lambda: schedules.CosineDecay(0.1, 10, alpha=0.1, warmup_target=0.2, warmup_steps=2),
    "CosineDecayRestarts": lambda: schedules.CosineDecayRestarts(0.1, 2, t_mul=1.5, m_mul=0.9),
    "ExponentialDecay": lambda: schedules.ExponentialDecay(0.1, 3, 0.9),
    "InverseTimeDecay": lambda: schedules.InverseTimeDecay(0.1, 2, 0.5),
    "PiecewiseConstantDecay": lambda: schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01]),
    "PolynomialDecay": lambda: schedules.PolynomialDecay(0.1, 4, 0.01, power=0.7, cycle=True),
}


def _with_optimizer(make: Callable[[], Any]) -> Callable[[], Training]:
    return lambda: fitted(network(), make(), cross_entropy(), BATCHES)


def _with_schedule(make: Callable[[], Any]) -> Callable[[], Training]:
    return lambda: fitted(network(), optimizers.SGD(make(), momentum=0.9), cross_entropy(), BATCHES)


for _name, _make in OPTIMIZERS.items():
    program("optimizers", _name)(_with_optimizer(_make))
for _name, _make in SCHEDULES.items():
    program("optimizers", _name)(_with_schedule(_make))


@program("optimizers", "MultiOptimizer")
def several() -> Training:
    """One for matrices, another for biases."""
    parts = {r".*/bias": optimizers.SGD(0.1)}
    optimizer = optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.Adam(1e-2), parts))
    return fitted(network(), optimizer, cross_entropy(), BATCHES)
