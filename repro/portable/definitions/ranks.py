"""The processes that share a batch, as definitions and backends see them."""

import json
from typing import Any

import numpy as np

from repro.errors import ReproError

AXIS = "ranks"
"""The name of the axis of jax.shard_map, over devices that share a batch."""


def packed(facts: dict[str, object]) -> np.ndarray:
    """Facts as JSON, uint8 [N]."""
    return np.frombuffer(json.dumps(facts, sort_keys=True, default=str).encode(), np.uint8)


class SingleProcess:
    """One process with the whole batch: sums and maxima over the ranks are its own."""

    rank, size = 0, 1

    def maximum(self, *parts: Any) -> Any:
        """The elementwise maximum over the ranks, of each array."""
        return parts

    def total(self, *parts: Any) -> Any:
        """The elementwise sum over the ranks, of each array, in one exchange."""
        return parts

    def mean(self, loss: Any, gradients: Any) -> Any:
        """The mean over the ranks of the loss and of each gradient, in one exchange."""
        return loss, gradients

    def gather(self, row: np.ndarray) -> np.ndarray:
        """The rows of all ranks, uint8 [N] -> [size, N]."""
        return row[None]

    def share(self, batch: int) -> "tuple[slice, SingleProcess]":
        """This rank's contiguous part of a batch of n samples, and the processes that share the batch.

        A smaller last batch that the ranks do not divide evenly is trained on by every rank as a whole, as a single
        process would: the same bits everywhere, and nothing to exchange.
        """
        if batch % self.size:
            return slice(None), SINGLE_PROCESS
        part = batch // self.size
        return slice(self.rank * part, (self.rank + 1) * part), self

    def agree(self, facts: dict[str, object]) -> None:
        """ReproError that says which rank differs from rank 0 in what, on all ranks alike."""
        mine = packed(facts)
        lengths = self.gather(np.frombuffer(np.array([len(mine)], "<i8").tobytes(), np.uint8)).copy().view("<i8")[:, 0]
        rows = self.gather(np.pad(mine, (0, int(lengths.max()) - len(mine))))
        first, *others = (json.loads(row[:length].tobytes()) for row, length in zip(rows, lengths, strict=True))
        for rank, other in enumerate(others, 1):
            for key in sorted(first.keys() | other.keys()):
                if first.get(key) != other.get(key):
                    raise ReproError(
                        f"ranks: rank {rank} differs from rank 0 in {key}: {other.get(key)} and {first.get(key)}; "
                        "all ranks must run the same program on the same data with the same configuration"
                    )

    def close(self) -> None:
        """Ends the exchange with the other ranks."""


SINGLE_PROCESS = SingleProcess()
