"""The states of the random number generators of Python, NumPy and TensorFlow, as text to hash.

A generator that nobody seeded and nobody drew from is left out: its first state is the system's noise, in each run
another, and decides nothing. What a framework draws while it is imported counts as nothing (JAX 0.10 draws from
NumPy's). NumPy's is the global one; those of default_rng are the program's own objects.
"""

import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import hashing

untouched: dict[str, Any] = {}
frameworks: list[Callable[[], dict[str, str]]] = []  # what hashes a framework's own generators


def start() -> None:
    """Called before the program's first line."""
    untouched["python"] = random.getstate()


def after_numpy_random(module: ModuleType) -> None:
    untouched["numpy"] = _of_numpy(module)


def _of_numpy(module: Any) -> str:
    name, words, position, has_gauss, gauss = module.get_state()
    return repr((str(name), words.tolist(), int(position), int(has_gauss), float(gauss).hex()))


def _of_tensorflow() -> Any:
    """The generator of seeds of TensorFlow's eager operations; None before the first is used."""
    context = sys.modules.get("tensorflow.python.eager.context")
    found = getattr(getattr(context, "_context", None), "_rng", None)
    return found.getstate() if found is not None else None


def _present() -> dict[str, Any]:
    now: dict[str, Any] = {"python": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        now["numpy"] = _of_numpy(numpy)
    return now


def _touched() -> dict[str, Any]:
    return {name: state for name, state in _present().items() if state != untouched.get(name)}


def importing(execute: Callable[[], None]) -> None:
    """Has a framework's module run. What was untouched before is so afterwards."""
    before = _touched()
    execute()
    untouched.update((name, state) for name, state in _present().items() if name not in before)


def hashes() -> dict[str, str]:
    """The hash of each state's text, which is `repr` of tuples of whole numbers (a float in hexadecimal); and those of
    frameworks that are observed."""
    found = _touched()
    tensorflow = _of_tensorflow()
    if tensorflow is not None:
        found["tensorflow"] = tensorflow
    texts = {name: state if isinstance(state, str) else repr(state) for name, state in found.items()}
    codes = {name: hashing.text("state", text) for name, text in texts.items()}
    for framework in frameworks:
        codes.update(framework())
    return codes
