"""Import hooks that install each framework's watcher.

A watcher is installed once all of the framework's module has loaded.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import generators, hashing, recorder
from . import watched as watched  # repro.watch finds it in sys.modules

# The module that is waited for, and the files of this folder that then hook into it, in this order.
WATCHERS = {
    "torch": ("pytorch", "operations"),
    "torch._dynamo": ("pytorch",),
    "keras": ("keras",),
    "jax": ("jax",),
    "optax": ("jax",),
    "equinox": ("jax",),
    "flax.nnx": ("jax",),
    "flax.training.train_state": ("jax",),
    "numpy.random": ("generators",),
}


class Finder:
    """Finds no module itself: lets the others find it, and has the watcher installed when it has run.

    It stands first in sys.meta_path, and asks for nothing but the names above. Many only ask whether a framework is
    there (importlib.util.find_spec), and import it later or never: so a name is waited for until its module has run.
    """

    def __init__(self, install: Callable[[str, ModuleType], None]):
        self.install = install
        self.waiting = set(WATCHERS)
        self.searching = threading.local()

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
        """Installs after the loader: by an attribute of that one object, which stays what it is to others."""
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            generators.execute_import(lambda: execute(module))
            if name in self.waiting:  # each module is hooked once
                self.waiting.discard(name)
                self.install(name, module)

        loader.exec_module = exec_module


def install_hooks(name: str, module: ModuleType) -> None:
    """Calls the watchers' function of the module's name: after_torch, and after_torch__dynamo for torch._dynamo."""
    try:
        for file in WATCHERS[name]:
            watcher = importlib.import_module("." + file, __package__)
            getattr(watcher, "after_" + name.replace(".", "_"))(module)
    except Exception as error:
        recorder.unseen(f"{name} is not observed: {type(error).__name__}: {error}")


def start() -> None:
    """Begins to observe this process, as the variables REPRO_OBSERVE, _EVERY and _KEEP say."""
    folder, every = os.environ["REPRO_OBSERVE"], os.environ.get("REPRO_OBSERVE_EVERY", "")
    if os.environ.get("REPRO_OBSERVE_KEEP") == "1":
        hashing.content_folder = os.path.join(folder, "kept")
    recorder.start(folder, max(int(every), 1) if every.isdigit() else 1)
    generators.start()
    sys.meta_path.insert(0, Finder(install_hooks))
