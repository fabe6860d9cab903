"""The kind of each operation that a framework registers, as a table.

    python registry.py pytorch|tensorflow|jax [--check FILE]

Prints the table: the version of the framework, then a line for each operation. With --check, prints what differs from the
table in a file, and fails where anything does. To write a table anew: python registry.py NAME > golden/registry/NAME.txt
"""

import argparse
import contextlib
import importlib
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Registry:
    """The operations that a version of a framework registers."""

    version: str
    """The framework and its version, as "PyTorch 2.15.0"."""
    kinds: dict[str, str]
    """Kinds by operation."""


def pytorch() -> Registry:
    """Operations of PyTorch's dispatcher: each overload."""
    import torch

    from repro.portable.modes.pytorch.dispatcher import registry

    registry.load()
    names = torch._C._dispatch_get_all_op_names()
    return Registry(f"PyTorch {torch.__version__.partition('+')[0]}", {name: registry.kind_of(name) for name in names})


def tensorflow() -> Registry:
    """Operations of TensorFlow's registry."""
    import tensorflow as tf

    from repro.portable.modes.tensorflow.dispatcher import registry

    names = [each.name for each in registry.operations()]
    return Registry(f"TensorFlow {tf.__version__}", {name: registry.kind_of(name) for name in names})


def jax() -> Registry:
    """Primitives of JAX and of its experimental modules: what it lowers, and what only its own transformations know."""
    import jax
    from jax import experimental

    from repro.portable.modes.jax.dispatcher import registry

    for module in pkgutil.walk_packages(experimental.__path__, "jax.experimental."):
        with contextlib.suppress(ImportError):  # of a device, or of a package, that is not there
            importlib.import_module(module.name)
    return Registry(f"JAX {jax.__version__}", {name: registry.kind_of(name) for name in registry.all_names()})


REGISTRIES = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax}


def written(registry: Registry) -> str:
    """The text of a table."""
    rows = sorted(registry.kinds.items())
    return f"# {registry.version}\n" + "".join(f"{kind:<10} {name}\n" for name, kind in rows)


def read(text: str) -> Registry:
    """The registry in the text of a table."""
    header, *rows = text.splitlines()
    kinds = {}
    for row in rows:
        kind, name = row.split()
        kinds[name] = kind
    return Registry(header.removeprefix("# "), kinds)


def differences(known: Registry, current: Registry) -> list[str]:
    """What is new, gone, or of another kind: a line for each of the three, and one for another version."""
    new = [f"{name} ({kind})" for name, kind in sorted(current.kinds.items()) if name not in known.kinds]
    gone = sorted({*known.kinds} - {*current.kinds})
    changed = [
        f"{name} ({kind}, was {known.kinds[name]})"
        for name, kind in sorted(current.kinds.items())
        if known.kinds.get(name, kind) != kind
    ]
    lines = [
        f"{what}: {', '.join(names)}" for what, names in (("new", new), ("gone", gone), ("changed", changed)) if names
    ]
    if known.version == current.version:
        return lines
    return [f"{current.version}, the table is of {known.version}; {'; '.join(lines) or 'the same operations'}"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=REGISTRIES)
    parser.add_argument("--check", type=Path, help="a table, as golden/registry/pytorch.txt")
    given = parser.parse_args()
    current = REGISTRIES[given.framework]()
    if not given.check:
        print(written(current), end="")
        return 0
    lines = differences(read(given.check.read_text()), current)
    for line in lines:
        print(line)
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
