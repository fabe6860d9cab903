"""Trainings of TensorFlow's and Keras' programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from evidence.coverage.inputs import images, integers, normal, tokens
from evidence.coverage.registry import STEPS

__all__ = ["DEVICES", "Training", "cross_entropy", "fitted", "images", "integers", "normal", "taped", "tokens"]

DEVICES = ["CPU:0", "CPU:1"]
"""Of the programs with replicas."""


def prepare(threads: int, device: str | None) -> None:
    """The number of threads, and two logical devices; it has computed nothing yet, so that the mode can be switched on."""
    assert device is None, "TensorFlow's programs choose their devices"
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration() for _ in DEVICES])


def enable(kernels: bool) -> None:
    """Switches portable numerics on."""
    from repro.portable import kernels as compiled

    compiled.available = compiled.available and kernels
    import repro.portable.tensorflow as portable

    portable.enable()


def seed() -> None:
    """TensorFlow's generator; Keras' names, seeds and types are those of a fresh process."""
    tf.random.set_seed(0)
    keras.backend.clear_session()
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")


def cross_entropy() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@dataclass
class Training:
    """A step, and what it changes."""

    step: Callable[[Any], Any]
    """A step, of a batch: the loss."""
    state: Any
    """Models, optimizers, variables."""
    batches: Sequence[Any]
    """They take turns."""
    losses: list[float] = field(default_factory=list)

    def run(self, steps: int = STEPS) -> Any:
        """The state after a number of steps."""
        for number in range(steps):
            self.losses.append(float(self.step(self.batches[number % len(self.batches)])))
        return self.state


def fitted(model: keras.Model, optimizer: Any, loss: Any, batches: Sequence[Any], **options: Any) -> Training:
    """A model that Keras compiles with these options, and trains on pairs of inputs and targets, or by its `train_step`."""
    model.compile(optimizer, loss, **options)
    return Training(lambda batch: model.train_on_batch(*batch, return_dict=True)["loss"], model, batches)


def taped(
    loss: Callable[[Any], Any],
    model: Any,
    optimizer: keras.optimizers.Optimizer,
    batches: Sequence[Any],
    **options: Any,
) -> Training:
    """A loop of its own: a loss of a batch, its gradients by a tape, in a `tf.function` with these options."""

    @tf.function(**options)
    def step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(batch)
        optimizer.apply(tape.gradient(value, model.trainable_variables), model.trainable_variables)
        return value

    return Training(step, (model, optimizer), [tf.nest.map_structure(tf.constant, batch) for batch in batches])


def arrays(state: Any) -> dict[str, np.ndarray]:
    """All variables, by their number: names differ by what a process made before."""
    return {str(number): _array(variable) for number, variable in enumerate(_variables(state))}


def _variables(state: Any) -> list[Any]:
    if isinstance(state, list | tuple):
        return [variable for each in state for variable in _variables(each)]
    if not hasattr(state, "variables"):
        return [state]
    optimizer = getattr(state, "optimizer", None)
    return [*state.variables, *(_variables(optimizer) if optimizer is not None else [])]


def _array(variable: Any) -> np.ndarray:
    array = np.asarray(keras.ops.convert_to_numpy(variable) if isinstance(variable, keras.Variable) else variable)
    return array.view(np.int16) if array.dtype.name == "bfloat16" else array
