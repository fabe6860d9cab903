"""A disk whose operations are counted, and of which one fails, as SQLite's tests have it.

Operations on paths below a folder are counted: of `open`, what a file does, and the functions of `os` and `fcntl`. The one
of a given number fails, or the process is killed right after it: then nothing that follows reaches the disk.
"""

import builtins
import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

KILL = "KILL"
FAULTS = {"ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES, "EIO": errno.EIO, KILL: 0}

OF_PATHS = (
    "mkdir",
    "unlink",
    "remove",
    "rmdir",
    "rename",
    "replace",
    "chmod",
    "utime",
    "stat",
    "lstat",
    "listdir",
    "scandir",
    "link",
)
OF_DESCRIPTORS = ("fsync", "ftruncate", "write", "read")
CHANGING = ("write", "writelines", "truncate", "flush")
READING = ("read", "readline", "readlines", "readinto", "__next__")


class Killed(BaseException):
    """Stands for a SIGKILL."""


class Disk:
    """Everything below one folder, as long as `attached()`."""

    def __init__(self, folder: Path, fault: str = "", number: int = -1) -> None:
        self.folder, self.fault, self.number = str(folder), fault, number
        self.operations: list[str] = []
        self.dead = self.paused = False
        self.opened: dict[int, str] = {}
        self.files: list[Any] = []
        self.real_open = builtins.open

    @property
    def failed(self) -> str:
        """The operation that failed."""
        return self.operations[self.number]

    def is_ours(self, path: object) -> bool:
        if isinstance(path, int):
            return path in self.opened
        try:
            name = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]
        except (TypeError, OSError):
            return False
        return name == self.folder or name.startswith(f"{self.folder}{os.sep}")

    def operate(
        self, name: str, path: object, operation: Callable[[], Any], torn: Callable[[], Any] | None = None
    ) -> Any:
        """Counts an operation, and carries it out, unless it is the one that fails."""
        if self.paused:
            return operation()
        if self.dead:
            raise Killed
        number = len(self.operations)
        self.operations.append(f"{name} {os.path.relpath(self.opened.get(path, path), self.folder)}")  # type: ignore[call-overload]
        if number != self.number:
            return operation()
        if self.fault == KILL:
            done = operation()
            if name == "os.open":
                os.close(done)
            elif hasattr(done, "close"):  # a file, a listing
                done.close()
            self.die()
        if torn and self.fault == "ENOSPC":
            torn()
        named = name in OF_PATHS or "open" in name  # the system does not say of which file a descriptor is
        raise OSError(FAULTS[self.fault], os.strerror(FAULTS[self.fault]), *([os.fspath(path)] if named else []))  # type: ignore[call-overload]

    def die(self) -> None:
        """Loses what has not been handed to the system yet."""
        self.dead = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for file in self.files:
            if not file.closed:
                os.dup2(nowhere, file.fileno())
        os.close(nowhere)
        raise Killed

    def open(self, path: Any, mode: str = "r", *rest: Any, **how: Any) -> Any:
        if self.paused or not self.is_ours(path):
            return self.real_open(path, mode, *rest, **how)
        file = self.operate(f"open({mode})", path, lambda: self.real_open(path, mode, *rest, **how))
        if isinstance(path, int):
            return file
        self.files.append(file)
        self.opened[file.fileno()] = str(path)
        return File(self, file, str(path))

    @contextmanager
    def attached(self, patch: pytest.MonkeyPatch) -> Iterator["Disk"]:
        with patch.context() as inner:
            for module in (builtins, io):
                inner.setattr(module, "open", self.open)
            for name in OF_PATHS:
                inner.setattr(os, name, self.of_path(name, getattr(os, name)))
            for name in OF_DESCRIPTORS:
                inner.setattr(os, name, self.of_descriptor(name, getattr(os, name)))
            inner.setattr(os, "open", self.descriptor(os.open))
            inner.setattr(os, "close", self.forgotten(os.close))
            inner.setattr(fcntl, "lockf", self.of_file("lock", fcntl.lockf))
            yield self

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Meanwhile another process works."""
        before, self.paused = self.paused, True
        yield
        self.paused = before

    def of_path(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*given: Any, **how: Any) -> Any:
            if not given or not self.is_ours(given[0]) or how.get("dir_fd") is not None:
                return real(*given, **how)
            return self.operate(name, given[0], lambda: real(*given, **how))

        return operation

    of_descriptor = of_path

    def of_file(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(file: Any, *given: Any) -> Any:
            return (
                self.operate(name, file.name, lambda: real(file, *given))
                if self.is_ours(file.name)
                else real(file, *given)
            )

        return operation

    def descriptor(self, real: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, *given: Any, **how: Any) -> int:
            if self.paused or not self.is_ours(path):
                return real(path, *given, **how)
            number = self.operate("os.open", path, lambda: real(path, *given, **how))
            self.opened[number] = str(path)
            return int(number)

        return opened

    def forgotten(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def close(number: int) -> None:
            self.opened.pop(number, None)
            real(number)

        return close


class File:
    """An open file of the disk."""

    def __init__(self, disk: Disk, file: Any, path: str) -> None:
        self.disk, self.file, self.path = disk, file, path
        self.kept = False  # whether something is written that has not been handed to the system

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.file, name)
        if name not in CHANGING and name not in READING:
            return real

        def operation(*given: Any) -> Any:
            self.kept = name == "write" if name in CHANGING else self.kept

            def torn() -> None:
                if name == "write":
                    real(given[0][: len(given[0]) // 2])

            return self.disk.operate(name, self.path, lambda: real(*given), torn)

        return operation

    def __iter__(self) -> Iterator[Any]:
        return iter(self.file)

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """A file that was written may fail to be closed: some systems say only then that the disk is full."""
        if self.file.closed:
            return
        self.disk.opened.pop(self.file.fileno(), None)
        try:
            if self.kept and not self.disk.dead:
                self.disk.operate("close", self.path, self.file.close)
        finally:
            self.file.close()
