"""The kernels on PyTorch's tensors and threads.

sums     sums of products, over tensors
threads  PyTorch's threads, from its own library
openmp   these threads, called by compiled kernels
"""

from importlib.util import find_spec

import torch

available = find_spec("llvmlite") is not None
"""True if kernels can be compiled; may be set to False."""


def possible(device: torch.device) -> bool:
    """True if kernels may be compiled for tensors of a device."""
    return available and device.type == "cpu" and not torch.compiler.is_compiling()
