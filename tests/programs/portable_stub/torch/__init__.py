"""Stand-in for PyTorch."""

__version__ = "2.15.0"


def computed(name: str) -> None:
    """One operation."""
