"""The function repro.watch, for loops that no hook sees."""

import operator
import sys
from typing import Any


def watch(step: int, state: Any) -> None:
    """Hashes the arrays of `state` as the weights after this step, if `repro record` or `verify` runs the script.

    `state` is any nesting of dicts, lists and tuples, PyTorch's or Keras' modules, dataclasses and JAX's pytrees, with
    arrays of any framework and plain numbers in it. Otherwise this does nothing, and costs nothing: leave it in.

    Call it outside of what a framework compiles. `step` counts as you count, a resumed run from where it goes on.
    TypeError if it is no whole number.
    """
    number = operator.index(step)
    observer = sys.modules.get("_repro.observe.watched")  # loaded at the start of Python, perhaps from another folder
    if observer is not None:
        observer.record(number, state)
