"""Passes through the data, as a process' lines show them."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from repro.record import trainings
from repro.record.lines import Process
from repro.record.record import Record
from repro.record.typed_lines import Samples
from repro.text import counted

Batch = tuple[tuple[str, str], ...]
"""The path and hash of each array."""


@dataclass
class Pass:
    """The batches of one pass, in their order."""

    number: int
    """The number among the passes through the same data."""
    batches: list[Batch] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """The step of each batch."""
    complete: bool = False
    """True if another pass through the same data follows."""

    @property
    def indices(self) -> list[int] | None:
        """The indices of all samples; None where those of a batch are not known."""
        known = [one.indices for one in self.samples if one.indices is not None]
        return [index for indices in known for index in indices] if len(known) == len(self.samples) else None

    @property
    def rows(self) -> list[str] | None:
        """The hashes of all samples; None where those of a batch are not known."""
        known = [one.rows for one in self.samples if one.rows is not None]
        return [row for rows in known for row in rows] if len(known) == len(self.samples) else None

    @property
    def contents(self) -> list[tuple[int, str]]:
        """The index and hash of each sample; empty where one is not known."""
        indices, rows = self.indices or [], self.rows or []
        return list(zip(indices, rows, strict=True)) if len(indices) == len(rows) else []

    @property
    def about(self) -> Samples:
        return self.samples[0]


def loaders(record: Record) -> Iterator[tuple[Process, list[Pass]]]:
    """The passes through each data set, of each training of each process; none if not every step was hashed."""
    if record.content.every != 1:
        return
    for process in record.processes:
        result: dict[int, Pass] = {}
        for step, line in sorted(process.lines.items()):
            for name, samples in sorted(line.samples.items(), key=lambda item: (len(item[0]), item[0])):
                batch = process.steps[step].get("batch", {})
                one = result.setdefault(samples.epoch, Pass(0))
                one.batches.append(_of_batch(batch, name))
                one.samples.append(samples)
                one.steps.append(step)
        groups: dict[object, list[Pass]] = {}
        begins = trainings.begins(process)
        for _, one in sorted(result.items()):
            if len({*one.steps}) > 1 or len(one.batches) == 1:  # else no step came meanwhile: an evaluation
                training = bisect_right(begins, one.steps[0])
                key = (training, one.about.data, one.about.sampler, one.about.size, one.about.workers, one.about.stream)
                groups.setdefault(key, []).append(one)
        for passes in groups.values():
            if any(b.steps[0] < a.steps[-1] for a, b in pairwise(passes)):  # two loaders side by side
                continue
            for number, one in enumerate(passes, 1):
                one.number, one.complete = number, number < len(passes)
            yield process, passes


def _of_batch(batch: dict[str, str], name: str) -> Batch:
    paths = ((path.partition(".")[2], code) for path, code in batch.items() if path.partition(".")[0] == name)
    return tuple(sorted(paths))


def numbers(numbers: list[int]) -> str:
    """`1 to 4`, or `1, 3 and 4`."""
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(filter(None, (", ".join(map(str, numbers[:-1])), str(numbers[-1]))))


def rank(process: Process, record: Record) -> str:
    """The rank as a prefix, `rank 1: `; empty if there is only one process."""
    return f"rank {process.rank}: " if len(record.processes) > 1 and process.rank is not None else ""


def samples(number: int) -> str:
    return counted(number, "sample")
