"""Exact sums of products on a CPU, compiled by LLVM for this processor and for the shapes at hand.

machine                        machine code
contraction, pairs             sums of products of float64, and of int16
products, convolution          matrix products and convolutions made of them
grids, lanes, patches, layout  what comes before them and after
weights                        the factors of products of weights
threefry                       random numbers of JAX
xla, calls                     how XLA calls them; operations of JAX and TensorFlow
pytorch, tensorflow, jax, numpy  how each calls them
"""

from importlib.util import find_spec

available = find_spec("llvmlite") is not None
"""True if kernels can be compiled."""


def paired() -> bool:
    """True if products of int16 can be compiled for this processor."""
    if not available:
        return False
    from repro.portable.kernels.pairs import possible  # needs llvmlite

    return possible()
