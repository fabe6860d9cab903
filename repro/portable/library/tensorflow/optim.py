"""Optimizers of Keras, with another arithmetic.

Put `optim.` for `keras.optimizers.`: they work with model.fit, compiled or not, and in loops of one's own. Rates,
momenta and betas are rounded to float32; see repro/portable/definitions/optimizers.py for the formulas, which are
PyTorch's. So, other than in Keras, the rate is no part of the momentum; epsilon is added to the root of the corrected
second moment; and weight_decay times the weight is added to the gradient, but in AdamW. Of Keras's schedules only
PiecewiseConstantDecay is portable; the others are refused, as are options that are set later.
"""

from typing import Any, ClassVar

import keras
import tensorflow as tf

from repro.portable.arguments import check, check_floats
from repro.portable.backends.tensorflow import Backend
from repro.portable.definitions import optimizers
from repro.portable.library.tensorflow import functional
from repro.portable.numbers import tables

NUMBERS = ("momentum", "beta_1", "beta_2", "rho", "epsilon", "weight_decay", "global_clipnorm")
"""Options that are numbers, of any of the optimizers."""


class Portable(keras.optimizers.Optimizer):
    """A portable optimizer."""

    only: ClassVar[dict[str, Any]] = {
        "clipnorm": None,
        "clipvalue": None,
        "use_ema": False,
        "loss_scale_factor": None,
        "gradient_accumulation_steps": None,
        "amsgrad": False,
    }
    """Options that have one value here."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keras.saving.register_keras_serializable("repro")(cls)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._check_options()
        if isinstance(self._learning_rate, keras.Variable):
            self._check_rate(float(self._learning_rate.numpy()))

    def _check_options(self) -> None:
        """UsageError for an option without a portable form, given first or set since."""
        name, options = type(self).__name__, vars(self)
        for option, expected in self.only.items():
            value = options.get(option, expected)
            check(name, value == expected, f"{option}={value!r} is not supported; leave it out")
        optimizers.check_options(name, **{each: options[each] for each in NUMBERS if options.get(each) is not None})
        schedule = type(self._learning_rate)
        if issubclass(schedule, keras.optimizers.schedules.LearningRateSchedule):
            own = schedule.__call__.__module__.partition(".")[0] != "keras"
            constant = issubclass(schedule, keras.optimizers.schedules.PiecewiseConstantDecay)
            remedy = "set the rate before each update, by repro.portable.schedules"
            check(name, own or constant, f"learning_rate={schedule.__name__} has no portable form; {remedy}")

    def _check_rate(self, rate: Any) -> None:
        optimizers.check_options(type(self).__name__, learning_rate=rate)

    @keras.optimizers.Optimizer.learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        """UsageError for what is no rate; a number that is computed in a graph has any value."""
        if not callable(rate) and not tf.is_symbolic_tensor(rate):
            self._check_rate(float(rate))
        keras.optimizers.Optimizer.learning_rate.fset(self, rate)

    def apply(self, grads: list[Any], trainable_variables: Any = None) -> None:
        """One step of all weights."""
        self._check_options()
        weights = None if trainable_variables is None else list(trainable_variables)
        for weight in weights or self._trainable_variables:
            free = weight.constraint is None
            check(type(self).__name__, free, f"a constraint of {weight.name} is not supported; leave it out")
        super().apply(grads, weights)

    def _clip_gradients(self, grads: list[tf.Tensor]) -> list[tf.Tensor]:
        """Clips by global_clipnorm: squares are added in the order of the names of the weights' paths."""
        if not self.global_clipnorm:
            return grads
        names = [variable.path for variable in self._trainable_variables]
        check(type(self).__name__, len(names) == len(grads), "global_clipnorm needs a gradient for every weight")
        check(type(self).__name__, len(set(names)) == len(names), "global_clipnorm needs weights of different paths")
        clipped, _ = functional.clip_by_global_norm(dict(zip(names, grads, strict=True)), self.global_clipnorm)
        return list(clipped.values())

    def _apply_weight_decay(self, variables: list[Any]) -> None:
        """A part of each step."""

    def update_step(self, gradient: tf.Tensor, variable: Any, learning_rate: Any) -> None:
        """One step of one weight, float32, and its slots."""
        name = type(self).__name__
        check(name, tf.distribute.get_strategy().num_replicas_in_sync == 1, "a strategy with replicas is not supported")
        gradient = tf.convert_to_tensor(gradient)
        check_floats(name, gradient=gradient, weight=variable)
        decay = tables.float32(self.weight_decay) if self.weight_decay and self._use_weight_decay(variable) else 0.0
        rate = Backend.f64(Backend.r32(tf.cast(learning_rate, tf.float64)))
        slots = [slot[self._get_variable_index(variable)] for slot in self.slots()]
        values = [tf.convert_to_tensor(each) for each in (variable, *slots)]
        for old, new in zip((variable, *slots), self.step(gradient, rate, decay, *values), strict=True):
            self.assign(old, new)

    def slots(self) -> list[list[Any]]:
        """For each slot its variables, one for each weight."""
        raise NotImplementedError

    def step(self, gradient: tf.Tensor, rate: tf.Tensor, decay: float, weight: tf.Tensor, *slots: tf.Tensor) -> Any:
        """The new weight and slots."""
        raise NotImplementedError


class SGD(Portable, keras.optimizers.SGD):
    def slots(self) -> list[list[Any]]:
        return [self.momentums] if self.momentum else []

    def step(self, gradient: tf.Tensor, rate: tf.Tensor, decay: float, weight: tf.Tensor, *slots: tf.Tensor) -> Any:
        (slot,) = slots or (tf.zeros_like(weight),)
        beta = tables.float32(self.momentum)
        new = optimizers.sgd(Backend, weight, gradient, slot, rate, decay, beta, self.nesterov)
        return new[: 1 + len(slots)]


class Adam(Portable, keras.optimizers.Adam):
    decoupled = False

    def slots(self) -> list[list[Any]]:
        return [self._momentums, self._velocities]

    def step(self, gradient: tf.Tensor, rate: tf.Tensor, decay: float, weight: tf.Tensor, *slots: tf.Tensor) -> Any:
        first, second = slots
        betas = tables.float32(self.beta_1), tables.float32(self.beta_2)
        table = tf.constant(tables.adam(*betas))
        corrections = tf.gather(table, tf.minimum(tf.cast(self.iterations, tf.int32), table.shape[1] - 1), axis=1)
        return optimizers.adam(
            Backend, weight, gradient, first, second, corrections, rate, decay, *betas, self.epsilon, self.decoupled
        )


class AdamW(Adam, keras.optimizers.AdamW):
    decoupled = True


class Adadelta(Portable, keras.optimizers.Adadelta):
    def slots(self) -> list[list[Any]]:
        return [self._accumulated_grads, self._accumulated_delta_vars]

    def step(self, gradient: tf.Tensor, rate: tf.Tensor, decay: float, weight: tf.Tensor, *slots: tf.Tensor) -> Any:
        squares, updates = slots
        keep = tables.float32(self.rho)
        return optimizers.adadelta(Backend, weight, gradient, squares, updates, rate, decay, keep, self.epsilon)
