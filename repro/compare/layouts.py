"""Trainings that are split among ranks in different ways, beside one another.

One rank or four, replicas, FSDP's shards or tensor-parallel layers: the observer hashes whole tensors, so that ranks hold
the same hashes. Where two records have different layouts, all ranks of a record are compared as one process. The samples
of all ranks together are the batch of a step.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from repro.record.lines import CHANNELS, CLOSURE, PASSES, SCALARS, Hashes, Process
from repro.record.record import Record
from repro.text import counted

OWN = ("generator", "buffers")
"""Channels that each rank may have of its own, as statistics of its batches: those of the first rank count."""
SAMPLES = "samples"


def side_by_side(a: Record, b: Record) -> tuple[Record, Record]:
    """Both records; if their layouts differ, with one process each, without what each rank logs for itself."""
    if not differ(a, b):
        return a, b
    by_samples = all(_samples(record.processes, step) is not None for record in (a, b) for step in _steps(record)[:1])
    ours, theirs = (replace(record, processes=[_together(record, by_samples)], metrics=[]) for record in (a, b))
    return ours, theirs


def differ(a: Record, b: Record) -> bool:
    """True if ranks share the batches or the tensors of one record in another way than those of the other."""
    if not all(record.processes and _are_ranks(record) for record in (a, b)):
        return False
    if len(a.processes) == len(b.processes) == 1:
        return False
    if len(a.processes) != len(b.processes) or _shared(a) != _shared(b):
        return True
    ours, theirs = (_first_batches(record) for record in (a, b))
    return len({*ours}) != len({*theirs}) or (ours != theirs and {*ours} == {*theirs})


def described(record: Record) -> str:
    """The layout in words."""
    groups = sorted(_shared(record))
    ranks = counted(len(record.processes), "rank") if len(record.processes) > 1 else "1 process"
    return f"{ranks}, tensors shared by ranks {' and '.join(groups)}" if groups else ranks


def _are_ranks(record: Record) -> bool:
    ranks = [process.rank for process in record.processes]
    return len(ranks) == 1 or (None not in ranks and len({*ranks}) == len(ranks))


def _steps(record: Record) -> list[int]:
    """The steps that all processes hashed."""
    return sorted(set.intersection(*({*process.steps} - {0} for process in record.processes)))


def _shared(record: Record) -> set[str]:
    """The groups of ranks that gathered what they share."""
    return {group for process in record.processes for line in process.lines.values() for group in line.shared}


def _first_batches(record: Record) -> list[str]:
    """The batch of each rank in the first step that all have hashed, as text."""
    return [str(process.steps[step].get("batch")) for step in _steps(record)[:1] for process in record.processes]


def _together(record: Record, by_samples: bool) -> Process:
    """All ranks of a record as one process."""
    first, processes = record.processes[0], record.processes
    steps = {
        step: _step(processes, step, by_samples) for step in sorted({step for one in processes for step in one.steps})
    }
    return replace(
        first,
        name="",
        steps=steps,
        texts={code: text for one in processes for code, text in one.texts.items()},
        notes=list(dict.fromkeys(note for one in processes for note in one.notes)),
        unseen=[text for one in processes for text in one.unseen],
        sampled=any(one.sampled for one in processes),
    )


def _step(processes: Sequence[Process], step: int, by_samples: bool) -> Hashes:
    taken = [one.steps[step] for one in processes if step in one.steps]
    result: Hashes = {}
    for channel in CHANNELS:
        held = [hashes[channel] for hashes in taken if channel in hashes]
        if channel == "batch":
            batch = _batch(processes, step, held, by_samples)
            result |= {channel: batch} if batch else {}
        elif held:
            names = dict.fromkeys(name for hashes in held for name in hashes)
            codes = {name: [hashes[name] for hashes in held if name in hashes] for name in names}
            result[channel] = {name: code[0] if channel in OWN else _one(code) for name, code in codes.items()}
    for name in (PASSES, CLOSURE):  # a batch may be split among them, too
        result.get(SCALARS, {}).pop(name, None)
    return result


def _one(codes: Iterable[str]) -> str:
    """The hash that ranks agree on, or one of all that they have."""
    distinct = sorted({*codes})
    return distinct[0] if len(distinct) == 1 else hashlib.sha256("\n".join(distinct).encode()).hexdigest()


def _batch(processes: Sequence[Process], step: int, held: list[dict[str, str]], by_samples: bool) -> dict[str, str]:
    """The batch of all ranks; none where they have several, whose samples are not known."""
    samples = _samples(processes, step) if by_samples else None
    if samples is not None:
        return {SAMPLES: hashlib.sha256("\n".join(sorted(samples.elements())).encode()).hexdigest()}
    return held[0] if held and not by_samples and all(hashes == held[0] for hashes in held) else {}


def _samples(processes: Sequence[Process], step: int) -> Counter[str] | None:
    """The samples of a step, in any order. Ranks with the same ones share a layer, and compute with them together."""
    lines = [one.lines[step] for one in processes if step in one.lines]
    batches = [[batch.rows for batch in line.samples.values()] for line in lines]
    if not batches or any(not rows or None in rows for rows in batches):
        return None
    distinct = {tuple(row for part in rows for row in part or ()) for rows in batches}
    return Counter(row for rows in distinct for row in rows)
