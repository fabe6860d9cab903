"""Remedies in somebody else's process, as `repro verify --cure` tries them.

The variable REPRO_REMEDIES names them: `sorted_listings`, `deterministic`. A process in which one cannot be had
ends: it would train without it, and nobody would know.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from . import imports


def start() -> None:
    """Has what is asked for now, or once the module that it needs has been imported."""
    for name in os.environ["REPRO_REMEDIES"].split(","):
        _or_end(REMEDIES[name])
    imports.start()


def deterministic() -> None:
    """Switches the frameworks' deterministic modes on; memory that nobody initialized stays as it is."""
    _after("torch", _deterministic_torch)
    _after("tensorflow", lambda tensorflow: tensorflow.config.experimental.enable_op_determinism())


def _deterministic_torch(torch: Any) -> None:
    torch.use_deterministic_algorithms(True)
    importlib.import_module("torch.utils.deterministic").fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False


def sorted_listings() -> None:
    """Has folders listed in the order of their names, and so what stands on it: glob, pathlib, os.walk, shutil."""
    in_any_order, entries_in_any_order = os.listdir, os.scandir

    def listdir(path: Any = ".") -> "list[Any]":
        return sorted(in_any_order(path))

    class scandir:  # noqa: N801  as in the os module
        """os.scandir in the order of the names."""

        def __init__(self, path: Any = ".") -> None:
            with entries_in_any_order(path) as entries:
                found: list[os.DirEntry[Any]] = sorted(entries, key=lambda entry: entry.name)
            self._left = iter(found)

        def __iter__(self) -> "Iterator[os.DirEntry[Any]]":
            return self

        def __next__(self) -> "os.DirEntry[Any]":
            return next(self._left)

        def __enter__(self) -> "scandir":
            return self

        def __exit__(self, *_: object) -> None:
            self.close()

        def close(self) -> None:
            self._left = iter(())

    os.listdir, os.scandir = listdir, scandir  # type: ignore[assignment]
    os.supports_fd |= {listdir, scandir}  # shutil asks this set what it may do


REMEDIES: "dict[str, Callable[[], None]]" = {
    "sorted_listings": sorted_listings,
    "deterministic": deterministic,
}


def _after(module: str, remedy: Callable[[ModuleType], None]) -> None:
    imports.finder.when_imported(module, lambda loaded: _or_end(lambda: remedy(loaded)))


def _or_end(remedy: Callable[[], None]) -> None:
    try:
        remedy()
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        sys.stderr.write(f"repro: this process ends, as a remedy cannot be had in it: {text}\n")
        sys.stderr.flush()
        os._exit(1)
