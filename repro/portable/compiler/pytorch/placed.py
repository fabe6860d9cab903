"""Machine code, placed: it knows where its arrays are in a list of tensors."""

import itertools
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from repro.portable.compiler.instructions import NEUTRAL
from repro.portable.compiler.nodes import Node, leaves, nodes_in
from repro.portable.compiler.pytorch.kernels import SpaceKernel
from repro.portable.kernels.pytorch import sums
from repro.portable.kernels.pytorch.openmp import Chain, CompiledKernel

COMBINE = {"sum": torch.sum, "largest": torch.amax, "maximum_of": torch.amax}
"""Functions that combine the partial reductions of several threads."""

ALIGNED = 64
"""Bytes from one array of a scratch to the next are a multiple of it."""

PART, TURN = 2, 16
"""The work, in shares of a thread, that takes as long as the call of a part, and that of a whole turn of a scan."""

Step = Callable[[list], None]
"""Takes tensors from their places in a list, and puts others to theirs."""
Address = tuple[int, int]
"""A place in the list, and the bytes from the beginning of that tensor."""
Made = tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype]
"""A tensor that is made: its place, shape, strides, type."""


class Addresses:
    """The addresses of nodes, and of what else is made."""

    def __init__(self, place: dict[Node, int]) -> None:
        self.place, self.size = place, len(place)
        self.joined: set[Node] = set()
        """Arrays of parts that some kernel makes already."""

    def __len__(self) -> int:
        return self.size

    def of(self, node: Node) -> Address:
        if node.operation not in ("view", "part"):
            return self.place[node], 0
        root = node.attributes["joined"] if node.operation == "part" else nodes_in(node.inputs)[0]
        return self.place[root], node.attributes["shift"] * node.dtype.itemsize

    def made(self, target: Node) -> list[Made]:
        """The array of a target, where the kernel that writes it is the first to do so."""
        if target.operation == "part":
            target = target.attributes["joined"]
            if target in self.joined:
                return []
            self.joined.add(target)
        return [(self.place[target], target.shape, target.strides, target.dtype)]

    def more(self) -> int:
        """A place of its own."""
        self.size += 1
        return self.size - 1


@dataclass(frozen=True)
class Placed:
    """A compiled kernel, the addresses of its arrays, and the arrays that are made for it."""

    compiled: CompiledKernel
    addressed: list[Address]
    made: list[Made]
    filled: tuple[tuple[int, Any, Callable], ...] = ()
    """Reductions of which each thread needs one of its own: the place, what it begins with, how several are combined."""

    def execute(self, places: list) -> None:
        """Makes tensors for what is made."""
        for index, shape, strides, dtype in self.made:
            places[index] = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
        threads = self.compiled.threads()
        if threads > 1:
            whole = [places[index] for index, *_ in self.filled]
            for tensor, (index, neutral, _) in zip(whole, self.filled, strict=True):
                parts = tensor.new_full((threads * tensor.numel(),), neutral)
                places[index] = parts.as_strided((threads, *tensor.shape), (tensor.numel(), *tensor.stride()))
        self.compiled([places[index].data_ptr() + shift for index, shift in self.addressed], threads)
        if threads > 1:
            for tensor, (index, _, combine) in zip(whole, self.filled, strict=True):
                places[index] = combine(places[index], 0, out=tensor)


def kernel(space: tuple[int, ...], targets: list[Node], stored: set[Node], addresses: Addresses) -> Placed:
    """Kernel over a space that computes targets from what is stored."""
    given = dict.fromkeys(leaf for target in targets for leaf in leaves(target, stored) if leaf not in targets)
    made = SpaceKernel(space, targets, list(given))
    return Placed(
        made.compiled,
        [addresses.of(node) for node in (*given, *targets)],
        [made for node in targets for made in addresses.made(node)],
        tuple((addresses.place[node], NEUTRAL[node.operation], COMBINE[node.operation]) for node in made.filled),
    )


def products(node: Node, addresses: Addresses) -> list[Placed]:
    """A product of matrices, stage by stage."""
    arrays = [addresses.of(each) for each in nodes_in(node.inputs)]
    result = []
    stages = node.attributes["stages"]
    for stage in stages:
        index = addresses.place[node] if stage is stages[-1] else addresses.more()
        shape, strides = (node.shape, node.strides) if stage is stages[-1] else (stage.shape, stage.strides)
        made = (index, shape, strides, stage.dtype)
        arrays.append((index, 0))
        result.append(Placed(sums.code(stage.kernel), [*(arrays[each] for each in stage.reads), arrays[-1]], [made]))
    return result


class Kernels:
    """A sequence of kernels in one call; arrays that only they read share one piece of memory."""

    def __init__(self, parts: list[Placed], outside: set[int]) -> None:
        self.parts = parts
        made = {index: (shape, strides, dtype) for part in parts for index, shape, strides, dtype in part.made}
        self.made = [(index, *how) for index, how in made.items() if index in outside]
        self.scratch, offsets = 0, {}
        for index, (shape, strides, dtype) in made.items():
            if index not in outside:
                offsets[index] = self.scratch
                span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
                self.scratch += -(-span * dtype.itemsize // ALIGNED) * ALIGNED
        addressed = [address for part in parts for address in part.addressed]
        self.addressed = [
            (None, offsets[index] + shift) if index in offsets else (index, shift) for index, shift in addressed
        ]
        self.work = sum(part.compiled.most for part in parts)
        """Threads that are worth it, in all."""
        self.chain = Chain([part.compiled for part in parts], [len(part.addressed) for part in parts])

    def __call__(self, places: list) -> None:
        if not self.alone():
            for part in self.parts:
                part.execute(places)
            return
        scratch = self._memory(places, ())
        start = scratch.data_ptr()
        self.chain([(start if index is None else places[index].data_ptr()) + shift for index, shift in self.addressed])

    def alone(self, turns: int = 1) -> bool:
        """True if one thread is to compute all of it, once or as turns of a scan: several take a call of Python for each part."""
        calls = PART * len(self.parts) + (TURN if turns > 1 else 0)
        return torch._C.get_num_threads() == 1 or self.work <= calls

    def repeat(self, places: list, moving: Mapping[int, tuple[int, int]], turns: int) -> None:
        """Calls the kernels `turns` times on this thread; some places are given as an address, and the bytes to the next turn's."""
        scratch = self._memory(places, moving)
        addresses, steps = [], []
        for index, shift in self.addressed:
            if index is None:
                address, step = scratch.data_ptr(), 0
            else:
                address, step = moving[index] if index in moving else (places[index].data_ptr(), 0)
            addresses.append(address + shift)
            steps.append(step)
        self.chain.repeat(addresses, steps, turns)

    def _memory(self, places: list, there: Container[int]) -> Tensor:
        """Makes tensors for what is made and not there; and the memory of all that only these kernels read."""
        for index, shape, strides, dtype in self.made:
            if index not in there:
                places[index] = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
        return torch.empty(self.scratch, dtype=torch.uint8, device="cpu")


def joined(steps: list, outside: set[int]) -> list[Step]:
    """Steps, with machine code that follows one another as one."""
    groups = [list(some) for _, some in itertools.groupby(steps, lambda step: isinstance(step, Placed))]
    read = Counter(
        index
        for some in groups
        for index in {index for step in some if isinstance(step, Placed) for index, _ in step.addressed}
    )
    shared = outside | {index for index, number in read.items() if number > 1}
    result: list[Step] = []
    for some in groups:
        result += [Kernels(some, shared)] if isinstance(some[0], Placed) else some
    return result
