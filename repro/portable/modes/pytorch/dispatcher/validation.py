"""Checks of arguments, which are PyTorch's own.

A definition might compute what PyTorch refuses: an axis that is not there, two types of numbers, shapes that do not fit. So
PyTorch's kernel for tensors without numbers (`meta`) is given the first arguments of each kind. Where it raises an error, and
where types differ, which it does not look at, PyTorch's own kernel is called with copies of them: its error is the program's.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

LIMIT = 20_000
"""The most kinds of arguments that are remembered."""

_seen: set[Any] = set()


def is_checked(operation: OpOverload) -> bool:
    """True if arguments of an operation are checked.

    Not those of a draw, which PyTorch's kernel would make twice, and not those of a gradient, which are results of
    definitions: the statistics of a norm of halves are float32, as on a GPU, and PyTorch's kernel on a CPU has halves.
    """
    name = operation._schema.name
    return (
        name.startswith("aten::") and "backward" not in name and torch.Tag.nondeterministic_seeded not in operation.tags
    )


def check(
    operation: OpOverload, own: Callable[..., Any], keys: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """PyTorch's error where there is one; `own` redispatches to its kernels."""
    kind = (operation, *map(_kind, arguments), *((name, _kind(each)) for name, each in options.items()))
    if kind in _seen:
        return
    if not _may_pass(operation, arguments, options):
        own(keys, *map(_copy, arguments), **{name: _copy(each) for name, each in options.items()})
    if len(_seen) >= LIMIT:
        _seen.clear()
    _seen.add(kind)


def _may_pass(operation: OpOverload, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    types = {each.dtype for each in (*arguments, *options.values()) if isinstance(each, Tensor)}
    if sum(dtype.is_floating_point for dtype in types) > 1:
        return False
    try:
        operation(*map(_without_numbers, arguments), **{name: _without_numbers(each) for name, each in options.items()})
    except NotImplementedError:
        return True
    except Exception:  # whatever the kernel has against them, or they are none for it
        return False
    return True


def _kind(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.shape, argument.dtype
    if isinstance(argument, (list, tuple)):
        return tuple(map(_kind, argument))
    if isinstance(argument, float):
        return float, argument > 0, argument < 0, argument > 1
    return argument if argument is None or isinstance(argument, (int, str, torch.dtype)) else type(argument)


def _without_numbers(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype, device="meta")
    return type(argument)(map(_without_numbers, argument)) if isinstance(argument, (list, tuple)) else argument


def _copy(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.clone()
    return type(argument)(map(_copy, argument)) if isinstance(argument, (list, tuple)) else argument
