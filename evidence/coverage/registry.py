"""Programs of the table of coverage: a registry.

A file beside this one registers functions under a group and a name. Such a function is called in a fresh state of the
generators, under the mode or not, and returns a `Training`, or, where it trains by itself, what it made: named tensors.

    @program("torchvision", "resnet18")
    def resnet18() -> Training:
        return classifier(torchvision.models.resnet18(num_classes=10), "SGD")
"""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

STEPS = 5
GROUPS = {
    "pytorch": {
        "plain": "plain_models",
        "torchvision": "torchvision_models",
        "timm": "timm_models",
        "transformers": "transformers_models",
        "others": "other_models",
        "trainers": "trainers",
    },
    "jax": {
        "jax": "jax_programs",
        "flax": "flax_models",
        "nnx": "nnx_models",
        "equinox": "equinox_models",
        "haiku": "haiku_models",
        "optax": "optax_optimizers",
        "numpyro": "numpyro_models",
        "keras-jax": "keras_on_jax",
    },
    "tensorflow": {
        "keras": "keras_models",
        "applications": "keras_applications",
        "optimizers": "keras_optimizers",
        "losses": "keras_losses",
        "guides": "tensorflow_guides",
    },
}
"""By framework: the file of each group. What it imports needs to be there."""

programs: dict[str, dict[str, Callable[[], Any]]] = {}


def program(group: str, name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a function without arguments that returns a Training or named tensors."""

    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        known = programs.setdefault(group, {})
        assert name not in known, name
        known[name] = function
        return function

    return register


def framework_of(group: str) -> ModuleType:
    """The file of the group's framework: `Training`, `prepare`, `enable`, `seed`, `arrays`."""
    framework = next(framework for framework, groups in GROUPS.items() if group in groups)
    return importlib.import_module(f"evidence.coverage.{framework}_training")


def load(group: str) -> dict[str, Callable[[], Any]]:
    """The programs of a group, by name."""
    (file,) = (groups[group] for groups in GROUPS.values() if group in groups)
    importlib.import_module(f"evidence.coverage.{file}")
    return programs[group]
