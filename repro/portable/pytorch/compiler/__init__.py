"""Definitions run by PyTorch on a CPU in few passes over memory, by loops that LLVM compiles. It changes no bit.

nodes -> recorder: the graph of a definition -> plan: what is one loop -> loops: machine code; contraction, convolution:
sums of products. Where llvmlite is not installed, on GPUs, and under torch.compile PyTorch runs one operation after
another.
"""

from importlib.util import find_spec

import torch

available = find_spec("llvmlite") is not None
"""Whether loops can be compiled; may be set to False."""


def possible(device: torch.device) -> bool:
    """Whether loops may be compiled for tensors of a device."""
    return available and device.type == "cpu" and not torch.compiler.is_compiling()
