"""Keras Applications: five steps at small images."""

from collections.abc import Callable

import keras

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, cross_entropy, fitted, images

SIZES = {"InceptionV3": 75, "Xception": 71}
"""Of images, where a network does not take 32."""
NAMES = (
    *("MobileNet", "MobileNetV2", "MobileNetV3Small", "ResNet50", "ResNet50V2", "VGG16", "ConvNeXtTiny", "Xception"),
    *("EfficientNetB0", "InceptionV3", "DenseNet121"),
)


def _application(name: str) -> Callable[[], Training]:
    def train() -> Training:
        size = SIZES.get(name, 32)
        model = getattr(keras.applications, name)(
            weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None
        )
        optimizer = keras.optimizers.SGD(1e-3, momentum=0.9, nesterov=True)
        return fitted(model, optimizer, cross_entropy(), images(2, size, size, 3), jit_compile=False)

    return train


for _name in NAMES:
    program("applications", _name)(_application(_name))
