"""Names of PyTorch's modules and parameters."""

import functools
import weakref
from collections.abc import Iterator
from typing import Any

from . import recorder

WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")  # left out of names

modules: dict[int, Any] = {}  # weak references to all modules whose parameters were ever requested


def watch(torch: Any) -> None:
    """Remembers, weakly, each module that is asked for its parameters, as every script does to make an optimizer."""
    kind = torch.nn.Module
    named_parameters = kind.named_parameters
    compiling = getattr(torch.compiler, "is_compiling", bool)

    @functools.wraps(named_parameters)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not compiling() and id(self) not in modules and not recorder.is_busy():
            modules[id(self)] = weakref.ref(self, functools.partial(_forget, id(self)))
        return named_parameters(self, *args, **kwargs)

    kind.named_parameters = watched


def _forget(key: int, _reference: Any) -> None:
    modules.pop(key, None)


def known_modules() -> list[Any]:
    return [module for module in (reference() for reference in list(modules.values())) if module is not None]


def names_in(root: Any) -> Iterator[tuple[int, str]]:
    """Identity and name of each parameter."""
    for name, tensor in root.named_parameters():
        yield id(tensor), plain_name(name)


def plain_name(name: str) -> str:
    """The name without what DistributedDataParallel, FSDP and torch.compile put before and between."""
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    return name[len("module.") :] if name.startswith("module.") else name
