"""Hook into `import`, for what waits for a module.

A function is called once all of its module has loaded.
"""

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any


def _execute(execute: Callable[[], None]) -> None:
    execute()


class Finder:
    """Finds no module itself: lets the others find it, and calls what waits for it when it has run.

    It stands first in sys.meta_path, and asks for nothing but the names that are waited for. Many only ask whether a
    framework is there (importlib.util.find_spec), and import it later or never: so a name is waited for until its
    module has run.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[ModuleType], None]]] = {}
        self.around: Callable[[Callable[[], None]], None] = _execute  # executes a module that is waited for
        self.searching = threading.local()

    def when_imported(self, name: str, function: Callable[[ModuleType], None]) -> None:
        """Calls a function with a module once it is loaded, several functions in the order in which they were given."""
        self.waiting.setdefault(name, []).append(function)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        searching = vars(self.searching)
        if name not in self.waiting or name in searching:  # another finder may ask all of them again
            return None
        searching[name] = True
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find is not None and finder is not self else None
                if spec is not None:
                    self.hook_loader(name, spec.loader)
                    return spec
            return None
        finally:
            del searching[name]

    def hook_loader(self, name: str, loader: Any) -> None:
        """Calls after the loader: by an attribute of that one object, which stays what it is to others."""
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            self.around(lambda: execute(module))
            for function in self.waiting.pop(name, ()):  # each module is hooked once
                function(module)

        loader.exec_module = exec_module


finder = Finder()
"""The one of this process."""


def start() -> None:
    """Begins to look at imports."""
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
