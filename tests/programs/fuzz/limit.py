"""How far from float64 a result may be: the kinds of operations, as docs/reference/specification.md has them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The largest error of a result. What its fields allow is added up."""

    ulps: float = 2
    """In units in the last place of the result."""
    share: float = 0
    """Relative to the largest number of the same array."""
    least: float = 0
    """As it is: magnitudes below this one count as 0."""
    own: float = 0
    """Relative to the framework's own error."""
    worst: float = 0
    """In units, relative to the framework's own largest error of the same result."""
    squares: bool = False
    """True if the units grow with the square of the result."""
    spreads: bool = False
    """True if NaN, infinities and what is 2^127 and more make NaN of all numbers that they are grouped with."""
    overflows: bool = False
    """True if there may be a number where the framework's formula overflows."""
    poles: bool = False
    """True if an infinity is right: the framework's formula has a finite number at a pole."""
    wider: bool = False
    """True if statistics of halves are in float32, as on a GPU."""
    signed: bool = True
    """False for vectors that are unique up to their sign."""
    ordered: bool = True
    """False if it is open to which of equal numbers a result belongs: results are compared in the order of their size."""
    compared: bool = True
    """False for random numbers."""
    single: bool = False
    """True if the framework computes float64 in float32, too."""
    native: bool = False
    """True if results are compared with the framework's own of the same type."""
    memory: bool = False
    """True for contents of memory, which no setting keeps."""
    narrow: bool = False
    """True where it may be refused in a setting, as float16 of JAX on a CPU without F16C."""
    reason: str = ""
    """Why it is wider than 2 units, for the page docs/reference/fuzzer.md."""


FUNCTION = Limit()
"""A function of one or two numbers."""
PRODUCT = Limit(share=2.0**-8, least=2.0**-100, spreads=True, reason="operands of 13 bits")
"""Operands have 13 bits below the largest of their row ("Grids"): of few terms that do not cancel, a result has 8 at least."""
SUM = Limit(share=2.0**-20, least=2.0**-100, spreads=True, reason="numbers of 24 bits")
"""Numbers have 24 bits below the largest of their group."""
TRANSFORM = Limit(share=2.0**-22, least=2.0**-100, spreads=True, reason="operands of 26 bits")
"""Fourier transforms: both operands have 26 bits."""
DOUBLE = 2.0**-36
"""The share of sums and products of float64, whose operands have all their bits: 16 of them are left to what cancels."""
SEVERAL = Limit(share=2.0**-20, reason="several operations, each rounded")
"""Several operations, each of which rounds, in the order of the framework's formula."""
FORMULA = "the framework's formula, of parts that are rounded"
DOUBLES = "float64 of the framework, which errs itself"
"""Reasons."""
RANDOM = Limit(compared=False)
"""Random numbers, and what else cannot be compared with float64."""
MEMORY = Limit(compared=False, memory=True)
