"""Networks of Keras of images, after its examples."""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, images, integers, normal


@program("keras", "mnist, convolutions")
def mnist() -> Training:
    model = keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    batches = [(x, keras.utils.to_categorical(y, 10)) for x, y in images(8, 16, 16, 1)]
    return fitted(model, "adam", "categorical_crossentropy", batches, metrics=["accuracy"])


class Patches(layers.Layer):
    """Patches of an image in a row, with a learned place of each."""

    def __init__(self, size: int, count: int, features: int) -> None:
        super().__init__()
        self.size, self.project = size, layers.Dense(features)
        self.places = layers.Embedding(count, features)
        self.count = count

    def call(self, x: Any) -> Any:
        patches = ops.image.extract_patches(x, self.size)
        patches = ops.reshape(patches, (-1, self.count, patches.shape[-1]))
        return self.project(patches) + self.places(ops.arange(self.count))


def attended(x: Any, heads: int = 2, features: int = 16, rate: float = 0.1) -> Any:
    """A layer of a transformer, normalized before its parts."""
    h = layers.LayerNormalization(epsilon=1e-6)(x)
    x = x + layers.MultiHeadAttention(heads, features // heads, dropout=rate)(h, h)
    h = layers.LayerNormalization(epsilon=1e-6)(x)
    return x + layers.Dropout(rate)(layers.Dense(features)(layers.Dense(2 * features, activation="gelu")(h)))


@program("keras", "vision transformer")
def vision_transformer() -> Training:
    """With images that are turned and zoomed at random."""
    given = keras.Input((16, 16, 3))
    x = layers.Normalization(mean=0.0, variance=1.0)(given)
    x = layers.RandomZoom(0.2, 0.2)(layers.RandomRotation(0.02)(layers.RandomFlip("horizontal")(x)))
    x = Patches(4, 16, 16)(x)
    for _ in range(2):
        x = attended(x)
    x = layers.Dropout(0.5)(layers.Flatten()(layers.LayerNormalization()(x)))
    model = keras.Model(given, layers.Dense(10)(x))
    return fitted(model, keras.optimizers.AdamW(1e-3, 1e-4), cross_entropy(), images(4, 16, 16, 3))


@program("keras", "mlp-mixer")
def mixer() -> Training:
    given = keras.Input((16, 16, 3))
    x = Patches(4, 16, 16)(given)
    for _ in range(2):
        h = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        h = layers.Dense(16)(layers.Dense(32, activation="gelu")(h))
        x = x + layers.Permute((2, 1))(h)
        x = x + layers.Dense(16)(layers.Dense(32, activation="gelu")(layers.LayerNormalization()(x)))
    model = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    return fitted(model, "adam", cross_entropy(), images(4, 16, 16, 3))


@program("keras", "conv-mixer")
def conv_mixer() -> Training:
    given = keras.Input((16, 16, 3))
    x = layers.Conv2D(16, 2, 2)(layers.Rescaling(0.5)(given))
    x = layers.BatchNormalization()(layers.Activation("gelu")(x))
    for _ in range(2):
        h = layers.DepthwiseConv2D(5, padding="same")(x)
        x = x + layers.BatchNormalization()(layers.Activation("gelu")(h))
        x = layers.BatchNormalization()(layers.Activation("gelu")(layers.Conv2D(16, 1)(x)))
    model = keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return fitted(model, keras.optimizers.AdamW(1e-3, 1e-4), cross_entropy(), images(4, 16, 16, 3))


@program("keras", "siamese network, contrastive loss")
def siamese() -> Training:
    tower = keras.Sequential(
        [
            layers.Conv2D(4, 5, activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Conv2D(8, 3, activation="tanh"),
            layers.Flatten(),
            layers.BatchNormalization(),
            layers.Dense(8, activation="tanh"),
        ]
    )
    pair = [keras.Input((16, 16, 1)) for _ in range(2)]
    a, b = map(tower, pair)
    distance = ops.sqrt(ops.maximum(ops.sum(ops.square(a - b), -1, keepdims=True), 1e-7))
    model = keras.Model(pair, layers.Dense(1, activation="sigmoid")(layers.BatchNormalization()(distance)))

    def loss(wanted: Any, outputs: Any) -> Any:
        near, far = ops.square(outputs), ops.square(ops.maximum(1.0 - outputs, 0.0))
        return ops.mean((1 - wanted) * near + wanted * far)

    def batch(key: int) -> Any:
        return [normal(8, 16, 16, 1, key=key + part) for part in (0, 9)], integers(2, 8, 1, key=key).astype(np.float32)

    return fitted(model, "RMSprop", loss, [batch(0), batch(1)])


def _separable(x: Any, features: int) -> Any:
    return layers.BatchNormalization()(layers.SeparableConv2D(features, 3, padding="same")(layers.ReLU()(x)))


@program("keras", "u-net, segmentation")
def segmentation() -> Training:
    given = keras.Input((16, 16, 3))
    x = before = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, padding="same")(given)))
    for features in (8, 16):
        x = layers.MaxPooling2D(3, 2, padding="same")(_separable(_separable(x, features), features))
        x = before = x + layers.Conv2D(features, 1, 2, padding="same")(before)
    for features in (16, 8):
        x = layers.BatchNormalization()(layers.Conv2DTranspose(features, 3, padding="same")(layers.ReLU()(x)))
        x = layers.UpSampling2D()(x)
        x = before = x + layers.Conv2D(features, 1, padding="same")(layers.UpSampling2D()(before))
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    model = keras.Model(given, layers.Conv2D(3, 3, activation="softmax", padding="same")(x))
    batches = [(normal(2, 16, 16, 3, key=key), integers(3, 2, 16, 16, 1, key=key)) for key in range(2)]
    return fitted(model, keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", batches)


@program("keras", "super resolution")
def super_resolution() -> Training:
    given = keras.Input((None, None, 1))
    x = given
    for features, size in ((16, 5), (16, 3), (8, 3)):
        x = layers.Conv2D(features, size, activation="relu", padding="same", kernel_initializer="orthogonal")(x)
    x = layers.Conv2D(9, 3, padding="same", kernel_initializer="orthogonal")(x)
    model = keras.Model(given, DepthToSpace()(x))
    batches = [(normal(2, 8, 8, 1, key=key), normal(2, 24, 24, 1, key=key + 2)) for key in range(2)]
    return fitted(model, keras.optimizers.Adam(1e-3), "mse", batches)


class DepthToSpace(layers.Layer):
    """[N, H, W, 9] to [N, 3 H, 3 W, 1]"""

    def call(self, x: Any) -> Any:
        count, rows, columns, _ = ops.shape(x)
        x = ops.transpose(ops.reshape(x, (count, rows, columns, 3, 3, 1)), (0, 1, 3, 2, 4, 5))
        return ops.reshape(x, (count, rows * 3, columns * 3, 1))


@program("keras", "autoencoder")
def autoencoder() -> Training:
    model = keras.Sequential(
        [
            layers.Conv2D(8, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(2, padding="same"),
            layers.Conv2D(8, 3, activation="relu", padding="same"),
            layers.MaxPooling2D(2, padding="same"),
            layers.Conv2DTranspose(8, 3, 2, activation="relu", padding="same"),
            layers.Conv2DTranspose(8, 3, 2, activation="relu", padding="same"),
            layers.Conv2D(1, 3, activation="sigmoid", padding="same"),
        ]
    )
    clear = [(x > 0).astype(np.float32) for x, _ in images(4, 16, 16, 1)]
    noisy = [np.clip(x + 0.4 * normal(*x.shape, key=5), 0, 1) for x in clear]
    return fitted(model, "adam", "binary_crossentropy", list(zip(noisy, clear, strict=True)))


def _small(features: int) -> keras.Model:
    return keras.Sequential(
        [
            layers.Conv2D(features, 3, 2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.MaxPooling2D(2, 1, padding="same"),
            layers.Conv2D(2 * features, 3, 2, padding="same"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


@program("keras", "augmentation layers, cutmix, mixup")
def augmentation() -> Training:
    """Drawn by Keras' layers, in front of a small network."""
    given = keras.Input((16, 16, 3))
    x = given
    for layer in (
        layers.RandomTranslation(0.1, 0.1),
        layers.RandomCrop(14, 14),
        layers.RandomContrast(0.2),
        layers.RandomBrightness(0.2, value_range=(-2.0, 2.0)),
        layers.RandomErasing(value_range=(-2.0, 2.0)),
        layers.GaussianNoise(0.1),
        layers.Resizing(16, 16),
        layers.SpatialDropout2D(0.1),
    ):
        x = layer(x)
    model = keras.Model(given, _small(4)(x))
    mixes = layers.MixUp(0.3, seed=3), layers.CutMix(0.5, seed=4)
    batches = []
    for mix, (x, y) in zip(mixes, images(4, 16, 16, 3), strict=True):
        mixed = mix({"images": x, "labels": keras.utils.to_categorical(y, 10)}, training=True)
        batches.append((mixed["images"], mixed["labels"]))
    return fitted(model, "sgd", keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), batches)


class Distiller(keras.Model):
    """A student that learns from a teacher's softened answers."""

    def __init__(self, student: keras.Model, teacher: keras.Model) -> None:
        super().__init__()
        self.student, self.teacher = student, teacher

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> Any:
        teacher = self.teacher(x, training=False)
        own = ops.mean(keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True))
        soft = keras.losses.kl_divergence(ops.softmax(teacher / 3.0), ops.softmax(y_pred / 3.0))
        return 0.1 * own + 0.9 * ops.mean(soft) * 9.0

    def call(self, x: Any) -> Any:
        return self.student(x)


@program("keras", "knowledge distillation")
def distillation() -> Training:
    return fitted(Distiller(_small(4), _small(8)), "adam", None, images(4, 16, 16, 1))


@program("keras", "mobilevit, inverted bottlenecks, squeeze and excitation")
def mobile() -> Training:
    given = keras.Input((32, 32, 3))
    x = layers.Conv2D(8, 3, 2, padding="same", activation="silu")(given)
    h = layers.Conv2D(16, 1, use_bias=False)(x)
    h = layers.DepthwiseConv2D(3, 1, padding="same", use_bias=False)(layers.Activation("silu")(h))
    h = layers.Activation("hard_silu")(layers.BatchNormalization()(h))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(h)
    h = h * layers.Dense(16, activation="hard_sigmoid")(layers.Dense(4, activation="relu6")(gate))
    x = x + layers.GroupNormalization(4)(layers.Conv2D(8, 1)(h))
    x = layers.Reshape((64, 4, 8))(layers.Permute((1, 2, 3))(x))
    x = layers.Reshape((16, 16, 8))(attended(layers.Reshape((256, 8))(x), features=8))
    model = keras.Model(given, layers.Dense(10)(layers.GlobalMaxPooling2D()(x)))
    return fitted(model, "adam", cross_entropy(), images(2, 32, 32, 3))
