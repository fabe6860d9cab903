"""Kernels of the mode, below PyTorch's autograd.

They are registered at the dispatch key BackendSelect, which lies below Autograd, Autocast and what Python may watch, and
right above the kernels of each device. An operation that is exact as PyTorch has it is not registered: it costs nothing.
Threads, subclasses of tensors and callers in C++ come by here, too.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import OpOverload

from repro.portable.compiler.pytorch import natively
from repro.portable.modes.pytorch.dispatcher.refusal import allowed_name, refuse
from repro.portable.modes.pytorch.dispatcher.tables import Definition, Function, takes_complex, takes_sparse
from repro.portable.modes.pytorch.dispatcher.types import scalar
from repro.portable.modes.pytorch.dispatcher.validation import check, is_checked

KEY = DispatchKey.BackendSelect
BELOW = torch._C._dispatch_keyset_full_after(KEY)
KEYS = torch._C.DispatchKeySet(KEY)
WITHOUT = torch._C._ExcludeDispatchKeyGuard
"""WITHOUT(KEYS) is a context in which what is called goes straight to a device's kernels; no tensor can be made in it."""
DEVICES = {"cpu", "cuda"}


class _Thread(threading.local):
    inside = False
    """True while a definition runs: what it calls is PyTorch's own."""
    before = False
    """True if a definition ran when the garbage collector began."""
    collector: AbstractContextManager[Any] = nullcontext()
    """The context of what the garbage collector calls."""


thread = _Thread()
counts: Counter[str] = Counter()
"""The number of portable calls of each operation."""
ran_natively: Counter[str] = Counter()
"""The number of native calls of each operation."""
devices_checked: set[str] = set()
"""Types of devices that passed the self-check."""


def tensors_in(arguments: Any) -> Iterator[Tensor]:
    """Tensors among arguments, and in lists of them."""
    for each in arguments:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from tensors_in(each)


FLOATING, OTHER, REFUSED = range(3)
KINDS = {
    each: FLOATING if each.is_floating_point else REFUSED if each.is_complex or "q" in str(each) else OTHER
    for each in vars(torch).values()
    if isinstance(each, torch.dtype)
}
"""The role of each type of numbers for the mode."""


COMPLEX = {torch.complex64, torch.complex128}


class ComplexNumbersError(Exception):
    """An operation has complex numbers, and a definition for them: see with_other."""


class SparseTensorError(Exception):
    """An operation has a sparse tensor, and a definition for it: see with_other."""


def needs_portable_kernel(name: str, arguments: tuple[Any, ...], options: Mapping[str, Any], integers: bool) -> bool:
    """True if numbers are computed that may differ; RefusedError for numbers that have no portable form."""
    needed = False
    if options:
        needed = any(each.__class__ is torch.dtype and each.is_floating_point for each in options.values())
        arguments = (*arguments, *options.values())
    for each in arguments:
        if isinstance(each, Tensor):
            kind = KINDS[each.dtype]
            if not each.is_cpu and each.device.type not in devices_checked:
                if each.device.type not in DEVICES:
                    return False
                check_device(each.device)
            if kind == REFUSED or each.layout is not torch.strided:
                raise _other(name, each)
            needed = needed or integers or kind == FLOATING
        elif isinstance(each, (list, tuple)) and each and not isinstance(each[0], (int, float)):
            if any(tensor.device.type not in DEVICES for tensor in tensors_in(each)):
                return False
            needed = needs_portable_kernel(name, tuple(tensors_in(each)), {}, integers) or needed
    return needed


def has_numbers(arguments: tuple[Any, ...]) -> bool:
    """True if floating or complex numbers are computed, in whatever layout."""
    types = [each for each in arguments if isinstance(each, torch.dtype)]
    types += [each.dtype for each in tensors_in(arguments) if each.device.type in DEVICES]
    return any(each.is_floating_point or each.is_complex for each in types)


def _other(name: str, tensor: Tensor) -> Exception:
    """The error by which complex numbers and sparse tensors come to a definition of their own, where there is one."""
    if tensor.layout is torch.strided:
        return ComplexNumbersError() if tensor.dtype in COMPLEX and name in takes_complex else _refused(name, tensor)
    return SparseTensorError() if KINDS[tensor.dtype] == FLOATING and name in takes_sparse else _refused(name, tensor)


def _refused(name: str, tensor: Tensor) -> Exception:
    if tensor.is_complex():
        remedy = "compute with the real and imaginary parts"
        return refuse(name, "complex numbers have no portable form", remedy, [tensor])
    kind = "a quantized tensor" if tensor.is_quantized else f"a tensor of layout {tensor.layout}"
    return refuse(name, f"{kind} has no portable form", "use a dense tensor", [tensor])


def self_check(device: torch.device) -> None:
    """The self-check of a device. The mode puts it here: it computes with definitions, and these are made with this file."""
    raise RuntimeError(f"{device}: the mode is off")


def check_device(device: torch.device) -> None:
    """The self-check of a device: UsageError where it fails.

    It is made with one thread: OpenMP's others do not survive a fork, and a program may fork after `import torch`.
    """
    devices_checked.add(device.type)
    threads = torch._C.get_num_threads()
    torch._C.set_num_threads(1)
    try:
        with_portable_ops(self_check)(device)
    except BaseException:
        devices_checked.discard(device.type)
        raise
    finally:
        torch._C.set_num_threads(threads)


def kernel(operation: OpOverload, name: str, definition: Definition) -> Function:
    """The function that the dispatcher calls for an operation with a definition."""
    function, composed, integers = definition.function, definition.composed, definition.integers
    redispatch, checked = operation._handle.redispatch_boxed, is_checked(operation)
    own = with_native_ops(redispatch)
    tensors = [index for index, each in enumerate(operation._schema.arguments) if str(each.type) == "Tensor"]

    def portable(keys: Any, *arguments: Any, **options: Any) -> Any:
        if thread.inside or not needs_portable_kernel(name, arguments, options, integers):
            return redispatch(keys & BELOW, *_without_numbers(arguments, tensors), **options)
        if checked:
            check(operation, own, keys & BELOW, arguments, options)
        counts[name] += 1
        if composed:
            return function(*arguments, **options)
        thread.inside = True
        try:
            return function(*arguments, **options)
        finally:
            thread.inside = False

    return portable


def _without_numbers(arguments: tuple[Any, ...], tensors: list[int]) -> tuple[Any, ...]:
    """Arguments with tensors in the place of Python's numbers, where PyTorch's kernels take none."""
    missing = [index for index in tensors if index < len(arguments) and not isinstance(arguments[index], Tensor)]
    if not missing:
        return arguments
    like, changed = next(tensors_in(arguments)), list(arguments)
    for index in missing:
        changed[index] = scalar(changed[index], torch.result_type(like, changed[index]))
    return tuple(changed)


def with_other(kernel: Function, name: str, definition: Definition, error: type[Exception]) -> Function:
    """A kernel that leaves what raises an error to a definition of its own. All else pays nothing for it."""
    function = with_native_ops(definition.function)

    def either(keys: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return kernel(keys, *arguments, **options)
        except error:
            counts[name] += 1
        return function(*arguments, **options)

    return either


def guard(operation: OpOverload, name: str) -> Function:
    """The function that the dispatcher calls for an operation that is exact for real numbers alone."""
    redispatch = operation._handle.redispatch_boxed

    def exact(keys: Any, *arguments: Any, **options: Any) -> Any:
        if not thread.inside:
            needs_portable_kernel(name, arguments, options, integers=False)
        return redispatch(keys & BELOW, *arguments, **options)

    return exact


def refusal(operation: OpOverload, name: str) -> Function:
    """The function that the dispatcher calls for an operation without a portable form; integers pass that give integers."""
    redispatch = operation._handle.redispatch_boxed

    def refused(keys: Any, *arguments: Any, **options: Any) -> Any:
        if thread.inside:
            return redispatch(keys & BELOW, *arguments, **options)
        needed, values = (
            needs_portable_kernel(name, arguments, options, integers=False),
            (*arguments, *options.values()),
        )
        result = None if needed else redispatch(keys & BELOW, *arguments, **options)
        if needed or has_numbers((result,)):
            raise refuse(name, "it has no portable form", tensors=tensors_in(values))
        return result

    return refused


def refusal_of_all(name: str) -> Function:
    """The function that the dispatcher calls for an operation that computes by itself and cannot be called from here."""

    def refused(*arguments: Any, **options: Any) -> Any:
        raise refuse(name, "it has no portable form", tensors=tensors_in((*arguments, *options.values())))

    return refused


def of_sparse(name: str, definition: Definition | None) -> Function:
    """The function that the dispatcher calls for sparse tensors, where the mode's kernel ignores layouts."""
    function = definition and with_native_ops(definition.function)

    def refused(*arguments: Any, **options: Any) -> Any:
        tensors = list(tensors_in((*arguments, *options.values())))
        if function and all(KINDS[each.dtype] == FLOATING for each in tensors):
            counts[name] += 1
            return function(*arguments, **options)
        raise _refused(name, next(each for each in tensors if each.layout is not torch.strided))

    return refused


def passage(operation: OpOverload, name: str) -> Function:
    """The function that the dispatcher calls for an operation that runs natively: PyTorch's own, which is counted."""
    redispatch = operation._handle.redispatch_boxed

    def passed(keys: Any, *arguments: Any, **options: Any) -> Any:
        if not thread.inside and has_numbers((*arguments, *options.values())):
            ran_natively[allowed_name(name)] += 1
        return redispatch(keys & BELOW, *arguments, **options)

    return passed


def with_native_ops(function: Function) -> Function:
    """A function whose operations are PyTorch's own, as those of a definition."""

    def run(*arguments: Any, **options: Any) -> Any:
        before, thread.inside = thread.inside, True
        try:
            return function(*arguments, **options)
        finally:
            thread.inside = before

    return run


def with_portable_ops(function: Function) -> Function:
    """A function whose operations are dispatched again, as those of a decomposition, also where a definition calls it."""

    def run(*arguments: Any, **options: Any) -> Any:
        before, thread.inside = thread.inside, False
        try:
            with natively.outside():
                return function(*arguments, **options)
        finally:
            thread.inside = before

    return run
