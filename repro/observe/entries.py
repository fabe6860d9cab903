"""Functions of the observer that a PyTorch program comes to call.

Each is looked up when it is called: PyTorch's compiler, which may be imported late, must not trace it.
"""

from collections.abc import Callable
from typing import Any

entries: dict[str, Any] = {}
wraps: list[Any] = []  # the wrapper of each entry
after_wrapping: list[Callable[[], None]] = []  # called after wrapping, for entries that PyTorch itself holds


def add(name: str, entry: Any) -> None:
    """Adds a function, wrapped as those before it."""
    for wrap in wraps:
        entry = wrap(entry)
    entries[name] = entry


def wrap_all(wrap: Any) -> None:
    """Wraps all functions, and those that are added later."""
    wraps.append(wrap)
    entries.update({name: wrap(entry) for name, entry in entries.items()})
    for call in after_wrapping:
        call()
