"""Options and checkpoints of the cases in JAX and Keras.

A case is called as `python CASE.py FOLDER [--resume]`.
"""

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy

PAUSE = 0.02
"""Seconds after a checkpoint, in which `verify` may stop the case."""
FOLDER = Path(sys.argv[1])


def save(name: str = "checkpoint", **parts: Any) -> None:
    """Replaces the checkpoint in one go; each part is an array, or a list of them."""
    arrays: dict[str, Any] = {}
    for part, value in parts.items():
        for number, array in enumerate(value if isinstance(value, list) else [value]):
            arrays[f"{part}.{number:03}"] = numpy.asarray(array)
    path = FOLDER / f"{name}.npz"
    with open(f"{path}.new", "wb") as file:
        numpy.savez(file, **arrays)
    os.replace(f"{path}.new", path)
    time.sleep(PAUSE)


def restored(name: str = "checkpoint") -> dict[str, list[numpy.ndarray]]:
    """The parts of the checkpoint that --resume goes on from, each a list; empty where the case begins."""
    path = FOLDER / f"{name}.npz"
    if "--resume" not in sys.argv or not path.exists():
        return {}
    parts: dict[str, list[numpy.ndarray]] = {}
    with numpy.load(path) as file:
        for name in sorted(file):
            parts.setdefault(name.rpartition(".")[0], []).append(file[name])
    return parts


def finish(arrays: Iterable[Any]) -> None:
    save("model", weights=list(arrays))
