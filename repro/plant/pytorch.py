"""Parts of a PyTorch training.

They are looked at right before the first step of each optimizer, before the observer looks: what the observer writes down
is what the step gets.
"""

import functools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

from ..observe import copies, modules, optimizers, scalars
from ..observe import pytorch as observed
from . import controls, generators, loaders
from .controls import Part
from .values import Array, Items

OPTIMIZER = "torch.optim.optimizer"
EMPTY = "empty"  # a parameter for which an optimizer has no state yet


def after_torch(torch: Any) -> None:
    """Waits for the first step of each optimizer."""
    if not hasattr(sys.modules[OPTIMIZER], "register_optimizer_step_pre_hook"):
        return
    moments = Moments(torch)
    hook = controls.never_raise(torch.no_grad()(moments.before_step))
    sys.modules[OPTIMIZER].register_optimizer_step_pre_hook(hook)
    loaders.watch(torch)


class Moments:
    """The optimizers that have stepped."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.stepped: list[Any] = []  # held, so that no other object gets the identity of one

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Meets the moment before the first step of an optimizer."""
        control = controls.active
        if control is None or any(optimizer is one for one in self.stepped):
            return
        watcher = observed.observer
        if watcher is not None and not watcher.changes_weights(optimizer):  # GradScaler skips it
            return
        self.stepped.append(optimizer)
        index = len(self.stepped) - 1
        if index >= observed.MAX_OPTIMIZERS or not control.is_first(f"step {index}"):
            return
        parts = of_optimizer(self.torch, optimizer, index)
        if not index:
            parts = {**every_generator(self.torch), **parts, **of_module(self.torch, optimizer)}
        control.meet(f"step {index}", parts)


def every_generator(torch: Any) -> dict[str, Part]:
    """The random generators: Python's, NumPy's, PyTorch's of each device."""
    parts = generators.parts()
    parts["generator `torch`"] = of_generator(torch, torch.default_generator)
    cuda = torch.cuda
    for index, generator in enumerate(cuda.default_generators if cuda.is_initialized() else ()):
        parts[f"generator `cuda:{index}`"] = of_generator(torch, generator)
    return parts


def of_generator(torch: Any, generator: Any) -> Part:
    """A generator of PyTorch."""
    return Part(
        lambda: {"state": array(generator.get_state())},
        lambda items: generator.set_state(tensor(torch, items["state"])),
    )


def of_optimizer(torch: Any, optimizer: Any, index: int) -> dict[str, Part]:
    """The slots, the options of the groups, the schedules, and the scaler of the loss."""
    of = "" if not index else f" of optimizer {index}"
    parts = {
        f"optimizer's slots{of}": Part(
            functools.partial(_read_slots, torch, optimizer), functools.partial(_write_slots, torch, optimizer)
        ),
        f"options of the groups{of}": Part(
            functools.partial(scalars.of_groups, optimizer, index),
            functools.partial(_write_groups, optimizer, index),
        ),
    }
    schedules = _schedules(torch, optimizer)
    if schedules:
        parts[f"schedule{of}"] = Part(
            lambda: {str(number): _numbers(schedule) for number, schedule in enumerate(schedules)},
            functools.partial(_write_schedules, schedules),
        )
    scaler = _scaler()
    if scaler is not None:
        parts[f"GradScaler{of}"] = Part(scaler.state_dict, scaler.load_state_dict)
    return parts


def _read_slots(torch: Any, optimizer: Any) -> Items:
    items: Items = {}
    for place, parameter in _places(optimizer):
        slots = optimizer.state.get(parameter) or {EMPTY: True}
        for name, value in slots.items():
            if copies.is_plain(value, torch):
                items[f"{place} {name}"] = array(value)
            elif value is None or type(value) in (bool, int, float, str):
                items[f"{place} {name}"] = value
    return items


def _write_slots(torch: Any, optimizer: Any, items: Items) -> None:
    """Slots that the first process did not have yet are removed: the optimizer makes them anew."""
    for place, parameter in _places(optimizer):
        slots = optimizer.state.get(parameter)
        if not slots:
            continue
        if items.get(f"{place} {EMPTY}"):
            del optimizer.state[parameter]
            continue
        for name, value in slots.items():
            first = items.get(f"{place} {name}")
            if isinstance(first, Array):
                value.copy_(tensor(torch, first))
            elif f"{place} {name}" in items:
                slots[name] = first


def _places(optimizer: Any) -> Iterator[tuple[str, Any]]:
    for number, group in enumerate(optimizer.param_groups):
        for place, parameter in enumerate(group["params"]):
            yield f"{number}.{place}", parameter


def _write_groups(optimizer: Any, index: int, items: Items) -> None:
    """Sets each option that is a number, or a tuple of numbers, to its first value."""
    for number, group in enumerate(optimizer.param_groups):
        for name, value in group.items():
            first = f"{index}.group {number}.{name}"
            if first in items:
                if hasattr(value, "fill_"):
                    value.fill_(_number(items[first]))
                elif type(value) in (int, float):
                    group[name] = _number(items[first])
            elif isinstance(value, (list, tuple)) and all(f"{first}.{n}" in items for n in range(len(value))):
                group[name] = type(value)(_number(items[f"{first}.{n}"]) for n in range(len(value)))


def _number(text: str) -> Any:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _schedules(torch: Any, optimizer: Any) -> list[Any]:
    """The schedules that hold the optimizer, in an order that does not depend on their values."""
    references = scalars.Schedules(torch, optimizer).references
    alive = [schedule for schedule in (reference() for reference in references) if schedule is not None]
    return sorted(alive, key=lambda schedule: (type(schedule).__name__, sorted(vars(schedule))))


def _numbers(schedule: Any) -> dict[str, Any]:
    """The attributes that change: numbers, and lists of numbers."""
    return {
        name: value
        for name, value in vars(schedule).items()
        if type(value) in (int, float)
        or (type(value) is list and value and all(type(one) in (int, float) for one in value))
    }


def _write_schedules(schedules: list[Any], items: Items) -> None:
    for number, schedule in enumerate(schedules):
        vars(schedule).update(items.get(str(number), {}))


def _scaler() -> Optional[Any]:
    """The GradScaler that takes this step, found on the stack as the observer finds it."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "step" and frame.f_code.co_filename.endswith(scalars.SCALER_FILES):
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def of_module(torch: Any, optimizer: Any) -> dict[str, Part]:
    """The buffers of the modules that are trained, and each copy of the weights."""
    watched = optimizers.ObservedOptimizer(0, optimizer, scalars.Schedules(torch, None))
    parameters = [parameter for _, parameter in watched.parameters(optimizer)]
    roots = [root for root in (reference() for reference in watched.roots) if root is not None]
    parts: dict[str, Part] = {}
    buffers = {name: buffer for name, buffer in watched.buffers() if copies.is_plain(buffer, torch)}
    if buffers:
        parts["buffers"] = of_tensors(torch, buffers)
    for name, source in copies.CopySearch(torch, roots, [parameters]).places():
        tensors = dict(copies.tensors_in(source(), torch))
        if controls.active is not None and controls.active.task == controls.DESCRIBE and _equal(tensors, parameters):
            continue  # the checkpoint that was read
        parts[f"copy of the weights `{modules.plain_name(name)}`"] = of_tensors(torch, tensors)
    return parts


def _equal(tensors: dict[str, Any], parameters: list[Any]) -> bool:
    """True if each parameter's value is among the tensors, which may hold buffers, too."""
    return {array(parameter) for parameter in parameters} <= {array(one) for one in tensors.values()}


def of_tensors(torch: Any, tensors: dict[str, Any]) -> Part:
    """Tensors by name, which are changed in place."""

    def write(items: Items) -> None:
        for name, first in items.items():
            if name in tensors:
                tensors[name].copy_(tensor(torch, first))

    return Part(lambda: {name: array(value) for name, value in tensors.items()}, write)


def array(value: Any) -> Array:
    """A dense tensor with its bytes."""
    import ctypes  # as the observer: not every Python has it

    dense = value.detach().cpu().contiguous()
    size = dense.numel() * dense.element_size()
    content = bytes((ctypes.c_char * size).from_address(dense.data_ptr())) if size else b""
    return Array(str(dense.dtype).replace("torch.", ""), tuple(dense.shape), content)


def tensor(torch: Any, value: Array) -> Any:
    """A tensor of these bytes, on the CPU."""
    kind = getattr(torch, value.dtype)
    if not value.content:
        return torch.empty(value.shape, dtype=kind)
    return torch.frombuffer(bytearray(value.content), dtype=kind).reshape(value.shape)
