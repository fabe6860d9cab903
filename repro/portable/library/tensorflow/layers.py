"""Layers and losses of Keras, with another arithmetic.

Keras must be on TensorFlow's backend.
Put `layers.` for `keras.layers.`: names, arguments and weights are the same. The sizes of batches must be known: give
data sets drop_remainder=True. What portable numerics does not have is refused with one line, when the layer is made or
called; layers without arithmetic, as Flatten and Reshape, are Keras's own. Keras's initializers are not portable, but
for zeros and ones: start from weights that were drawn once, with NumPy or from a file.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import keras
import tensorflow as tf

from repro.portable.arguments import check, check_share, dropout_key, refuse
from repro.portable.library.tensorflow import functional

ACTIVATIONS: dict[Any, Callable[..., tf.Tensor]] = {
    keras.activations.linear: lambda x: x,
    keras.activations.relu: functional.relu,
    keras.activations.gelu: lambda x: functional.gelu(x, approximate=False),
    keras.activations.silu: functional.silu,
    keras.activations.tanh: functional.tanh,
    keras.activations.sigmoid: functional.sigmoid,
    keras.activations.softmax: functional.softmax,
}
"""In the place of Keras'."""


class Portable(keras.layers.Layer):
    """A portable layer."""

    only: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """The possible values of options that have not every value here."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keras.saving.register_keras_serializable("repro")(cls)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._check_options()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._check_options()
        return super().__call__(*arguments, **options)

    def _check_options(self) -> None:
        """UsageError for an option without a portable form, given first or set since."""
        name = type(self).__name__
        for option, value in vars(self).items():
            never = option.endswith(("_regularizer", "_constraint")) or option in ("lora_rank", "quantization_config")
            values = (None,) if never else self.only.get(option, (value,))
            check(name, value in values, f"{option}={value!r} is not supported; leave it out, or give {values[0]!r}")
        for weight in self._trainable_variables:
            plain = weight.regularizer is None and weight.constraint is None
            check(name, plain, f"a regularizer or constraint of {weight.name} is not supported; leave it out")
        if getattr(self, "activation", None) is not None:
            _portable(name, self.activation)
        check(name, self.compute_dtype == "float32", f"dtype={self.compute_dtype} is not supported; leave it out")
        check(
            name,
            self.quantization_mode is None,
            f"quantization={self.quantization_mode} is not supported; leave it out",
        )

    def activated(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the layer's activation."""
        return x if self.activation is None else _portable(type(self).__name__, self.activation)(x)


def _portable(layer: str, activation: Any) -> Callable[..., tf.Tensor]:
    if getattr(activation, "__module__", None) == functional.__name__:
        return activation
    name = getattr(activation, "__name__", activation)
    check(
        layer, activation in ACTIVATIONS, f"activation={name} is not supported; use one of repro.portable's functions"
    )
    return ACTIVATIONS[activation]


# --- layers with weights ----------------------------------------------------------------------------------------------


class Dense(Portable, keras.layers.Dense):
    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.activated(functional.linear(inputs, self.kernel, self.bias))


class Conv2D(Portable, keras.layers.Conv2D):
    only: ClassVar = {"data_format": ("channels_last",)}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        y = functional.conv2d(
            inputs, self.kernel, self.bias, self.strides, self.padding, self.dilation_rate, self.groups
        )
        return self.activated(y)


class Embedding(Portable, keras.layers.Embedding):
    only: ClassVar = {"mask_zero": (False,)}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.embedding(inputs, self.embeddings)


class LayerNormalization(Portable, keras.layers.LayerNormalization):
    """Layer normalization over the last axis."""

    only: ClassVar = {"axis": (-1, [-1]), "rms_scaling": (False,)}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.layer_norm(inputs, self.gamma, self.beta, self.epsilon)


class RMSNormalization(Portable, keras.layers.RMSNormalization):
    """RMS normalization over the last axis."""

    only: ClassVar = {"axis": (-1, [-1])}

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return functional.rms_norm(x, self.scale, self.epsilon)


class GroupNormalization(Portable, keras.layers.GroupNormalization):
    only: ClassVar = {"axis": (-1, [-1])}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.group_norm(inputs, self.groups, self.gamma, self.beta, self.epsilon)


class BatchNormalization(Portable, keras.layers.BatchNormalization):
    """Batch normalization over the last axis. Unlike Keras, and like PyTorch, the moving variance is over n - 1."""

    only: ClassVar = {"axis": (-1, [-1]), "renorm": (False,), "synchronized": (False,)}

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        trains = bool(training and self.trainable)
        y, mean, variance = functional.batch_norm(
            inputs,
            self.moving_mean,
            self.moving_variance,
            self.gamma,
            self.beta,
            trains,
            1 - self.momentum,
            self.epsilon,
        )
        if trains:
            self.moving_mean.assign(mean)
            self.moving_variance.assign(variance)
        return y


# --- layers without -----------------------------------------------------------------------------------------------


class Activation(Portable, keras.layers.Activation):
    """relu, gelu, silu, tanh, sigmoid or softmax, or one of the functions of functional.py."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.activated(inputs)


class Add(Portable, keras.layers.Add):
    """Add tensors of one shape, in their order."""

    def _merge_function(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        return reduce(functional.add, inputs)


class MaxPooling2D(Portable, keras.layers.MaxPooling2D):
    only: ClassVar = {"data_format": ("channels_last",)}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.max_pool2d(inputs, self.pool_size, self.strides, self.padding)


class AveragePooling2D(Portable, keras.layers.AveragePooling2D):
    only: ClassVar = {
        "data_format": ("channels_last",),
        "padding": ("valid",),
    }  # Keras's "same" does not count what it pads

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.avg_pool2d(inputs, self.pool_size, self.strides, self.padding)


class GlobalAveragePooling2D(Portable, keras.layers.GlobalAveragePooling2D):
    only: ClassVar = {"data_format": ("channels_last",), "keepdims": (False,)}

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return functional.global_avg_pool2d(inputs)


class Dropout(Portable):
    """Drops with probability `rate`, by random numbers of a seed, a stream and the number of the call in training.

    Other than Keras the count of calls is a weight, `step`, which is saved with the others, so a resumed training goes
    on with it. stream: another one for each dropout of a network. seed and stream are as in PyTorch and JAX.
    """

    def __init__(self, rate: float, *, stream: int, seed: int = 0, **options: Any) -> None:
        super().__init__(**options)
        check_share("Dropout", "rate", rate)
        dropout_key("Dropout", seed, stream)  # refuses what is out of range
        self.rate, self.stream, self.seed = rate, stream, seed

    def build(self, _: Any) -> None:
        self.step = self.add_weight(name="step", dtype="int64", initializer="zeros", trainable=False)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        if not training:
            return inputs
        dropped = functional.dropout(inputs, self.rate, dropout_key("Dropout", self.seed, self.stream), self.step)
        self.step.assign_add(1)
        return dropped

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "stream": self.stream, "seed": self.seed}


# --- losses -----------------------------------------------------------------------------------------------------------


class _Loss(keras.losses.Loss):
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tf.Tensor:
        """The mean over the batch, float32 of no dimension. UsageError for weights of samples."""
        if sample_weight is not None:
            raise refuse(type(self).__name__, "sample_weight is not supported; leave it out")
        return self.call(y_true, y_pred)


@keras.saving.register_keras_serializable("repro")
class SparseCategoricalCrossentropy(_Loss):
    """Cross entropy of integer labels [...] or [..., 1] and logits [..., V]; from_logits must be True."""

    def __init__(self, from_logits: bool = False, name: str = "sparse_categorical_crossentropy") -> None:
        super().__init__(name)
        check(type(self).__name__, from_logits, "from_logits=False is not supported; give logits and from_logits=True")

    def call(self, y_true: Any, y_pred: tf.Tensor) -> tf.Tensor:
        labels = tf.convert_to_tensor(y_true)
        if labels.shape.rank == len(y_pred.shape):
            labels = tf.squeeze(labels, -1)
        return functional.cross_entropy(y_pred, labels)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "from_logits": True}


@keras.saving.register_keras_serializable("repro")
class MeanSquaredError(_Loss):
    """Mean squared error of targets and predictions of one shape."""

    def __init__(self, name: str = "mean_squared_error") -> None:
        super().__init__(name)

    def call(self, y_true: Any, y_pred: tf.Tensor) -> tf.Tensor:
        return functional.mse(y_pred, tf.cast(y_true, tf.float32))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}
