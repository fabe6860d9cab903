"""The package `repro` in a process that may have another one, or none.

Ours is loaded as `_repro`, and shadows nothing: its modules get an `import` of their own, which reads `_repro` for `repro`.
A program that has these very files as `repro` gets no second copy.
"""

import builtins
import importlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Optional

NAME, PRIVATE = "repro", "_repro"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:  # noqa: A002
    if level == 0 and (name == NAME or name.startswith(NAME + ".")):
        name = PRIVATE + name[len(NAME) :]
    return builtins.__import__(name, globals, locals, fromlist, level)


class Loader(SourceFileLoader):
    """Executes a module with that `import`, which Python looks for among the builtins of the module."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


class Finder:
    """Finds the modules of the private package."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        if not name.startswith(PRIVATE + "."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


finder = Finder()


def load(module: str) -> ModuleType:
    """A module of the package, by its name below `repro`."""
    if _is_the_programs():
        return importlib.import_module(f"{NAME}.{module}")
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    return importlib.import_module(f"{PRIVATE}.{module}")


def _is_the_programs() -> bool:
    """True if `import repro` in the program loads these files."""
    try:
        spec = importlib.util.find_spec(NAME)
    except (ImportError, ValueError):  # a module without a spec, such as one that a program has put there
        return False
    places = spec.submodule_search_locations if spec is not None else None
    return any(os.path.realpath(place) == os.path.realpath(FOLDER) for place in places or ())
