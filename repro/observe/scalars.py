"""Numbers that a step depends on.

In PyTorch they are the number of backward passes since the last step, the options of each group, such as the learning
rate, the state of GradScaler, and the counters of schedules; in Keras' `fit` those of callbacks. A record holds them as
they are, for people to read.
"""

import gc
import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

PASSES = "backward passes"
CLOSURE = "backward passes of the closure"  # passes within the step, as in LBFGS
SCALER = "scaler"
SCALER_FILES = ("amp/grad_scaler.py", "amp\\grad_scaler.py")
LENGTH = 40  # characters of a number; repr of a float has fewer

BEST = "best"  # the attribute in which Keras' callbacks keep a value, None until there is one

Scalars = dict[str, str]

callbacks: list[Any] = []  # weak references to those of the `fit` of Keras that is under way


def add(scalars: Scalars, name: str, value: Any) -> None:
    """Adds a number, or a list of numbers, as text; nothing of what is neither."""
    if isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            add(scalars, f"{name}.{place}", part)
    elif hasattr(value, "detach"):  # a learning rate may be a tensor
        if value.numel() == 1:
            add(scalars, name, value.item())
    elif not isinstance(value, bool) and isinstance(value, (int, float)):
        number = int(value) if isinstance(value, int) else float(value)  # a subclass, such as NumPy's
        scalars[name] = repr(number)[:LENGTH]


def of_groups(optimizer: Any, index: int) -> Scalars:
    """The options of each group that are numbers, such as `0.group 0.lr`."""
    scalars: Scalars = {}
    for number, group in enumerate(optimizer.param_groups):
        for name, value in group.items():
            if name != "params":
                add(scalars, f"{index}.group {number}.{name}", value)
    return scalars


def of_scaler() -> Scalars:
    """The state of the GradScaler that takes this step. It is found on the stack, so nothing of it is hooked."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "step" and frame.f_code.co_filename.endswith(SCALER_FILES):
            scalars: Scalars = {}
            for name, value in frame.f_locals["self"].state_dict().items():
                add(scalars, f"{SCALER}.{name.lstrip('_')}", value)
            return scalars
        frame = frame.f_back
    return {}


class Schedules:
    """Objects that hold an optimizer and take steps: schedulers of PyTorch, of libraries, of the user."""

    def __init__(self, torch: Any, optimizer: Any):
        holders = _holders(optimizer) if optimizer is not None else ()
        kind = torch.optim.Optimizer
        self.references = [weakref.ref(schedule) for schedule in holders if _is_schedule(schedule, kind)]

    def counters(self) -> Scalars:
        """The attributes that are whole or floating-point numbers, such as `StepLR.last_epoch`."""
        alive = [schedule for schedule in (reference() for reference in self.references) if schedule is not None]
        scalars: Scalars = {}
        for schedule in sorted(alive, key=lambda schedule: (type(schedule).__name__, repr(_numbers(schedule)))):
            name = _unused(type(schedule).__name__, scalars)
            for attribute, value in _numbers(schedule).items():
                add(scalars, f"{name}.{attribute}", value)
        return scalars


def of_callbacks() -> Scalars:
    """The counters of Keras' callbacks, such as `EarlyStopping.wait`. None is the value of one that has none yet."""
    scalars: Scalars = {}
    for callback in [callback for callback in (reference() for reference in callbacks) if callback is not None]:
        name = _unused(type(callback).__name__, scalars)
        public = {attribute: value for attribute, value in vars(callback).items() if not attribute.startswith("_")}
        for attribute, value in public.items():
            add(scalars, f"{name}.{attribute}", value if isinstance(value, (int, float)) else None)
        if BEST in public and public[BEST] is None:
            scalars[f"{name}.{BEST}"] = repr(None)
    return scalars


def _unused(name: str, scalars: Scalars) -> str:
    """The name of a type, with a mark for each other object of it."""
    while any(taken.startswith(f"{name}.") for taken in scalars):
        name += "'"
    return name


def _holders(value: Any) -> Iterator[Any]:
    """The objects with an attribute that is this value. Their attributes may be a dict of its own to Python."""
    holders = gc.get_referrers(value)
    yield from holders
    attributes = {id(holder) for holder in holders if type(holder) is dict}
    if attributes:
        dicts = [holder for holder in holders if id(holder) in attributes]
        for owner in gc.get_referrers(*dicts):
            if id(getattr(owner, "__dict__", None)) in attributes:
                yield owner


def _is_schedule(holder: Any, optimizer: type) -> bool:
    kind = type(holder)
    return all(callable(getattr(kind, name, None)) for name in ("step", "state_dict")) and not issubclass(
        kind, optimizer
    )


def _numbers(schedule: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(schedule).items() if type(value) in (int, float)}
