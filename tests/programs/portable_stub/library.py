"""Stand-in for repro.portable.pytorch.mode: what the command `portable` needs of it, without PyTorch."""

from collections import Counter

from repro.errors import UsageError
from repro.run.ranks import SINGLE_PROCESS  # which imports NumPy

operations: Counter[str] = Counter()
allowed: Counter[str] = Counter()


def enable(allow=(), precision="high"):
    import torch

    assert SINGLE_PROCESS.size == 1
    for name in allow:
        if name != "svd":
            raise UsageError(f"portable: no operation {name!r}\ndid you mean svd?")

    def computed(name: str) -> None:
        (allowed if name in allow else operations)[name] += 1

    torch.computed, torch.precision, torch.library = computed, precision, __name__


def counted():
    return {"operations": dict(operations), "allowed": dict(allowed)}
