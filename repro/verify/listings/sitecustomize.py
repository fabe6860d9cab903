"""Gives a Python process the names in a folder in the reverse order, for the question `file_order`.

Python loads a module of this name when it starts. Reversed are os.listdir and os.scandir, and so what stands on them:
glob, pathlib, os.walk, shutil. Not reversed: a listing by a program that is not Python or by a library in C++, and one
below Python's own folders. REPRO_LISTINGS names a file that gets a line for each folder whose order was changed.
The standard library alone, and any Python from 3.9 on: it runs in somebody else's process.
"""

import importlib.machinery
import importlib.util
import os
import sys

_listdir, _scandir = os.listdir, os.scandir
_told: "set[str]" = set()
_PYTHONS = tuple({os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
_OWN = os.path.dirname(os.path.abspath(__file__))


def _changed(path, count):
    """Whether the order of a folder with so many names is to be changed; tells it once."""
    if count < 2 or isinstance(path, int):
        return False
    full = os.path.realpath(os.fsdecode("." if path is None else path)) + os.sep
    if full.startswith(_PYTHONS) or os.sep + "site-packages" + os.sep in full:
        return False
    log = os.environ.get("REPRO_LISTINGS")
    if log and full not in _told:
        _told.add(full)
        try:
            with open(log, "a", encoding="utf-8", errors="replace") as file:
                file.write(full.replace("\n", " ") + "\n")
        except OSError:
            pass
    return True


def listdir(path="."):
    """os.listdir in the reverse order."""
    names = _listdir(path)
    return names[::-1] if _changed(path, len(names)) else names


class scandir:  # noqa: N801  as in the os module
    """os.scandir in the reverse order."""

    def __init__(self, path="."):
        with _scandir(path) as entries:
            found = list(entries)
        self._left = iter(found[::-1] if _changed(path, len(found)) else found)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends it."""
        self._left = iter(())


def _hand_on():
    """Loads the user's own sitecustomize, which this one hides: the next on the path."""
    folders = [os.path.abspath(folder) for folder in sys.path]
    after = sys.path[folders.index(_OWN) + 1 :] if _OWN in folders else []
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", after)
    if found and found.loader:
        found.loader.exec_module(importlib.util.module_from_spec(found))


os.listdir, os.scandir = listdir, scandir  # type: ignore[assignment]
os.supports_fd |= {listdir, scandir}  # shutil asks this set what it may do
_hand_on()
