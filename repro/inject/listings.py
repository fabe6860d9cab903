"""Listings of folders in another order: reversed for the question `file_order`, sorted as a remedy.

os.listdir and os.scandir are replaced, and so what stands on them: glob, pathlib, os.walk, shutil. A listing by a program
that is not Python, or by a library in C++, stays as it is.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

LISTED = "listed"  # a file in the record's folder: a line for each folder whose order was reversed
Order = Callable[[Any, "list[Any]", Callable[[Any], Any]], "list[Any]"]
"""Arranges what a path holds; the function gives the name of an item."""


def start() -> None:
    """Reverses the order in which folders are listed, except for Python's own; each is written down once."""
    _arrange(_Reversed(os.path.join(os.environ["REPRO_OBSERVE"], "steps", LISTED)))


def sort() -> None:
    """Sorts folders by name when they are listed."""
    _arrange(lambda _, items, name_of: sorted(items, key=name_of))


class _Reversed:
    """The reverse order, of folders that are written down."""

    def __init__(self, log: str) -> None:
        self.log, self.logged = log, set[str]()
        self.pythons = tuple({os.path.realpath(p) + os.sep for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)})

    def __call__(self, path: Any, items: "list[Any]", name_of: Callable[[Any], Any]) -> "list[Any]":
        return items[::-1] if self._is_reversed(path, len(items)) else items

    def _is_reversed(self, path: Any, count: int) -> bool:
        if count < 2 or isinstance(path, int):
            return False
        full = os.path.realpath(os.fsdecode("." if path is None else path)) + os.sep
        if full.startswith(self.pythons) or os.sep + "site-packages" + os.sep in full:
            return False
        if full not in self.logged:
            self.logged.add(full)
            try:
                with open(self.log, "a", encoding="utf-8", errors="replace") as file:
                    file.write(full.replace("\n", " ") + "\n")
            except OSError:
                pass
        return True


def _arrange(order: Order) -> None:
    in_any_order, entries_in_any_order = os.listdir, os.scandir

    def listdir(path: Any = ".") -> "list[Any]":
        return order(path, in_any_order(path), lambda name: name)

    class scandir:  # noqa: N801  as in the os module
        """os.scandir in this order."""

        def __init__(self, path: Any = ".") -> None:
            with entries_in_any_order(path) as entries:
                self._left = iter(order(path, list(entries), lambda entry: entry.name))

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
