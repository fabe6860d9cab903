"""The states of the random number generators of Python, NumPy and TensorFlow, as text to hash.

A generator that nobody seeded and nobody drew from is left out: its first state is the system's noise, in each run
another, and decides nothing. NumPy's is the global one; those of default_rng are the program's own objects.
"""

import random
import sys
from types import ModuleType
from typing import Any

untouched: dict[str, Any] = {}


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


def states() -> dict[str, str]:
    """The canonical text of each state: what `repr` gives of tuples of whole numbers (a float in hexadecimal)."""
    now: dict[str, Any] = {"python": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        now["numpy"] = _of_numpy(numpy)
    found = {name: state for name, state in now.items() if state != untouched.get(name)}
    tensorflow = _of_tensorflow()
    if tensorflow is not None:
        found["tensorflow"] = tensorflow
    return {name: state if isinstance(state, str) else repr(state) for name, state in found.items()}
