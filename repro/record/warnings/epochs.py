"""Warnings about order and samples of epochs."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from repro.record import trainings
from repro.record.lines import Process
from repro.record.record import Record
from repro.record.typed_lines import Samples
from repro.record.warnings.passes import Batch, Pass, loaders, numbers, rank, samples
from repro.text import counted

IN_ORDER = "SequentialSampler"  # one order is what it promises
COVERING = ("RandomSampler", "SequentialSampler")  # each index once, but for a last batch that is dropped
CHANCE = 20  # bits: what comes by chance once in a million times is suspicious


def epochs_in_one_order(record: Record) -> Iterator[str]:
    """Epochs have one order, though there are too many orders for one to come twice by chance.

    Right where there are two batches or more: a data set that is smaller than a batch is the same batch each time.
    """
    seen: set[str] = set()
    known = False
    for _, passes in loaders(record):
        known = True
        for alike in _alike(passes):
            about = alike[0].about
            if about.sampler == IN_ORDER or not _is_suspicious(alike):
                continue
            which = numbers([one.number for one in alike])
            who = "an iterable data set" if about.stream else f"sampler: {about.sampler}"
            text = (
                f"epochs {which} had the same batches in the same order ({len(alike[0].batches)} batches each; {who})"
            )
            if text not in seen:
                seen.add(text)
                yield text
    if not known and record.content.every == 1:
        yield from dict.fromkeys(text for process in record.processes for text in _periods(process))


def _alike(passes: list[Pass]) -> Iterator[list[Pass]]:
    """Groups of passes whose batches are equal; the last one of all as far as it comes."""
    left = [one for one in passes if len(one.batches) > 1]
    while left:
        first, *others = left
        alike = [first, *(one for one in others if _begins_as(first, one))]
        if len(alike) > 1:
            yield alike
        left = [one for one in others if all(one is not other for other in alike)]


def _begins_as(a: Pass, b: Pass) -> bool:
    cut_off = not b.complete and len(b.batches) < len(a.batches)
    return b.batches == (a.batches[: len(b.batches)] if cut_off else a.batches)


def _is_suspicious(alike: list[Pass]) -> bool:
    """True if chance would hardly give one order so often."""
    bits = 0.0
    for one in alike[1:]:
        distinct = len({*(one.rows or one.batches)})
        bits += _bits(distinct)
    return bits >= CHANCE


def _periods(process: Process) -> Iterator[str]:
    """Batches of steps of a training that come again and again, where no loader says what an epoch is."""
    begins = [*trainings.begins(process), process.last + 1]
    for first, after in pairwise(begins):
        steps = sorted(step for step in process.steps if first <= step < after)
        batches: list[Batch] = [tuple(sorted(process.steps[step].get("batch", {}).items())) for step in steps]
        period = _period(batches)
        times, distinct = len(batches) // period if period else 0, len({*batches})
        if () not in batches and (times - 1) * _bits(distinct) >= CHANCE:
            yield f"the batches of {counted(period, 'step')} came again in the same order, {times} times in {len(batches)} steps"


def _period(batches: list[Batch]) -> int:
    """The least number of batches after which all come again, by the prefix function of Knuth, Morris and Pratt."""
    longest = [0] * len(batches)
    for at in range(1, len(batches)):
        length = longest[at - 1]
        while length and batches[at] != batches[length]:
            length = longest[length - 1]
        longest[at] = length + (batches[at] == batches[length])
    return len(batches) - longest[-1] if batches else 0


def _bits(number: int) -> float:
    """The logarithm to base 2 of the number of orders."""
    return math.lgamma(number + 1) / math.log(2)


def augmentation_repeats(record: Record) -> Iterator[str]:
    """Augmentations repeat, though a generator of the process draws while each batch is fetched.

    Samples are compared by their indices: those that another order, or another tensor of the batch, makes different do not count.
    """
    for process, passes in loaders(record):
        whole = [one for one in passes if one.contents and all(part.drew for part in one.samples)]
        if len(whole) < 2 or len(whole) != len(passes):
            continue
        contents: dict[int, set[str]] = {}
        times = Counter[int]()
        for one in whole:
            for index, row in one.contents:
                contents.setdefault(index, set()).add(row)
                times[index] += 1
        again = [index for index, number in times.items() if number == len(whole)]
        distinct = {row for index in again for row in contents[index]}
        if len(distinct) < 2 or any(len(found) > 1 for found in contents.values()):
            continue
        drew = ", ".join(
            f"`{name}`" for name in sorted({name for one in whole for part in one.samples for name in part.drew})
        )
        which = numbers([one.number for one in whole])
        yield f"{rank(process, record)}{samples(len(again))} had the same content in each of epochs {which}, though the state of {drew} changed while each batch was fetched"


def samples_twice_or_never(record: Record) -> Iterator[str]:
    """An epoch has samples twice or never, of a data set whose sampler does not draw with replacement."""
    if len(record.processes) > 1:
        return
    for _, passes in loaders(record):
        known = [(one, one.indices or []) for one in passes if one.indices and not one.about.replacement]
        repeated = [(one, twice) for one, indices in known if (twice := _repeated(one, indices))]
        for one, twice in repeated[:1]:
            others = f", and so in {len(repeated) - 1} of the others" if len(repeated) > 1 else ""
            yield f"in epoch {one.number} {samples(len(twice))} came twice or more, such as that of index {twice[0]}{others}"
        whole = [one for one, _ in known if one.complete]
        size = passes[0].about.size
        if len(whole) < 2 or len(known) != len(passes) or size is None or passes[0].about.sampler not in COVERING:
            continue
        came = {index for _, indices in known for index in indices}
        if len(came) < size:
            first = next(index for index in itertools.count() if index not in came)
            yield f"{samples(size - len(came))} of {size} came in none of {len(passes)} epochs, such as that of index {first}"


def _repeated(one: Pass, indices: list[int]) -> list[int]:
    """The samples that came twice. A sampler of the program's own may go through the data several times in one pass.

    There a sample may come again once half of all others did.
    """
    size, seen = one.about.size, set[int]()
    repeated = set[int]()
    for index in indices:
        if index in seen and one.about.sampler not in COVERING and size is not None and 2 * len(seen) >= size:
            seen = set()
        repeated |= {index} & seen
        seen.add(index)
    return sorted(repeated)


def samples_of_each_worker(record: Record) -> Iterator[str]:
    """Each worker hands out all samples of an iterable data set."""
    for process, passes in loaders(record):
        for one in passes:
            counts = Counter(one.rows or [])
            workers = one.about.workers
            whole = one.about.stream and workers > 1 and len(counts) > 1 and (one.complete or len(passes) == 1)
            if whole and all(number % workers == 0 for number in counts.values()):
                each = f"each of {samples(len(counts))} came {min(counts.values())} times or more"
                yield f"{rank(process, record)}in epoch {one.number} {each}, and the loader has {workers} workers"
                break


def workers_with_equal_batches(record: Record) -> Iterator[str]:
    """Workers hand out equal batches of different samples, as with copies of one generator. Workers take turns."""
    for process, passes in loaders(record):
        for one in passes:
            workers = max(one.about.workers, 1)
            turns = list(zip(*(one.samples[worker::workers] for worker in range(workers)), strict=False))
            contents = {tuple(turn[0].rows or ()) for turn in turns}
            if len(contents) > 1 and all(map(_equal_rows, turns)):
                yield f"{rank(process, record)}in epoch {one.number} the {workers} workers had equal batches in each of {len(turns)} turns, though of different samples"
                break


def _equal_rows(batches: tuple[Samples, ...]) -> bool:
    """True if batches of different samples have the same content."""
    rows, indices = {tuple(one.rows or ()) for one in batches}, {tuple(one.indices or ()) for one in batches}
    return len(rows) == 1 and () not in rows and len(indices) == len(batches) > 1
