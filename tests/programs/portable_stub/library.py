"""Stand-in for the mode of a framework: what the command `portable` needs of it, without the framework."""

import importlib
from collections import Counter
from typing import Any

from repro.errors import UsageError
from repro.portable.definitions.ranks import SINGLE_PROCESS  # which imports NumPy

operations: Counter[str] = Counter()
allowed: Counter[str] = Counter()


def enable(allow=(), precision="high"):
    framework: Any = importlib.import_module("torch" if "pytorch" in __name__ else "jax")
    assert SINGLE_PROCESS.size == 1
    for name in allow:
        if name not in ("svd", "eigh"):
            raise UsageError(f"portable: no operation {name!r}\ndid you mean svd?")

    def computed(name: str) -> None:
        (allowed if name in allow else operations)[name] += 1

    framework.computed, framework.precision, framework.library = computed, precision, __name__


def counted():
    return {"operations": dict(operations), "allowed": dict(allowed)}
