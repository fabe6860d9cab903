"""Networks of Keras, after its examples."""

from evidence.coverage import (
    keras_flows,
    keras_games,
    keras_generative,
    keras_images,
    keras_layers,
    keras_others,
    keras_text,
)

__all__ = [
    "keras_flows",
    "keras_games",
    "keras_generative",
    "keras_images",
    "keras_layers",
    "keras_others",
    "keras_text",
]
