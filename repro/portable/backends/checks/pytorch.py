"""The self-check in PyTorch: see repro/portable/backends/checks/cases.py."""

import numpy as np
import torch

from repro.portable import kernels
from repro.portable.backends.checks import cases as checks
from repro.portable.backends.pytorch import Backend

if kernels.available:
    from repro.portable.kernels import products


def self_check(device: torch.device, engine: str = "float64") -> None:
    """Sets the matmul backend: auto, float64, int8, or, on CPUs that have its instruction, int16.

    ReproError if this library computes anything of cases.py with other bits, on this device.
    """
    given = {name: [torch.from_numpy(array).to(device) for array in arrays] for name, arrays in checks.inputs().items()}
    large = [torch.from_numpy(array).to(device) for array in checks.large()]

    def run() -> dict[str, list[np.ndarray]]:
        result = checks.computed(Backend, given)
        return {name: [each.cpu().numpy() for each in results] for name, results in result.items()}

    def multiply() -> float:
        return Backend.matmul(*Backend.operands(large[0], large[1], work=checks.LARGE))[0, 0].item()

    paired = device.type == "cpu" and kernels.paired()
    # Where PyTorch multiplies int8 by plain loops, to time them takes seconds.
    checks.choose_engine("PyTorch", Backend, engine, run, multiply, paired, paired and products.int8_is_fast())
