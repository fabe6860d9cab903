"""Operations that come while a program runs.

Extension modules and libraries of operations are looked through as soon as they are loaded.
"""

import mmap
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any

import torch

from repro.portable.modes.pytorch.dispatcher.compilers import replace


def install(undo: ExitStack, scan: Callable[[], None]) -> None:
    """Calls `scan` after each load, until `undo` is closed."""
    load = torch.ops.load_library
    run = ExtensionFileLoader.exec_module

    @wraps(load)
    def load_library(*arguments: Any, **options: Any) -> Any:
        try:
            return load(*arguments, **options)
        finally:
            scan()

    @wraps(run)
    def exec_module(loader: ExtensionFileLoader, module: ModuleType) -> None:
        try:
            run(loader, module)
        finally:
            if needs_pytorch(loader.path):
                scan()

    replace(undo, torch.ops, "load_library", load_library)
    replace(undo, ExtensionFileLoader, "exec_module", exec_module)


def needs_pytorch(path: str) -> bool:
    """True if a library names one of PyTorch's: others, of which there are many, register nothing."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return text.find(b"libtorch") >= 0 or text.find(b"libc10") >= 0
    except (OSError, ValueError):
        return True
