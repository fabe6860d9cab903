"""Networks of Flax's linen modules."""

from programs.coverage import flax_images, flax_text

__all__ = ["flax_images", "flax_text"]
