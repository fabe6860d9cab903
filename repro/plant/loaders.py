"""Parts of PyTorch's loaders: the place in the data, the epoch, and generators of their own.

The moment is that in which a loader that trains begins, before it draws the order of its samples. A loader's own generator,
and the epoch of its sampler, are what they were when the first process began its first pass. The place in the data is put
back by the samples: each batch that the resumed run is due to train on is exchanged for the one that the first process
began with, in the order in which both were asked for.
"""

import functools
import json
import os
from typing import Any

from ..observe import samples
from . import controls
from .controls import Part
from .values import Items

PLACE = "place in the data"
BATCHES = "batches.json"  # pairs of indices, written by `verify`: of a batch that is due, and of one of the beginning


def watch(torch: Any) -> None:
    """Hooks into the beginning of loaders, and into the indices that they ask for."""
    loader = torch.utils.data.DataLoader
    begin = loader.__iter__

    @functools.wraps(begin)
    def __iter__(self: Any) -> Any:  # noqa: N807
        if torch.is_grad_enabled():
            at_beginning(torch, self)
        return begin(self)

    loader.__iter__ = __iter__
    control = controls.active
    if control is not None and control.task == controls.PLANT and control.part == PLACE:
        _exchange(torch.utils.data.dataloader._BaseDataLoaderIter)


@controls.never_raise
def at_beginning(torch: Any, loader: Any) -> None:
    """Meets the moment before a loader begins for the first time."""
    from .pytorch import every_generator, of_generator

    control = controls.active
    if control is None or not control.is_first("loader"):
        return
    parts = every_generator(torch)
    holders = [loader, *samples._samplers(loader.batch_sampler or loader.sampler)]
    own = {id(one): one for one in (getattr(holder, "generator", None) for holder in holders) if one is not None}
    for number, generator in enumerate(own.values()):
        name = "the loader's generator" if not number else f"the loader's generator {number + 1}"
        parts[name] = of_generator(torch, generator)
    counted = [one for one in (*holders, loader.dataset) if type(vars_of(one).get("epoch")) is int]
    if counted:
        parts["epoch of the sampler"] = _of_epochs(counted)
    control.meet("loader", parts)


def vars_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, which may have none."""
    return getattr(value, "__dict__", {})


def _of_epochs(counted: list[Any]) -> Part:
    def read() -> Items:
        return {str(number): one.epoch for number, one in enumerate(counted)}

    def write(items: Items) -> None:
        for number, one in enumerate(counted):
            one.epoch = items.get(str(number), one.epoch)

    return Part(read, write)


@controls.never_raise
def _exchange(kind: Any) -> None:
    """Exchanges the indices of batches."""
    control = controls.active
    assert control is not None
    with open(os.path.join(control.folder, BATCHES)) as file:
        pairs = json.load(file)
    exchanged = {tuple(due): first for due, first in pairs}
    next_index = kind._next_index

    @functools.wraps(next_index)
    def _next_index(self: Any) -> Any:
        index = next_index(self)
        return exchange(exchanged, index)

    kind._next_index = _next_index


def exchange(exchanged: "dict[tuple[int, ...], list[int]]", index: Any) -> Any:
    """The indices that a batch gets instead: also where it is asked for to be passed over, and again when it is due."""
    numbers = samples._whole_numbers(index)
    first = exchanged.get(tuple(numbers)) if numbers is not None else None
    if first is None:
        return index
    controls.never_raise(controls.mark)(controls.PLANTED, PLACE)
    return first if isinstance(index, (list, tuple)) else first[0]
