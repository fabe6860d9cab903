"""Precisions of products, by PyTorch's and JAX's names.

An operand of a product is one slice of 13 bits, or two of them, 26 bits, where float32 has 24: then there are three
products, and numbers far below the largest of their row keep more of their bits.
"""

from repro.errors import UsageError

SLICES = {"high": 1, "highest": 2}
"""The slices of an operand, by the name of the precision."""


def slices_of(precision: str) -> int:
    """The number of slices of a precision. UsageError if it is unknown."""
    if precision not in SLICES:
        raise UsageError(f"portable numerics: no precision {precision!r}; there are {', '.join(SLICES)}")
    return SLICES[precision]
