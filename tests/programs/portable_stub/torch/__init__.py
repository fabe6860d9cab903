"""Stand-in for PyTorch."""

import sys

__version__ = "2.15.0"
sys.modules["torch.optim.optimizer"] = sys.modules[__name__]  # as old as one that the observer sees no steps of


def computed(name: str) -> None:
    """One operation."""
