"""Remedies in somebody else's process, as `repro verify --cure` tries them.

The variable REPRO_REMEDIES names them: `sorted_listings`, `deterministic`. A process in which one cannot start
ends: it would train without it, and nobody would know.
"""

import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import imports, listings


def start() -> None:
    """Starts the remedies that are asked for, now or once the module that they need has been imported."""
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


REMEDIES: "dict[str, Callable[[], None]]" = {
    "sorted_listings": listings.sort,
    "deterministic": deterministic,
}


def _after(module: str, remedy: Callable[[ModuleType], None]) -> None:
    imports.finder.when_imported(module, lambda loaded: _or_end(lambda: remedy(loaded)))


def _or_end(remedy: Callable[[], None]) -> None:
    try:
        remedy()
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        sys.stderr.write(f"repro: this process ends, because a remedy cannot be started in it: {text}\n")
        sys.stderr.flush()
        os._exit(1)
