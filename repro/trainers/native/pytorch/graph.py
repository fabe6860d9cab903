"""A training step of mnist_pytorch.py as a CUDA graph.

It is recorded once, and then launched whole. Launching its kernels one by one would take longer than they do. Its
rules are PyTorch's: "CUDA Graphs", in the notes on CUDA semantics of its documentation.
"""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP = 3  # calls, as in PyTorch's own examples: what is made at first use, handles and tables, is there afterwards


class Graphed:
    """Calls a function of tensors on a GPU; from the fourth call with a shape on, replays what it launched.

    The function may read and write tensors that stay where they are, but must read nothing back and copy nothing from
    the host. Its first calls are calls like any other, so that what it updates needs no restoring.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function
        self.stream = torch.cuda.Stream()  # the default stream, and what has run on it, cannot be recorded
        self.calls: Counter[torch.Size] = Counter()
        self.graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The function's result, for inputs whose shapes follow from the first one's."""
        shape = inputs[0].shape
        self.calls[shape] += 1
        if self.calls[shape] <= WARM_UP:
            return self._call(inputs)
        if shape not in self.graphs:
            self.graphs[shape] = self._record(inputs)
        graph, buffers, result = self.graphs[shape]
        for buffer, given in zip(buffers, inputs, strict=True):
            buffer.copy_(given)
        graph.replay()
        return result.clone()

    def _call(self, inputs: tuple[Tensor, ...]) -> Tensor:
        here = torch.cuda.current_stream()
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            result = self.function(*inputs)
        here.wait_stream(self.stream)
        return result

    def _record(self, inputs: tuple[Tensor, ...]) -> tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]:
        """The graph, and the tensors that it reads and writes; recording computes nothing."""
        graph, buffers = torch.cuda.CUDAGraph(), [given.clone() for given in inputs]
        with torch.cuda.graph(graph, stream=self.stream):
            result = self.function(*buffers)
        return graph, buffers, result
