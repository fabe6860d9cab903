"""Registration of the mode's kernels.

Each operation of the dispatcher is exact, guarded, defined or refused.
"""

import importlib
from functools import cache

import torch
from torch._ops import OpOverload

from repro.portable.pytorch.mode import dispatch, variants
from repro.portable.pytorch.mode.exact import NAMESPACES, base, is_exact, is_guarded

DEFINITIONS = (
    "arithmetic",
    "products",
    "sums",
    "functions",
    "convolution",
    "normalization",
    "softmax",
    "indexing",
    "random",
    "sampling",
    "decompositions",
    "overrides",
)
"""The files of this folder that define operations."""
BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")

_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


class Registration:
    """All kernels of the mode, from now on until close()."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self.allowed = allowed
        self.libraries: dict[str, torch._C._DispatchModule] = {}
        self.known: set[str] = set()
        load()
        self.scan()

    def scan(self) -> None:
        """Registers kernels for operations that are new."""
        for full in torch._C._dispatch_get_all_op_names():
            if full not in self.known:
                self.known.add(full)
                self._register(full)

    def close(self) -> None:
        """PyTorch's own kernels, as before."""
        for library in self.libraries.values():
            library.reset()

    def _register(self, full: str) -> None:
        space, _, name = full.partition("::")
        if space in NAMESPACES:
            return
        found = None
        if space == "aten":
            operation = overload(full)
            definition = None if operation is None else variants.definition(operation, name)
            if base(name) in dispatch.specials:
                found = dispatch.specials[base(name)](operation, name)
            elif definition is not None:
                found = dispatch.kernel(operation, name, definition)
            elif is_guarded(name):
                found = dispatch.guard(operation, name)
            elif is_exact(name) or operation is None or operation.is_view:
                return
        if found is None:
            if _has_kernel(full, "CompositeImplicitAutograd") or not any(_has_kernel(full, key) for key in BACKENDS):
                return
            if dispatch.allowed_name(full) in self.allowed:
                found = dispatch.passage(overload(full), full)
            else:
                found = dispatch.refusal(overload(full), name if space == "aten" else full)
        if _has_kernel(full, "BackendSelect"):
            return
        if space not in self.libraries:
            self.libraries[space] = torch._C._dispatch_library("IMPL", space, "", __file__, 0)
        self.libraries[space].impl(name, "BackendSelect", found, True)


@cache
def load() -> None:
    """Imports the definitions."""
    for file in DEFINITIONS:
        importlib.import_module(f"repro.portable.pytorch.mode.{file}")


def overload(full: str) -> OpOverload | None:
    """The operation of a name of the dispatcher; None where Python cannot call it."""
    space, _, rest = full.partition("::")
    name, _, kind = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), name), kind or "default")
    except (AttributeError, RuntimeError):
        return None
