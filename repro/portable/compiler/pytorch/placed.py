"""Machine code, placed: it knows where its arrays are in a list of tensors."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from repro.portable.compiler.instructions import NEUTRAL
from repro.portable.compiler.nodes import Node, leaves, nodes_in
from repro.portable.compiler.pytorch.kernels import SpaceKernel
from repro.portable.kernels.pytorch import sums
from repro.portable.kernels.pytorch.openmp import CompiledKernel, chain

COMBINE = {"sum": torch.sum, "largest": torch.amax, "maximum_of": torch.amax}
"""Functions that combine the partial reductions of several threads."""

ALIGNED = 64
"""Bytes from one array of a scratch to the next are a multiple of it."""

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

    def __len__(self) -> int:
        return self.size

    def of(self, node: Node) -> Address:
        if node.operation != "view":
            return self.place[node], 0
        (root,) = nodes_in(node.inputs)
        return self.place[root], node.attributes["shift"] * node.dtype.itemsize

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
        [(addresses.place[node], node.shape, node.strides, node.dtype) for node in targets],
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


class Sequence:
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
        self.most = max(part.compiled.most if part.compiled.several else 1 for part in parts)
        self.call = chain([part.compiled for part in parts], [len(part.addressed) for part in parts])

    def __call__(self, places: list) -> None:
        if self.most > 1 and torch._C.get_num_threads() > 1:
            for part in self.parts:
                part.execute(places)
            return
        for index, shape, strides, dtype in self.made:
            places[index] = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
        scratch = torch.empty(self.scratch, dtype=torch.uint8, device="cpu") if self.scratch else None
        start = 0 if scratch is None else scratch.data_ptr()
        self.call([(start if index is None else places[index].data_ptr()) + shift for index, shift in self.addressed])


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
        result += [Sequence(some, shared)] if isinstance(some[0], Placed) else some
    return result
