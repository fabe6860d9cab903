"""Registration of the mode's kernels.

Each operation of the dispatcher is exact, guarded, defined or refused.
"""

import warnings
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from repro.portable.modes.common import loading
from repro.portable.modes.common.refusal import unknown_operation
from repro.portable.modes.pytorch.dispatcher import dispatch, exact, tables, variants
from repro.portable.modes.pytorch.dispatcher.exact import base
from repro.portable.modes.pytorch.dispatcher.refusal import allowed_name

DEFINITIONS = (
    "arithmetic",
    "conversions",
    "remainders",
    "choices",
    "factories",
    "products",
    "sums",
    "functions",
    "gammas",
    "activations",
    "convolution",
    "normalization",
    "softmax",
    "indexing",
    "scatter",
    "embedding",
    "scans",
    "distances",
    "losses",
    "likelihood",
    "ctc",
    "groups",
    "linalg",
    "matrix_functions",
    "sorting",
    "pooling",
    "quantization",
    "detection",
    "interpolation",
    "sampling",
    "random",
    "collectives",
    "distributions",
    "decompositions",
    "linear",
    "attention",
    "optimizers",
    "recurrent",
    "complexes",
    "fourier",
    "sparse",
)
"""The files of operations/ that define operations."""
COMPOSITE = ("CompositeImplicitAutograd", "FuncTorchBatchedDecomposition")
"""The keys at which PyTorch decomposes an operation: of tensors, and of those that vmap makes."""
EXACT, GUARDED, SPECIAL, DEFINED, REPLACED, COMPOSED, REFUSED = KINDS = (
    *("exact", "guarded", "special", "defined", "replaced"),
    *("composed", "refused"),
)
"""The role of an operation for the mode: README.md says more."""

SPARSE = ("SparseCPU", "SparseCUDA", "SparseCsrCPU", "SparseCsrCUDA")

_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


class Registration:
    """All kernels of the mode, from now on until close()."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self.allowed = checked(allowed)
        self.libraries: dict[str, torch._C._DispatchModule] = {}
        self.known: set[str] = set()
        load()
        self.scan()

    def scan(self) -> None:
        """Registers kernels for operations that are new."""
        with warnings.catch_warnings():  # PyTorch up to 2.11 warns that composite operations have a second one
            warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
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
        kind = kind_of(full)
        allowed = allowed_name(full) in self.allowed
        is_composite = _has_kernel(full, "CompositeImplicitAutograd")
        if kind == REPLACED or (kind == REFUSED and is_composite and not allowed):
            kernel = tables.replacements.get(name) or dispatch.refusal_of_all(full.removeprefix("aten::"))
            for key in COMPOSITE:
                self._library(space).impl(name, key, kernel, False)
            return
        result = self._with_others(full, self._kernel(full, kind, allowed))
        if result is None or (_has_kernel(full, "BackendSelect") and kind != SPECIAL):
            return
        self._library(space).impl(name, "BackendSelect", result, True)
        if kind == SPECIAL and not allowed:
            kernel = dispatch.of_sparse(name, _other_definition(full, tables.sparse_definitions))
            for key in SPARSE:
                if _has_kernel(full, key):
                    self._library(space).impl(name, key, kernel, False)

    def _library(self, space: str) -> Any:
        if space not in self.libraries:
            self.libraries[space] = torch._C._dispatch_library("IMPL", space, "", __file__, 0)
        return self.libraries[space]

    def _kernel(self, full: str, kind: str, allowed: bool) -> tables.Function | None:
        """The kernel of an operation; None for PyTorch's own."""
        if kind in (EXACT, COMPOSED):
            return None
        operation, name = overload(full), full.removeprefix("aten::")
        if operation is None:
            return dispatch.refusal_of_all(name)
        if allowed:
            return dispatch.passage(operation, full)
        if kind == SPECIAL:
            return tables.specials[base(name)](operation, name)
        definition = variants.definition(operation, name)
        if definition is not None:
            return dispatch.kernel(operation, name, definition)
        return (dispatch.guard if kind == GUARDED else dispatch.refusal)(operation, name)

    def _with_others(self, full: str, kernel: tables.Function | None) -> tables.Function | None:
        """A kernel that complex numbers and sparse tensors pass, too, where they have a definition."""
        name = full.removeprefix("aten::")
        for table, known, error in OTHERS:
            definition = _other_definition(full, table)
            if kernel is not None and definition is not None and allowed_name(full) not in self.allowed:
                known.add(name)
                kernel = dispatch.with_other(kernel, name, definition, error)
        return kernel


OTHERS = (
    (tables.complex_definitions, tables.takes_complex, dispatch.ComplexNumbersError),
    (tables.sparse_definitions, tables.takes_sparse, dispatch.SparseTensorError),
)
"""Definitions of what others do not take, the names that have one, and the error that leads to them."""


def _other_definition(full: str, table: variants.Table) -> tables.Definition | None:
    operation = overload(full)
    return operation and variants.definition(operation, full.removeprefix("aten::"), table)


def kind_of(full: str) -> str:
    """The role of an operation. An unknown one is refused, whichever devices and layouts have a kernel."""
    space, name, operation = full.partition("::")[0], full.removeprefix("aten::"), overload(full)
    if name in tables.replacements:
        return REPLACED
    if base(name) in tables.specials:
        return SPECIAL
    if operation is not None and variants.definition(operation, name) is not None:
        return DEFINED
    if exact.is_guarded(name):
        return GUARDED
    if exact.is_exact(name) or (space == "aten" and operation is not None and operation.is_view):
        return EXACT
    if exact.is_raw(name):
        return REFUSED
    made_of_others = (
        exact.is_window(name)
        or space in exact.NAMESPACES
        or _has_kernel(full, "CompositeImplicitAutograd")
        or (space not in ("aten", *exact.KERNELS) and is_python(full))
    )
    if made_of_others:
        return COMPOSED
    return DEFINED if any(_other_definition(full, table) for table, *_ in OTHERS) else REFUSED


def checked(names: frozenset[str]) -> frozenset[str]:
    """Names as allowed_name() has them. UsageError for one that is no operation's.

    An operation of another library is there only when that has been imported.
    """
    allowed = frozenset(map(allowed_name, names))
    known = {allowed_name(full) for full in torch._C._dispatch_get_all_op_names() if full.startswith("aten::")}
    for name in sorted(allowed - known):
        if "::" not in name:
            raise unknown_operation(name, f"PyTorch {torch.__version__}", known)
    return allowed


@cache
def load() -> None:
    """Imports the definitions."""
    loading.load(__package__, DEFINITIONS)


def is_python(full: str) -> bool:
    """True if all kernels of an operation were registered in Python, where they are made of other operations."""
    kernels = [line for line in torch._C._dispatch_dump(full).splitlines() if ": registered at " in line]
    return all(".py:" in line for line in kernels)


def overload(full: str) -> OpOverload | None:
    """The operation of a name of the dispatcher; None where Python cannot call it."""
    space, _, rest = full.partition("::")
    name, _, kind = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), name), kind or "default")
    except (AttributeError, RuntimeError):
        return None
