"""Dispatch modes of PyTorch: what it asks before each operation of a thread."""

import importlib
from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Any, Any], Any]  # operation, args, kwargs


def mode(call: Call) -> Any:
    """A mode that has `call` make each call. Its class can only be made once PyTorch is there."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Mode(base):  # type: ignore[misc]
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True  # otherwise nothing would be compiled meanwhile, which gives different bits

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return call(func, args, kwargs or {})

    return Mode()


def name(operation: Any) -> str:
    """`copy_` of `aten::copy_`; nothing of an operator of higher order, which has no schema."""
    schema = getattr(operation, "_schema", None)
    return "" if schema is None else str(schema.name).split("::")[-1]


def is_view(operation: Any) -> bool:
    """True if an operation returns a view of its input's memory."""
    returns = getattr(getattr(operation, "_schema", None), "returns", ())
    return any(result.alias_info is not None and not result.alias_info.is_write for result in returns)
