"""Networks of Flax's linen modules."""

from evidence.coverage import flax_images, flax_text

__all__ = ["flax_images", "flax_text"]
