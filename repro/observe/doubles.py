"""A step of PyTorch again in float64, operation by operation.

Each operation is called as it was called, and then with a float64 copy of each floating array. A copy belongs to memory, not
to a tensor: so views are right by themselves, and what is written in place. Drawn numbers, as the mask of dropout, are not
drawn again. They and all whole numbers and bools are those of the step, so both computations take the same ways. A cast to a
shorter type stays in float64.

Where an operation has no float64 form, what it gives has no copy, nor has anything that is computed from that.
"""

import sys
from collections.abc import Iterator
from typing import Any, Optional

from . import dispatch, recorder, without_double

NAMESPACES = ("aten", "prims", "torchvision")  # operations of others may do more than compute
LEFT_OUT = (
    *("set_", "resize_", "resize_as_", "_resize_output_"),  # they change which memory a tensor has
    "_amp_foreach_non_finite_check_and_unscale_",  # after the last backward pass: gradients have been written
)
DRAWN = ("bernoulli", "rand", "normal", "uniform", "exponential", "geometric", "cauchy", "log_normal")
LARGE = 1 << 20  # numbers; of larger memory only the part that a tensor shows is copied, if that is much smaller
PURGED = 256  # operations after which the copies of memory that was freed are forgotten

OTHER_MODE = "the program has a dispatch mode of its own: its modules are not computed in float64"
NO_COPY = "{} is not computed in float64: what depends on it has no exact values"

Copied = tuple[tuple[Any, ...], dict[str, Any]]  # args and kwargs of an operation


class MissingError(Exception):
    """A tensor has no copy."""


class Region:
    """A part of some memory, counted in real numbers, and its copy in one dimension; None where there is no right one."""

    def __init__(self, begin: int, end: int, copy: Any):
        self.begin, self.end, self.copy = begin, end, copy


class Doubles:
    """The float64 copies of a step."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.mode: Any = None
        self.on = False
        self.clear()

    def clear(self) -> None:
        """Forgets all copies."""
        self.memory: dict[int, tuple[Any, list[Region]]] = {}  # by the address of a storage; a weak reference to it
        self.opaque: dict[int, tuple[Any, Any]] = {}  # the same of bytes that an operation hands to its backward pass
        self.calls = 0

    def begin(self) -> None:
        """Computes in float64 from here on, in this thread, until `end`."""
        if self.on or not recorder.has_native_numerics():
            return
        if self.mode is None:
            self.mode = dispatch.mode(self.call)
        if not self.torch._C._len_torch_dispatch_stack():
            self.mode.__enter__()
        elif not self.is_innermost():
            recorder.note(OTHER_MODE)
            return
        self.on = True

    def end(self) -> None:
        """Ends it. Where a mode of the program lies on top, or in another thread, ours stays and does nothing."""
        if self.on:
            self.stop()
            if self.is_innermost():
                self.mode.__exit__(None, None, None)

    def stop(self) -> None:
        """Forgets all, also in a forked process, which takes no part in the step."""
        self.on = False
        self.clear()

    def is_innermost(self) -> bool:
        modes = sys.modules["torch.utils._python_dispatch"]
        return bool(self.torch._C._len_torch_dispatch_stack()) and modes._get_current_dispatch_mode() is self.mode

    def call(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Calls an operation, and computes the copies of what it gives."""
        if not self.on or recorder.is_busy():
            return operation(*args, **kwargs)
        copied = self.before(operation, args, kwargs)
        result = operation(*args, **kwargs)
        if copied is not None:
            self.after(operation, args, kwargs, copied, result)
        return result

    @recorder.never_raise
    def before(self, operation: Any, args: Any, kwargs: Any) -> Optional[tuple[Optional[Copied]]]:
        """The arguments in float64, as they are before the call: (None,) where one has no copy; None if there are none."""
        if dispatch.is_view(operation) or dispatch.name(operation) in LEFT_OUT:
            return None
        if not any(map(_is_floating, self.tensors((args, kwargs)))):
            return None
        self.purge()
        try:
            return ((self.copied(args), self.copied(kwargs)),)
        except MissingError:
            return (None,)

    @recorder.never_raise
    def after(self, operation: Any, args: Any, kwargs: Any, copied: tuple[Optional[Copied]], result: Any) -> None:
        """Computes the copies of what was returned. What was written in place is computed with it."""
        arguments = getattr(getattr(operation, "_schema", None), "arguments", ())
        given = {one.name: one.default_value for one in arguments}
        given.update(zip(given, args), **kwargs)
        written = [*self.tensors([given[one.name] for one in arguments if one.alias_info and one.alias_info.is_write])]
        returned = [*self.tensors(_fresh(operation, result))]
        if not any(map(_is_floating, [*written, *returned])):
            return
        if not self.draws(operation, given):
            results = self.computed(operation, *copied)
        elif dispatch.name(operation) == "native_dropout" and copied[0]:
            results = [copied[0][0][0] * returned[1] / (1 - given["p"]), returned[1]]
        else:
            results = [*written, *returned] if dispatch.name(operation).startswith(DRAWN) else None
            returned = [*written, *returned]
        if results is None:
            if copied[0]:  # it is the first
                recorder.note(NO_COPY.format(operation))
            returned, results = [*written, *returned], [None] * len([*written, *returned])
        for tensor, values in zip(returned, results):
            self.set(tensor, values)

    def draws(self, operation: Any, given: dict[str, Any]) -> bool:
        """True for an operation that draws random numbers. Attention draws none if none of it is dropped."""
        if self.torch.Tag.nondeterministic_seeded not in getattr(operation, "tags", ()):
            return False
        return bool(given.get("dropout_p", given.get("dropout", 1)))

    def computed(self, operation: Any, copied: Optional[Copied]) -> Optional[list[Any]]:
        """The tensors that an operation returns in float64; None where that cannot be computed."""
        if copied is None or getattr(operation, "namespace", "") not in NAMESPACES:
            return None
        args, kwargs = copied
        names = [argument.name for argument in operation._schema.arguments]
        args = tuple(False if name == "half_to_float" else value for name, value in zip(names, args))
        try:
            others = without_double.results(self.torch, dispatch.name(operation), {**dict(zip(names, args)), **kwargs})
            if others is not None:
                return others
            return [*self.tensors(_fresh(operation, operation(*args, **kwargs)))]
        except Exception:
            return None

    def copied(self, value: Any) -> Any:
        """An argument, with a copy in the place of each floating array, and of each dtype of these."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self.copy(value) if _is_floating(value) else self.opaque.get(_address(value), (None, value))[1]
        if isinstance(value, (list, tuple)):
            return type(value)([self.copied(one) for one in value])
        if isinstance(value, dict):
            return {name: self.copied(one) for name, one in value.items()}
        if isinstance(value, torch.dtype) and value.is_complex:
            return torch.complex128
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value

    def copy(self, tensor: Any) -> Any:
        """The copy of a floating tensor, as a view of that of its memory; made of its values if there is none yet.

        MissingError where there is no right one.
        """
        region = self.region(tensor)
        if region is None or region.copy is None:
            raise MissingError
        flat, unit = region.copy, 1
        if tensor.is_complex():
            flat, unit = self.torch.view_as_complex(flat.view(-1, 2)), 2
        shown = flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - region.begin // unit)
        shown = shown.conj() if tensor.is_conj() else shown
        return shown._neg_view() if tensor.is_neg() else shown

    def region(self, tensor: Any) -> Optional[Region]:
        """The region that a tensor lies in; a new one if there is none; None for a tensor without memory of its own."""
        torch = self.torch
        own = getattr(type(tensor), "__torch_dispatch__", None)
        if str(tensor.layout) != "torch.strided" or own not in (None, torch.Tensor.__torch_dispatch__):
            return None
        storage, unit = tensor.untyped_storage(), 2 if tensor.is_complex() else 1
        begin = tensor.storage_offset() * unit
        end = begin + (1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))) * unit
        end = end if tensor.numel() else begin
        _, regions = self.memory.setdefault(storage._cdata, (self.weak(storage), []))
        for region in regions:
            if region.begin <= begin and end <= region.end:
                return region
        dtype = tensor.dtype.to_real()
        count = storage.nbytes() // dtype.itemsize
        if count <= max(LARGE, 4 * (end - begin)):
            begin, end = 0, count
        values = torch.empty(0, dtype=dtype, device=tensor.device).set_(storage)[begin:end]
        regions.append(Region(begin, end, values.to(torch.float64, copy=True)))
        return regions[-1]

    def set(self, tensor: Any, values: Any) -> None:
        """Sets the copy of a tensor; None: it has none."""
        if tensor.dtype is self.torch.uint8 and values is not None:
            self.opaque[_address(tensor)] = self.weak(tensor.untyped_storage()), values
        region = self.region(tensor) if _is_floating(tensor) else None
        if region is None:
            return
        if values is None or values.shape != tensor.shape:
            region.copy = None
        elif region.copy is not None:
            self.copy(tensor).copy_(values)

    def weak(self, storage: Any) -> Any:
        return sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(storage)

    def purge(self) -> None:
        """Forgets, now and then, the copies of memory that was freed."""
        self.calls += 1
        if self.calls % PURGED == 0:
            for known in (self.memory, self.opaque):
                for address in [address for address, (reference, _) in known.items() if reference.expired()]:
                    del known[address]

    def tensors(self, value: Any) -> Iterator[Any]:
        """Yields the tensors in nested containers, in their order."""
        if isinstance(value, self.torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from self.tensors(one)
        elif isinstance(value, dict):
            yield from self.tensors([*value.values()])


def _is_floating(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.is_complex())


def _address(tensor: Any) -> int:
    """The address of the storage of a tensor; 0 without one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:
        return 0


def _fresh(operation: Any, result: Any) -> list[Any]:
    """What an operation has returned, without the arguments that it has written to."""
    returns = getattr(getattr(operation, "_schema", None), "returns", ())
    results = [result] if len(returns) == 1 or not isinstance(result, (list, tuple)) else [*result]
    if len(returns) != len(results):
        return results
    return [one for one, about in zip(results, returns) if about.alias_info is None]
