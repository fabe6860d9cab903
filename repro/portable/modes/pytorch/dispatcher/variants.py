"""Forms of a defined operation: in place, with out=, for lists of tensors.

Each follows from the form that returns a new tensor.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from repro.portable.modes.pytorch.dispatcher.tables import Definition, definitions

Table = dict[str, Definition]


def definition(operation: OpOverload, name: str, table: Table = definitions) -> Definition | None:
    """The definition of an operation in a table: its own, or one made of that of its functional form."""
    if name in table:
        return table[name]
    schema = operation._schema
    written = [argument for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    if not written:
        return None
    base = name.partition(".")[0]
    outs = sum(argument.is_out for argument in schema.arguments)
    if outs:
        given = schema.arguments[: len(schema.arguments) - outs]
        result = _functional(base, given, table) or _functional(base.removesuffix("_"), given, table)
        if result is None:
            return None
        names = [argument.name for argument in schema.arguments[-outs:]]
        return Definition(_with_out(result.function, names), result.composed, result.integers)
    if base.endswith("_"):
        result = _functional(base[:-1], schema.arguments, table)
        return result and Definition(_in_place(result.function), result.composed, result.integers)
    return None


def _functional(base: str, given: Any, table: Table) -> Definition | None:
    """The definition of the overload that takes these arguments and returns new tensors."""
    wanted = [(argument.name, str(argument.type)) for argument in given]
    for name, schema in _overloads(base):
        if name in table and [(each.name, str(each.type)) for each in schema.arguments] == wanted:
            return table[name]
    return None


@cache
def _overloads(base: str) -> list[tuple[str, Any]]:
    packet = getattr(torch.ops.aten, base, None)
    if packet is None:
        return []
    overloads = [(kind, getattr(packet, kind)._schema) for kind in packet.overloads()]
    return [(base if kind == "default" else f"{base}.{kind}", schema) for kind, schema in overloads]


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Any, *arguments: Any, **options: Any) -> Any:
        result = function(self, *arguments, **options)
        if isinstance(self, Tensor):
            return self.copy_(result)
        for old, new in zip(self, result, strict=True):
            old.copy_(new)
        return None

    return changed


def _with_out(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    def written(*arguments: Any, **options: Any) -> Any:
        outs = [options.pop(name) for name in names if name in options]
        missing = len(names) - len(outs)
        if missing:  # given by position
            outs = [*arguments[len(arguments) - missing :], *outs]
            arguments = arguments[: len(arguments) - missing]
        result = function(*arguments, **options)
        several = isinstance(result, (tuple, list))
        for out, new in zip(outs, result if several else (result,), strict=True):
            if isinstance(out, Tensor):
                fill(out, new)
            else:
                for each, one in zip(out, new, strict=True):
                    fill(each, one)
        return tuple(outs) if several else outs[0]

    return written


def fill(out: Tensor, new: Tensor) -> Tensor:
    """Fills what is given by out=, as PyTorch does it."""
    if out.shape != new.shape:
        out.resize_(new.shape)
    return out.copy_(new)
