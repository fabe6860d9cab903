"""Programs of TensorFlow alone and of Keras' parts, after TensorFlow's guides."""

from evidence.coverage import guides_derivatives, guides_mechanisms, guides_models

__all__ = ["guides_derivatives", "guides_mechanisms", "guides_models"]
