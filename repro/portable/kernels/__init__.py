"""Exact sums of products, compiled by LLVM.

Exact sums of products on a CPU, compiled by LLVM for this processor and for the shapes at hand.

machine: machine code. contraction: sums of float64; pairs: of int16; convolution: what a convolution is of them;
products: those of matrices; grids, lanes, patches, layout: what goes before them and after. xla: how XLA calls them; calls: operations
of JAX and TensorFlow. pytorch, jax, tensorflow, numpy: how each calls them.
"""

from importlib.util import find_spec

available = find_spec("llvmlite") is not None
"""Whether loops can be compiled."""


def paired() -> bool:
    """Whether products of int16 can be compiled for this processor."""
    if not available:
        return False
    from repro.portable.kernels.pairs import possible  # needs llvmlite

    return possible()
