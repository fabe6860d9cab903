"""Warnings about batches and weights of several ranks."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from repro.record.lines import STARTS, Process
from repro.record.record import Record
from repro.record.warnings.passes import loaders, samples
from repro.text import counted, listed

PADDED = "DistributedSampler"  # it repeats a few samples, so that all ranks get equally many


def _pairs(record: Record) -> Iterator[tuple[Process, Process]]:
    """The first rank, and each other one."""
    trained = [process for process in record.processes if process.rank is not None]
    return ((a, b) for a, b in combinations(trained, 2) if a is trained[0])


def _shared(a: Process, b: Process) -> list[int]:
    return sorted(step for step in a.steps.keys() & b.steps.keys() if step > 0)


def _replicated(a: Process, b: Process, step: int) -> bool:
    """True if all weights of two ranks are equal after a step."""
    ours, theirs = (one.steps[step].get("weights", {}) for one in (a, b))
    return bool(ours) and ours == theirs


def _share_tensors(a: Process, b: Process) -> bool:
    """True if two ranks hold parts of the same tensors, and so may compute with one batch."""
    groups = {group for one in (a, b) for line in one.lines.values() for group in line.shared}
    return any({str(a.rank), str(b.rank)} <= {*group.split(",")} for group in groups)


def ranks_with_equal_batches(record: Record) -> Iterator[str]:
    """Ranks with the same weights get equal batches. (Ranks that share a model's layers rightly do.)"""
    for a, b in _pairs(record):
        steps = _shared(a, b)
        batches = [(a.steps[step].get("batch"), b.steps[step].get("batch")) for step in steps]
        if _share_tensors(a, b):
            continue
        if len(steps) > 1 and _replicated(a, b, steps[-1]) and all(ours and ours == theirs for ours, theirs in batches):
            yield f"ranks {a.rank} and {b.rank} had equal batches in each of {counted(len(steps), 'step')}, and have equal weights"


def samples_of_several_ranks(record: Record) -> Iterator[str]:
    """Samples go to several ranks, though the sampler shares a data set among them and repeats a few at most."""
    epochs: dict[int, Counter[int]] = {}
    ranks = len(record.processes)
    taken: list[tuple[Process, int, list[int]]] = []
    for process, passes in loaders(record):
        for one in passes:
            if one.about.sampler == PADDED and one.indices and ranks > 1:
                own = process, one.number, one.indices
                if not any(own[1:] == other[1:] and _share_tensors(process, other[0]) for other in taken):
                    epochs.setdefault(one.number, Counter()).update(one.indices)
                taken.append(own)
    for number, counts in sorted(epochs.items()):
        twice = [index for index, times in counts.items() if times > 1]
        if len(twice) >= ranks:
            yield f"in epoch {number} {samples(len(twice))} came in several of {ranks} ranks, such as that of index {min(twice)}"
            return


def replicas_differ(record: Record) -> Iterator[str]:
    """Replicas differ: their weights were all equal before the first step, and never are again.

    Shards differ from the start, and replicas that are averaged now and then are equal again. Buffers are each rank's own.
    """
    for a, b in _pairs(record):
        steps = _shared(a, b)
        starts = [one.steps.get(0, {}).get(STARTS, {}) for one in (a, b)]
        if not steps or not starts[0] or starts[0].keys() != starts[1].keys():
            continue
        unlike = [step for step in steps if not _replicated(a, b, step)]
        if starts[0] == starts[1] and unlike and unlike == steps[steps.index(unlike[0]) :]:
            ours, theirs = (one.steps[unlike[0]].get("weights", {}) for one in (a, b))
            names = [name for name in ours if ours[name] != theirs.get(name)]
            if len(unlike) > 1 and names:
                yield f"ranks {a.rank} and {b.rank} start from equal weights, which differ after step {unlike[0]} and all later ones ({listed(names)})"
        elif starts[0] != starts[1]:
            yield from _equal_gradients(a, b, steps, starts)


def _equal_gradients(a: Process, b: Process, steps: list[int], starts: list[dict[str, str]]) -> Iterator[str]:
    """Gradients that are averaged, of weights that are not equal: no shards, whose gradients differ, too."""
    gradients = [(a.steps[step].get("gradients"), b.steps[step].get("gradients")) for step in steps]
    zero = {name for step in steps if step in a.lines for name in a.lines[step].zero.get("gradients", [])}
    alike = all(ours and ours == theirs for ours, theirs in gradients)
    names = [name for name, code in starts[0].items() if code != starts[1][name] and name not in zero]
    if len(steps) > 1 and alike and names:
        yield f"ranks {a.rank} and {b.rank} have equal gradients in each of {counted(len(steps), 'step')}, but start from unequal weights ({listed(names)})"
