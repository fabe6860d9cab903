"""Start in a process, by REPRO_CONTROLS."""

import functools
import importlib
import os
from types import ModuleType

from ..inject import imports
from . import controls

# The module that is waited for, and the file of this folder that then looks at its trainings.
FRAMEWORKS = {"torch": "pytorch", "keras": "keras", "jax": "jax", "flax.nnx": "jax"}


def start() -> None:
    """Takes over the task, once a framework is imported."""
    if not os.environ.get("REPRO_OBSERVE"):
        return
    controls.start()
    for name in FRAMEWORKS:
        imports.finder.when_imported(name, functools.partial(_install, name))
    imports.start()


@controls.never_raise
def _install(name: str, module: ModuleType) -> None:
    watcher = importlib.import_module("." + FRAMEWORKS[name], __package__)
    getattr(watcher, "after_" + name.replace(".", "_"))(module)
