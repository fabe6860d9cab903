"""The self-check of portable numerics in PyTorch: see repro/portable/checks.py."""

import torch

from repro.portable import checks
from repro.portable.pytorch.backend import Backend


def self_check(device: torch.device) -> None:
    """ReproError if this library computes anything of checks.py with other bits, on this device."""
    given = {name: [torch.from_numpy(array).to(device) for array in arrays] for name, arrays in checks.inputs().items()}
    found = checks.computed(Backend, given)
    checks.check("PyTorch", {name: [each.cpu().numpy() for each in results] for name, results in found.items()})
