"""Folder listings in the reverse order.

The question `file_order` puts this file on the path of a process: Python loads a module of this name when it starts.
Reversed are os.listdir and os.scandir, and so what stands on them: glob, pathlib, os.walk, shutil. Not reversed: a listing
by a program that is not Python or by a library in C++, and one below Python's own folders. REPRO_LISTINGS names a file
that gets a line for each folder whose order was changed. The standard library alone, and any Python from 3.9 on.
"""

import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes time, in a process of somebody else
    from collections.abc import Iterator
    from typing import Any

_listdir, _scandir = os.listdir, os.scandir
_logged: "set[str]" = set()
_PYTHONS = tuple({os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
_OWN = os.path.dirname(os.path.abspath(__file__))


def _is_reversed(path: "Any", count: int) -> bool:
    """Whether the order of a folder with `count` names is to be reversed; logs it once."""
    if count < 2 or isinstance(path, int):
        return False
    full = os.path.realpath(os.fsdecode("." if path is None else path)) + os.sep
    if full.startswith(_PYTHONS) or os.sep + "site-packages" + os.sep in full:
        return False
    log = os.environ.get("REPRO_LISTINGS")
    if log and full not in _logged:
        _logged.add(full)
        try:
            with open(log, "a", encoding="utf-8", errors="replace") as file:
                file.write(full.replace("\n", " ") + "\n")
        except OSError:
            pass
    return True


def listdir(path: "Any" = ".") -> "list[Any]":
    """os.listdir in the reverse order."""
    names = _listdir(path)
    return names[::-1] if _is_reversed(path, len(names)) else names


class scandir:  # noqa: N801  as in the os module
    """os.scandir in the reverse order."""

    def __init__(self, path: "Any" = ".") -> None:
        with _scandir(path) as entries:
            names: list[os.DirEntry[Any]] = list(entries)
        self._left = iter(names[::-1] if _is_reversed(path, len(names)) else names)

    def __iter__(self) -> "Iterator[os.DirEntry[Any]]":
        return self

    def __next__(self) -> "os.DirEntry[Any]":
        return next(self._left)

    def __enter__(self) -> "scandir":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it."""
        self._left = iter(())


def _hand_on() -> None:
    """Loads the user's own sitecustomize, which this one hides: the next on the path."""
    folders = [os.path.abspath(folder) for folder in sys.path]
    after = sys.path[folders.index(_OWN) + 1 :] if _OWN in folders else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", after)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


os.listdir, os.scandir = listdir, scandir  # type: ignore[assignment]
os.supports_fd |= {listdir, scandir}  # shutil asks this set what it may do
_hand_on()
