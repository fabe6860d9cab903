"""Import of a mode's definitions."""

import importlib
from collections.abc import Iterable


def load(dispatcher: str, files: Iterable[str]) -> None:
    """Imports files of operations/ beside a dispatcher's package, whose name is a private one under `repro portable`."""
    for file in files:
        importlib.import_module(f"{dispatcher.removesuffix('dispatcher')}operations.{file}")
