"""Functions that a forward calls, seen once.

`convert` sees the modules of a model. What its own containers call in their forward is seen when they are called for the
first time in training and for the first time in evaluation: by a mode that PyTorch shows every operation.
"""

import math
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from repro.portable.arguments import refuse
from repro.portable.library.pytorch.modules import Portable

MOVING = {
    *("_local_scalar_dense", "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "arange", "cat", "clone"),
    *("constant_pad_nd", "detach", "diagonal", "empty", "empty_like", "empty_strided", "eye", "fill", "flip", "full"),
    *("full_like", "lift", "lift_fresh", "masked_select", "new_empty", "new_empty_strided", "new_full", "new_ones"),
    *(
        "new_zeros",
        "ones",
        "ones_like",
        "permute",
        "pixel_shuffle",
        "pixel_unshuffle",
        "roll",
        "rot90",
        "scalar_tensor",
    ),
    *("select", "slice", "split", "split_with_sizes", "squeeze", "stack", "t", "transpose", "tril", "triu", "unbind"),
    *("unsafe_split", "unsqueeze", "view", "zero", "zeros", "zeros_like"),
}
"""Operations that compute no number."""
REPEATING = {"as_strided", "expand", "gather", "index", "index_select", "repeat", "unfold"}
"""Operations that compute no number, but the gradient of a number that they take twice is a sum."""
EXACT = {
    *("abs", "add", "argmax", "argmin", "ceil", "clamp", "clamp_max", "clamp_min", "copy", "div", "eq", "equal"),
    *("floor", "ge", "gt", "hardtanh", "isinf", "isnan", "le", "leaky_relu", "lt", "masked_fill", "max", "maximum"),
    *("min", "minimum", "mul", "ne", "neg", "nonzero", "relu", "round", "rsub", "sign", "sub", "threshold", "trunc"),
    "where",
}
"""Operations that compare, or whose every result IEEE 754 defines."""


def watch_calls(module: nn.Module) -> None:
    """Watches which functions a module's forward calls: UsageError from its first call where that has no portable form."""
    if not any(map(is_watching, module._forward_hooks.values())):
        _CallWatcher(module)


def is_watching(hook: Any) -> bool:
    """True if a hook of a module is one of these."""
    return isinstance(getattr(hook, "__self__", None), _CallWatcher)


class _CallWatcher:
    """Hooks of a module that watch which functions its forward calls, until they have seen it in training and in evaluation."""

    def __init__(self, module: nn.Module) -> None:
        self.seen: set[bool] = set()
        before = module.register_forward_pre_hook(self.before)
        after = module.register_forward_hook(self.after, always_call=True)
        self.hooks = before.id, after.id  # no handles: these are not copied with the module

    def before(self, module: nn.Module, _: Any) -> None:
        if module.training in self.seen:
            return
        if torch.compiler.is_compiling() or callable(torch._C._dynamo.eval_frame.get_eval_frame_callback()):
            mode = "training" if module.training else "evaluation"
            remedy = f"call it once in {mode} before it is compiled"
            raise refuse(type(module).__name__, f"under torch.compile nobody sees which functions it calls; {remedy}")
        if _mode() is None:
            _Mode(module).__enter__()

    def after(self, module: nn.Module, _: Any, result: Any) -> None:
        mode = None if torch.compiler.is_compiling() else _mode()
        if mode is None:
            return
        mode.watchers.append((self, module, module.training))
        if mode.module is module:
            mode.__exit__(None, None, None)
            if result is not None:  # as where the forward failed
                mode.close()

    def close(self, module: nn.Module, training: bool) -> None:
        """Close a forward pass that calls portable functions alone."""
        self.seen.add(training)
        if len(self.seen) == 2:
            module._forward_pre_hooks.pop(self.hooks[0], None)
            for hooks in (module._forward_hooks, module._forward_hooks_always_called):
                hooks.pop(self.hooks[1], None)


def _mode() -> "_Mode | None":
    if not torch._C._len_torch_dispatch_stack():
        return None
    return next((mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, _Mode)), None)


class _Mode(TorchDispatchMode):
    """The dispatch mode of the outermost module that is observed."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.watchers: list[tuple[_CallWatcher, nn.Module, bool]] = []
        self.refused: dict[str, None] = {}

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple = (), options: Any = None) -> Any:
        options = options or {}
        why = _obstacle(function, arguments, options)
        result = function(*arguments, **options)
        random = torch.Tag.nondeterministic_seeded in function.tags
        if random or (why and any(map(_is_floating, _tensors((*arguments, *options.values(), result))))):
            place = self._place(sys._getframe(1))
            if place:
                self.refused[f"{why or function.overloadpacket.__name__} at {place}"] = None
        return result

    def _place(self, frame: FrameType | None) -> str | None:
        """The line of the program that called it; None where a portable function or module did."""
        place = None
        while frame is not None:
            name, own = frame.f_globals.get("__name__", ""), frame.f_locals.get("self")
            if name.startswith("repro.portable.") or isinstance(own, Portable):
                return None
            if own is self.module and frame.f_code.co_name == "_call_impl":
                break
            if place is None and name.partition(".")[0] != "torch":
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return place or "a line unknown"

    def close(self) -> None:
        """UsageError where functions were called that have no portable form."""
        if self.refused:
            remedy = "call those of repro.portable.library.pytorch.functional, or derive the module from Portable"
            what = f"it calls {', '.join(self.refused)}, which may have other bits elsewhere"
            raise refuse(type(self.module).__name__, f"{what}; {remedy}")
        for watcher, module, training in self.watchers:
            watcher.close(module, training)


def _obstacle(function: Any, arguments: tuple, options: dict[str, Any]) -> str | None:
    """The name of an operation on floating numbers, or of its part, that has no portable form; None if it has one."""
    name = function.overloadpacket.__name__.removesuffix("_")
    tensors = [each for each in _tensors((*arguments, *options.values())) if each.is_floating_point()]
    differentiated = [each for each in tensors if each.requires_grad and torch.is_grad_enabled()]
    summed = f"{name} (whose gradient is a sum)"
    if function.namespace != "aten":
        return name
    if name in MOVING:
        whole = name != "arange" or all(float(each).is_integer() for each in arguments)  # else a step is rounded
        return None if whole else name
    if name in REPEATING:
        return summed if differentiated and not _once(name, arguments) else None
    if name not in EXACT or options.get("alpha", 1) != 1 or (name == "div" and not _is_quotient(arguments[1])):
        return name
    shape = torch.broadcast_shapes(*(each.shape for each in tensors)) if len(tensors) > 1 else None
    return summed if shape and any(each.shape != shape for each in differentiated) else None


def _once(name: str, arguments: tuple) -> bool:
    """True if an operation takes each number once at most."""
    if name == "index":
        return all(each is None or each.dtype == torch.bool for each in arguments[1])
    return name == "expand" and arguments[0].numel() == math.prod(map(abs, arguments[1]))


def _is_quotient(divisor: Any) -> bool:
    """True if a division is one on every device: a GPU multiplies by the reciprocal of a constant."""
    if isinstance(divisor, Tensor):
        return divisor.dim() > 0
    return math.frexp(divisor)[0] in (0.5, -0.5)


def _tensors(given: Any) -> Iterator[Tensor]:
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (tuple, list)):
            yield from _tensors(each)


def _is_floating(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
