"""The first divergence of two records.

The first step, and of that step the first channel in the order of cause.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any

from repro.compare.alignment import OF_OPTIMIZERS, Alignment, Course, align, aligned, number_of
from repro.errors import UsageError
from repro.record.lines import CHANNELS, STARTS, Process
from repro.record.record import OUTPUTS, Record

CALLED = {True: ("the whole run", "the resumed run"), False: ("the first run", "the second run"), None: ("A", "B")}
"""What people read for two records, by whether the second is a resumed run."""
NUMBERED = re.compile(r"\d{1,9}(\.|\Z)")  # the name of a batch


@dataclass(frozen=True)
class Pair:
    """A process of the first record, and the one of the second that does the same."""

    a: Process
    b: Process
    offset: int
    """Step n of `b` is step n + offset of `a`: more than 0 where `b` was resumed."""
    called: tuple[str, str] = ("A", "B")
    """The names of the two, for people."""

    @property
    def sampled(self) -> bool:
        """Whether one of them chose what it wrote down, so that what only the other holds is no difference."""
        return self.a.sampled or self.b.sampled

    @property
    def partial(self) -> bool:
        """Whether what only one of them holds is no difference."""
        return self.sampled or bool(self.a.unseen or self.b.unseen)

    def steps(self) -> list[int]:
        """Those that both hashed, counted as `a` counts; step 0 only where `b` began at the beginning, too."""
        shared = {step + self.offset for step in self.b.steps if step > 0 or self.offset == 0} & self.a.steps.keys()
        return sorted(shared)

    def hashes(self, step: int, channel: str) -> tuple[dict[str, str], dict[str, str]] | None:
        """What both hold of a channel at a step of `a`; None where one of them did not see it."""
        if channel == STARTS and self.offset:
            return self._starts if step == self.offset else None
        ours, theirs = self.a.steps.get(step, {}).get(channel), self.b.steps.get(step - self.offset, {}).get(channel)
        if ours is None or theirs is None:
            return None
        if channel == "batch" and self.offset and step == self.offset + 1:
            return _last_batches(ours, theirs), _last_batches(theirs, ours)
        if channel in OF_OPTIMIZERS and self._turns:
            ours = {name: code for name, code in ours.items() if self._turns.get(number_of(name), 0) <= step}
        return ours, theirs

    @cached_property
    def _starts(self) -> tuple[dict[str, str], dict[str, str]] | None:
        """The weights that `a` has where `b` goes on, and those that the optimizers of `b` start from.

        What another optimizer changes before, as both have it, is not what `b` starts from.
        """
        whole = Course(self.a)
        ours: dict[str, str] = {}
        theirs: dict[str, str] = {}
        for later, weights in Course(self.b).starts.items():
            for name, code in weights.items():
                then = whole.weight(name, self.offset)
                if then == whole.weight(name, self.offset + later):
                    ours |= {name: then} if then is not None else {}
                    theirs[name] = code
        return (ours, theirs) if theirs and ours else None

    @cached_property
    def _turns(self) -> dict[str, int]:
        """By optimizer that `a` has looked at when `b` goes on: the step at which `b` first does, if ever."""
        if not self.offset:
            return {}
        last = Course(self.a).last_steps
        whole = len(self.a.steps) > self.a.last
        over = {number: self.a.last + 1 for number, step in last.items() if whole and step <= self.offset}
        starts = Course(self.b).starts.items()
        return over | {number_of(name): self.offset + later + 1 for later, names in starts if later for name in names}

    def places(self, step: int, channel: str, name: str = "") -> tuple[tuple[int, str], tuple[int, str]]:
        """The step and the channel of each side, for a name in a channel at a step of `a`.

        What a resumed run starts from are the weights after the step before.
        """
        if channel == STARTS and self.offset and step == self.offset:
            starts = self.b.of(STARTS).items()
            line = next((line for line, weights in sorted(starts) if name in weights), 0)
            return (Course(self.a).place(name, step), "weights"), (line, STARTS)
        return (step, channel), (step - self.offset, channel)

    def differing(self, step: int, channel: str) -> list[str]:
        """The names whose hashes differ."""
        both = self.hashes(step, channel)
        if both is None:
            return []
        ours, theirs = both
        held = ours.keys() & theirs.keys() if self.partial else ours.keys() | theirs.keys()
        return [name for name in sorted(held, key=natural) if ours.get(name) != theirs.get(name)]


def _last_batches(found: dict[str, str], like: dict[str, str]) -> dict[str, str]:
    """As many of a step's last batches as the other one had; they are called `0.image`, `1.image`, ...

    A resumed run may go through the data from the beginning, and pass over what it has trained on.
    """
    if not all(NUMBERED.match(name) for name in found | like):
        return found
    last, wanted = (max((int(name.partition(".")[0]) for name in names), default=0) for names in (found, like))
    parts = [(name.partition("."), code) for name, code in found.items()]
    more = max(last - wanted, 0)
    return {f"{int(n) - more}{dot}{rest}": code for (n, dot, rest), code in parts if int(n) >= more}


@dataclass(frozen=True)
class Among:
    """The process that differs first, of several that are no ranks."""

    number: int
    count: int
    overtaken: tuple[int, str, int, int] | None
    """A process, in which run, that starts from the weights after a step of another one: step, process."""

    def __str__(self) -> str:
        return f"process {self.number} of {self.count}"


@dataclass
class Difference:
    """The first difference of two records."""

    step: int | None
    """As the first record counts; None for outputs."""
    channel: str
    names: list[str]
    pair: Pair | None = None
    """The processes that differ; None for outputs."""
    lengths: tuple[int, int] | None = None
    """How far both come, where all that both hashed is equal, and one goes on."""
    equal_before: int | None = None
    """The last step before it that both hashed."""
    ranks: list[int] = field(default_factory=list)
    """All that diverge in this step and channel, where several ranks train."""
    went_on: dict[int, list[int]] = field(default_factory=dict)
    """By step the ranks that go on after it, where that is not one step for all."""
    among: Among | None = None
    """Which of several processes that differs, where they are no ranks."""

    def as_json(self) -> dict[str, Any]:
        ranks = {"ranks": self.ranks} if self.ranks else {}
        return {"step": self.step, "channel": self.channel, "name": self.names[0] if self.names else None} | ranks


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Names as people order them: `layers.2` before `layers.10`. A longer number is the larger one, of any length."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
    return [(index % 2 == 1, len(part) if index % 2 else 0, part) for index, part in enumerate(parts)]


def pairs(a: Record, b: Record, resumed: bool | None = None) -> list[Pair]:
    """The processes of two records side by side.

    `resumed`: b goes on where a run like a was stopped; False where both begin at the beginning, None if unknown.
    """
    found = []
    for ours, theirs in zip_longest(a.processes, b.processes):
        if ours is None or theirs is None:
            break
        called = CALLED[resumed]
        alignment = Alignment() if resumed is False else align(ours, theirs, bool(resumed))
        found.append(Pair(ours, aligned(theirs, alignment), alignment.after, called))
    return found


def check_comparable(a: Record, b: Record) -> None:
    """UsageError where two records are of different programs, or share nothing that could be compared."""
    if not a.steps and not b.steps and not (a.outputs.keys() & b.outputs.keys()):
        raise UsageError(
            f"compare: nothing that both records hold can be compared: no step was seen in {a.path} or {b.path}, and "
            "no output has the same name; record the command with --output"
        )
    if bool(a.steps) != bool(b.steps) and not (a.outputs.keys() & b.outputs.keys()):
        raise UsageError(
            f"compare: {a.path} holds {a.steps} steps, {b.path} {b.steps}; compare two records of one program"
        )
    names = [{name for process in one.processes for name in process.weights} for one in (a, b)]
    if all(names) and not names[0] & names[1]:
        raise UsageError(
            f"compare: the records are of different programs: no weight of {a.path} has the name of one of {b.path} "
            f"({min(names[0])} and {min(names[1])}); compare two records of one program"
        )


def first_difference(a: Record, b: Record, resumed: bool | None = None) -> Difference | None:
    """Where two records diverge, or None where all that both hold is equal.

    `resumed` as in pairs(). A generator that differs, and that neither run draws from, is no difference: nobody seeds
    what he does not use.
    """
    both = pairs(a, b, resumed)
    found = [found for pair in both if (found := _of_pair(pair))]
    if len(a.processes) != len(b.processes) and not found:
        return _of_count(a, b, resumed)
    if found:
        first = min(found, key=_order)
        ranks = {one.pair.a.rank for one in found if one.pair and _order(one) == _order(first)}
        if len({process.rank for process in a.processes}) > 1:
            first.ranks = sorted(rank for rank in ranks if rank is not None)
            first.went_on = _went_on(both)
        elif len(a.processes) > 1:
            number = next(n for n, pair in enumerate(both, 1) if first.pair and pair.a is first.pair.a)
            seen = [*_overtaken(a, both[0].called[0]), *_overtaken(b, both[0].called[1])]
            first.among = Among(number, len(a.processes), min(seen, key=lambda one: one[0] != number, default=None))
        return first
    names = [name for name in sorted(a.outputs | b.outputs) if a.outputs.get(name) != b.outputs.get(name)]
    return Difference(None, OUTPUTS, names, equal_before=min(a.steps, b.steps) or None) if names else None


def _overtaken(record: Record, called: str) -> Iterator[tuple[int, str, int, int]]:
    """The processes that start from weights that another one of the run has trained."""
    starts = [process.steps.get(0, {}).get(STARTS) for process in record.processes]
    for number, own in enumerate(starts, 1):
        for other, process in enumerate(record.processes, 1):
            after = next((step for step, weights in sorted(process.of("weights").items()) if weights == own), None)
            if other != number and after is not None and own != starts[other - 1]:
                yield number, called, after, other


def _went_on(found: list[Pair]) -> dict[int, list[int]]:
    """By step the ranks that go on after it; nothing where that is one step for all."""
    steps = {pair.offset for pair in found}
    ranks = {step: [pair.a.rank for pair in found if pair.offset == step] for step in sorted(steps)}
    return {step: [rank for rank in of if rank is not None] for step, of in ranks.items()} if len(steps) > 1 else {}


def _order(found: Difference) -> tuple[int, int]:
    """By step, then by channel in the order of cause."""
    return found.step or 0, CHANNELS.index(found.channel)


def without_effect(a: Record, b: Record, resumed: bool | None = None) -> str:
    """Of two records that are the same: what drew other numbers or handed out another batch, as the end of a line."""
    found = pairs(a, b, resumed)
    names = {
        name
        for pair in found
        for step in pair.steps()
        for name in pair.differing(step, "generator")
        if name in pair.a.moving() | pair.b.moving()
    }
    batches = any(pair.differing(step, "batch") for pair in found for step in pair.steps())
    what = [f"{', '.join(f'`{name}`' for name in sorted(names))} drew other numbers"] if names else []
    what += ["a loader handed out another batch"] if batches else []
    return f"; but {' and '.join(what)}, with no effect on what is seen" if what else ""


def _of_count(a: Record, b: Record, resumed: bool | None) -> Difference:
    """... of two runs from the beginning: one process took no step. UsageError where one of them was resumed."""
    if resumed is not False:
        raise UsageError(
            f"compare: {len(a.processes)} processes of {a.path} train, {len(b.processes)} of {b.path}; compare records with equally many"
        )
    more = max(a, b, key=lambda record: len(record.processes)).processes[min(len(a.processes), len(b.processes))]
    none = Process(more.name)
    pair = Pair(more, none, 0) if len(a.processes) > len(b.processes) else Pair(none, more, 0)
    return Difference(1, "weights", [], pair, lengths=(pair.a.last, pair.b.last))


def _of_pair(pair: Pair) -> Difference | None:
    steps = pair.steps()
    if pair.offset and pair.differing(pair.offset, STARTS):
        return Difference(pair.offset, STARTS, pair.differing(pair.offset, STARTS), pair)
    felt = next((step for step in steps if _is_felt(pair, step)), None)
    if felt is None:
        ends = pair.a.last, pair.b.last + pair.offset
        if ends[0] != ends[1] and steps and not pair.partial:
            return Difference(min(ends) + 1, "weights", [], pair, lengths=ends, equal_before=steps[-1])
        if not steps and (pair.a.last or pair.b.last):
            raise UsageError(
                "compare: no step was hashed in both records; record both with the same --every (trainer runs: "
                "with the same params.max_steps or params.trace_steps)"
            )
        return None
    until = [step for step in steps if step <= felt]
    for step in until:
        for channel in CHANNELS:
            names = _names(pair, step, channel, until)
            if names:
                before = [earlier for earlier in steps if earlier < step]
                return Difference(step, channel, names, pair, equal_before=before[-1] if before else None)
    return None


def _names(pair: Pair, step: int, channel: str, until: list[int]) -> list[str]:
    """What differs and can matter, of the steps until the first one whose results differ.

    A batch matters to its own step, or to the next one where it was asked for ahead; that of an evaluation to none.
    Before the first step, where no drawing may be seen yet, every generator matters.
    """
    names = pair.differing(step, channel)
    if channel == "batch":
        return names if step in until[-2:] else []
    if channel != "generator":
        return names
    drawn = [name for name in names if name in pair.a.moving() | pair.b.moving()]
    return drawn or (names if until == [0] else [])


def _is_felt(pair: Pair, step: int) -> bool:
    """Whether results of a step differ, not only what was drawn or handed out for it."""
    return any(pair.differing(step, channel) for channel in CHANNELS if channel not in ("batch", "generator"))
