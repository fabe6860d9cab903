"""Samples of a PyTorch loader's batches.

Who handed them out, in which pass through the data, their indices and the hash of each.
"""

import ctypes
import functools
import hashlib
import operator
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Optional

from . import generators, hashing, recorder

LARGEST, MOST = 1 << 24, 4096  # the most bytes and samples of a batch whose samples are hashed
DIGITS = 12
DREW = "drew-"  # in FOLDER/steps, followed by a process, the seed of its workers and the generator that they draw from


class Passes:
    """The iterators of loaders: each is a pass through the data, or several where its workers persist."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.count = 0
        self.numbers: Any = weakref.WeakKeyDictionary()  # by iterator: the number of its pass
        self.asked: Any = weakref.WeakKeyDictionary()  # by iterator: the indices of batches on their way
        self.data: dict[int, int] = {}  # by id: the number of each data set
        self.drawn: list[str] = []  # generators whose state changed while the last batch was fetched
        self.has_looked = False  # True once a worker has told what its first batch draws

    def add(self, iterator: Any, data: Any, due: bool) -> Optional[dict[str, Any]]:
        """Counts a batch, and describes it where it is due; None where that fails: it is no part of the step."""
        try:
            if iterator not in self.numbers or iterator._num_yielded == 1:
                self.count += 1
                self.numbers[iterator] = self.count
            asked = self.asked.get(iterator)
            index = asked.popleft() if asked else None
            return self.describe(iterator, data, index) if due else None
        except Exception:
            return None

    def describe(self, iterator: Any, data: Any, index: Any) -> dict[str, Any]:
        samplers = _samplers(iterator._index_sampler)
        stream = bool(iterator._dataset_kind)
        indices = None if stream else _whole_numbers(index)
        return {
            "epoch": self.numbers[iterator],
            "data": self.data.setdefault(id(iterator._dataset), len(self.data)),
            "sampler": type(samplers[-1]).__name__,
            "replacement": any(getattr(sampler, "replacement", False) is True for sampler in samplers),
            "stream": stream,
            "workers": int(iterator._num_workers),
            "size": None if stream else len(iterator._dataset),
            "indices": indices,
            "rows": self.rows(data, indices, stream) if iterator._auto_collation else None,
            "drew": [] if stream else _of_workers(iterator) if iterator._num_workers else self.drawn,
        }

    def rows(self, data: Any, indices: Optional[list[int]], stream: bool) -> Optional[list[str]]:
        """The hash of each sample; None where a batch is anything but tensors whose first axis is that of samples."""
        tensors = [leaf for _, leaf in hashing.leaves(data)]
        plain = (self.torch.Tensor, self.torch.nn.Parameter)
        if not tensors or not all(type(one) in plain and one.dim() and one.device.type == "cpu" for one in tensors):
            return None
        count = int(tensors[0].shape[0])
        size = sum(one.numel() * one.element_size() for one in tensors)
        if not 0 < count <= MOST or size > LARGEST or any(one.shape[0] != count for one in tensors):
            return None
        if not (stream or (indices is not None and len(indices) == count)):
            return None
        if any(one.layout != self.torch.strided or one.is_complex() or one.is_quantized for one in tensors):
            return None
        dense = [one.detach().contiguous() for one in tensors]
        memory = [_memory(one) for one in dense]
        return [_code(memory, number, count) for number in range(count)]

    def states(self) -> Optional[dict[str, Any]]:
        try:
            return {**generators._states(), "torch": hashing.hash_tensor(self.torch.default_generator.get_state())}
        except Exception:
            return None


def watch(loader: Any, passes: Callable[[], Passes], is_due: Callable[[], bool]) -> None:
    """Sees the indices that an iterator asks for, and what draws while a batch is fetched; `passes` gives those of this process.

    A worker tells of its first batch, by empty files beside the lines: its own lines are nobody's steps.
    """
    kind, fetcher = loader._BaseDataLoaderIter, sys.modules["torch.utils.data._utils.fetch"]._MapDatasetFetcher
    next_index, fetch = kind._next_index, fetcher.fetch

    @functools.wraps(next_index)
    def _next_index(self: Any) -> Any:
        index = next_index(self)
        if self._dataset_kind == 0:
            passes().asked.setdefault(self, deque()).append(index)
        return index

    @functools.wraps(fetch)
    def watched(self: Any, index: Any) -> Any:
        worker, own = loader.get_worker_info(), passes()
        before = own.states() if (is_due() if worker is None else not own.has_looked) else None
        data = fetch(self, index)
        own.drawn = _changed(before, own.states()) if before is not None else []
        if worker is not None and not own.has_looked:
            own.has_looked = True
            _mark(own.drawn, worker)
        return data

    kind._next_index, fetcher.fetch = _next_index, watched


def _changed(before: Optional[dict[str, Any]], after: Optional[dict[str, Any]]) -> list[str]:
    return sorted(name for name, state in (after or {}).items() if before and before.get(name, state) != state)


def _mark(drawn: list[str], worker: Any) -> None:
    """Tells the process that started this worker what it draws from."""
    active = recorder.active
    if active is not None:
        for name in drawn:
            active.mark(f"{DREW}{os.getppid()}-{worker.seed - worker.id}-{name}")


def _of_workers(iterator: Any) -> list[str]:
    """The generators that a worker of this iterator has told of."""
    prefix = f"{DREW}{os.getpid()}-{iterator._base_seed}-"
    names = os.listdir(os.path.join(recorder.active.folder, "steps")) if recorder.active is not None else []
    return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _samplers(sampler: Any) -> list[Any]:
    """A sampler and those within it, the innermost last."""
    samplers = [sampler]
    while len(samplers) < hashing.MAX_DEPTH:
        inner = getattr(samplers[-1], "batch_sampler", None) or getattr(samplers[-1], "sampler", None)
        if inner is None:
            break
        samplers.append(inner)
    return samplers


def _whole_numbers(index: Any) -> Optional[list[int]]:
    """The indices of a batch; None where they are no whole numbers."""
    try:
        return [operator.index(one) for one in (index if isinstance(index, (list, tuple)) else [index])]
    except TypeError:
        return None


def _memory(tensor: Any) -> memoryview:
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_ubyte * size).from_address(tensor.data_ptr()) if size else b"")


def _code(memory: list[memoryview], number: int, count: int) -> str:
    """The hash of a sample, of all tensors of the batch."""
    sha = hashlib.sha256()
    for content in memory:
        length = len(content) // count
        sha.update(content[number * length : (number + 1) * length])
    return sha.hexdigest()[:DIGITS]
