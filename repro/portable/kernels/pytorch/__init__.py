"""Compiler of PyTorch's operations for a CPU.

It changes no bit.

nodes.py: operations in a graph. tracer.py: the graph of a definition. plan.py: what becomes one kernel, and its
execution. memory.py: arguments as plain memory. kernels.py: its machine code. sums.py: sums of products, of repro.portable.kernels. openmp.py: its threads.
threads.py: PyTorch's library of them. README.md says why. Where llvmlite is not installed, on GPUs, and under torch.compile PyTorch runs one operation after
another.
"""

from importlib.util import find_spec

import torch

available = find_spec("llvmlite") is not None
"""Whether kernels can be compiled; may be set to False."""


def possible(device: torch.device) -> bool:
    """Whether kernels may be compiled for tensors of a device."""
    return available and device.type == "cpu" and not torch.compiler.is_compiling()
