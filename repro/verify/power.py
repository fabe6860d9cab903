"""The power of an answer *same* about resuming: faults are planted, and each must be seen.

What the resumed run restores is put back to its first value, one part at a time, right before its first step: see
repro/plant/. Each such run goes on from a copy of the folder that the stopped run had, and ends at its first difference. One
more goes on from the copy without a fault, as far as the others went: if it differs, the others have shown nothing.
"""

import json
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import UNSET

from repro.compare.difference import Difference, first_difference
from repro.compare.pairs import Pair, pairs
from repro.errors import UsageError
from repro.record.lines import CHANNELS, STEPS, Hashes
from repro.record.record import Record
from repro.text import counted
from repro.verify import checkpoint_copies
from repro.verify.checkpoint_copies import BATCHES, FIRST, RESTORED, SEVERAL, STOPPED, TOO_LARGE
from repro.verify.planted import Controls, PlantedFault
from repro.verify.questions import Change
from repro.verify.trial import Trial

PLANTED, FAILED = "planted", "planting-failed"
"""Files in a record's steps/: see repro/plant/controls.py."""
PLACE = "place in the data"
BATCHES_EXCHANGED = 4
"""Steps whose batches are exchanged for those of the beginning."""
OWN = "the program's"
UNDRAWN = "never drawn from"
EQUAL = "equal to the first"
NO_FOLDER = "the command does not write into `{run}` alone, so that no second run can go on from where it was stopped"
NO_COPY = "the folder of the stopped run could not be copied"
TOO_LARGE_COPY = "the folder of the stopped run is too large to be copied"
MANY_PROCESSES = "several processes train"
NO_INDICES = "no loader is seen that hands out samples by indices"
FROM_HERE = "the loader counts its samples from where the run goes on"
UNFINISHED = "the call ended before that"
NOTHING_SEEN = "no part of PyTorch, Keras or JAX that is restored was seen"


@dataclass
class Power:
    """Faults that were planted, and what came of each."""

    faults: list[PlantedFault] = field(default_factory=list)
    seconds: float = 0.0
    steps: int = 0
    """The steps of the run that went on."""
    void: str | None = None
    """The reason that no fault could be planted, or that those that were have shown nothing."""

    def of(self, *outcomes: str) -> list[PlantedFault]:
        """The faults with one of these outcomes."""
        return [fault for fault in self.faults if fault.outcome in outcomes]

    def as_result(self) -> Controls:
        """The faults as results.json has them."""
        return Controls(
            planted=len(self.of("seen", "without effect", "not seen")),
            seen=len(self.of("seen")),
            seconds=self.seconds,
            faults=self.faults,
            void=self.void or UNSET,
        )

    def __str__(self) -> str:
        """The end of the answer's line."""
        if self.void:
            return f"; no fault was planted: {self.void}"
        counts = self.as_result()
        if not counts.planted:
            return f"; no fault was planted: {self._left_out() or NOTHING_SEEN}"
        text = f"; {counts.seen} of {counts.planted} planted faults were seen ({self.seconds:.0f} s)"
        unseen = ", ".join(fault.part for fault in self.of("not seen"))
        text += f"; NOT SEEN, so that *same* says nothing about it: {unseen}" if unseen else ""
        idle = ", ".join(fault.part for fault in self.of("without effect"))
        text += f"; without effect on {counted(self.steps, 'step')} that followed: {idle}" if idle else ""
        left_out = self._left_out()
        return text + (f"; not planted: {left_out}" if left_out else "")

    def _left_out(self) -> str:
        left: dict[str, list[str]] = {}
        for fault in self.of("not planted"):
            left.setdefault(fault.why or "", []).append(fault.part)
        return ", ".join(f"{', '.join(parts)} ({why})" for why, parts in left.items())


def measured(
    trial: Trial, whole: Record, own_folder: bool, run: Callable[[Sequence[Change]], Iterator[Trial]]
) -> Power:
    """Plants the faults where a run that is *same* went on. `run` makes the runs; it may end before the last one."""
    assert trial.record is not None
    obstacle = _obstacle(trial, whole, own_folder)
    if obstacle:
        return Power(void=obstacle)
    pair = pairs(whole, trial.record, resumed=True)[0]
    power = Power(steps=trial.record.steps)
    faults = [*_faults(trial, pair, power)]
    changes = [_change(trial.change, part) for part in faults]
    last = 0
    for planted in run(changes):
        power.seconds += planted.seconds
        outcome = _outcome(planted, whole, pair)
        power.faults.append(outcome)
        last = max(last, outcome.step or 0)
    if last:
        power.void = UNFINISHED
        for control in run([replace(_change(trial.change, ""), until=last)]):
            power.seconds += control.seconds
            power.void = _differs_alone(control, whole)
    return power


def _obstacle(trial: Trial, whole: Record, own_folder: bool) -> str | None:
    """The reason that no fault can be planted."""
    if not own_folder or trial.wrote:
        return NO_FOLDER
    if (trial.folder / TOO_LARGE).exists():
        return TOO_LARGE_COPY
    if not (trial.folder / STOPPED).is_dir():
        return NO_COPY
    several = any((trial.folder / name / SEVERAL).exists() for name in (FIRST, RESTORED))
    if several or len(whole.processes) > 1:
        return MANY_PROCESSES
    return None


def _faults(trial: Trial, pair: Pair, power: Power) -> Iterator[str]:
    """Yields the parts to put back; those that cannot be, or need not, are added to the outcomes."""
    first, now = (checkpoint_copies.digests(trial.folder / name) for name in (FIRST, RESTORED))
    for part in now:
        shared = first.get(part, {}).keys() & now[part].keys()
        if not shared:
            power.faults.append(PlantedFault(part, "not planted", why="the stopped run had no first value of it"))
        elif all(first[part][moment] == now[part][moment] for moment in shared):
            if part.startswith(OWN):  # perhaps an object of a library
                continue
            moves = part.partition("`")[2].rstrip("`") in pair.a.moving() | pair.b.moving()
            undrawn = part.startswith("generator `") and not moves
            power.faults.append(PlantedFault(part, "not planted", why=UNDRAWN if undrawn else EQUAL))
        else:
            yield part
    exchanged = _batches(pair)
    if exchanged:
        (trial.folder / FIRST / BATCHES).write_text(json.dumps(exchanged))
        yield PLACE
    elif now:
        handed_out = any(samples.indices for line in pair.b.lines.values() for samples in line.samples.values())
        power.faults.append(PlantedFault(PLACE, "not planted", why=FROM_HERE if handed_out else NO_INDICES))


def _batches(pair: Pair) -> list[tuple[list[int], list[int]]]:
    """The indices of the batches with which a run goes on, each with those of one of the beginning."""
    exchanged = []
    steps = [step for step in sorted(pair.b.lines) if step][:BATCHES_EXCHANGED]
    for number, step in enumerate(steps, 1):
        lines = (pair.b.lines[step], pair.a.lines.get(number))
        due, first = ([samples.indices for samples in line.samples.values()] if line else [] for line in lines)
        for ours, theirs in zip(due, first, strict=False):
            if ours and theirs and ours != theirs:
                exchanged.append((list(ours), list(theirs)))
    return exchanged


def _change(resumed: Change, part: str) -> Change:
    label = f"{resumed.label}, fault: {part}" if part else f"{resumed.label}, no fault"
    return Change(label, course="resumed", stopped=resumed.label, fault=part)


def _outcome(planted: Trial, whole: Record, without: Pair) -> PlantedFault:
    """What came of a fault; `without`: the run that went on without it."""
    part = planted.change.fault or ""
    if planted.fails:
        return PlantedFault(part, "not planted", why=f"the command fails with it: {planted.fails}")
    record = planted.record
    steps = record.path / STEPS if record else planted.folder
    if record is None or not (steps / PLANTED).exists():
        return PlantedFault(part, "not planted", why=f"it could not be put back{_failure(steps)}")
    difference = _difference(planted, whole)
    if difference:
        return PlantedFault(part, "seen", step=difference.step, channel=_channel(difference, without))
    other = pairs(whole, record, resumed=True)[0].b
    drawn = without.b.moving() | other.moving()  # the state of another generator is noise, if nothing seeds it
    shows = any(
        _differ(_drawn(without.b.steps[step], drawn), _drawn(other.steps[step], drawn))
        for step in without.b.steps.keys() & other.steps.keys()
    )
    # No record has the state of a program's own generator. One that is made anew for each batch decides nothing.
    shows = shows or part.startswith(OWN)
    return PlantedFault(part, "without effect" if shows else "not seen")


def _drawn(hashes: Hashes, drawn: Set[str]) -> Hashes:
    """Hashes of a step, of its generators those that are drawn from."""
    generators = {name: code for name, code in hashes.get("generator", {}).items() if name in drawn}
    return hashes | {"generator": generators}


def _differ(a: Hashes, b: Hashes) -> bool:
    """True if something that both have differs: whether a copy of the weights is found may depend on Python's garbage."""
    both = [(a[channel], b[channel]) for channel in a.keys() & b.keys()]
    return any(ours[name] != theirs[name] for ours, theirs in both for name in ours.keys() & theirs.keys())


def _channel(difference: Difference, without: Pair) -> str:
    """The first channel that differs, but for what differs without the fault, too: a generator that decides nothing."""
    pair, step = difference.pair, difference.step or 0
    if pair is None or not without.differing(step, difference.channel):
        return difference.channel
    others = (channel for channel in CHANNELS if {*pair.differing(step, channel)} - {*without.differing(step, channel)})
    return next(others, difference.channel)


def _difference(planted: Trial, whole: Record) -> Difference | None:
    if planted.divergence or planted.record is None:
        return planted.divergence
    try:
        return first_difference(whole, planted.record, resumed=True)
    except UsageError:
        return None


def _differs_alone(control: Trial, whole: Record) -> str | None:
    """The reason that a run without a fault is not the same as the one that went on; None if it is."""
    if control.fails:
        return f"a run that goes on from a copy of the folder fails: {control.fails}"
    # It was stopped after the step until which the others went: the files that it had not written yet are no difference.
    alone = replace(control, record=control.record.without_files() if control.record else None)
    difference = _difference(alone, whole.without_files())
    if difference is None:
        return None
    return f"a run that goes on from a copy of the folder differs without one, too (step {difference.step}, {difference.channel})"


def _failure(steps: Path) -> str:
    try:
        return f": {(steps / FAILED).read_text(errors='replace').splitlines()[0]}"
    except (OSError, IndexError):
        return ""
