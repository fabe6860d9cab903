"""Processes of two records side by side."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from repro.compare.alignment import OF_OPTIMIZERS, Alignment, Course, align, aligned
from repro.compare.names import number_of, renamed
from repro.record.lines import CHANGED, STARTS, Process
from repro.record.record import Record

CALLED = {True: ("the whole run", "the resumed run"), False: ("the first run", "the second run"), None: ("A", "B")}
"""The names of two records in messages, by whether the second is a resumed run."""
NUMBERED = re.compile(r"\d{1,9}(\.|\Z)")  # the name of a batch


@dataclass(frozen=True)
class Pair:
    """A process of the first record, and the one of the second that does the same."""

    a: Process
    b: Process
    offset: int
    """Step n of `b` is step n + offset of `a`; more than 0 if `b` was resumed."""
    called: tuple[str, str] = ("A", "B")
    """The names of the two, for people."""
    beside: tuple[Process, ...] = ()
    """The other processes of the first record, such as ranks."""

    @property
    def sampled(self) -> bool:
        """True if a process chose what it wrote down, so that what only the other one has is no difference."""
        return self.a.sampled or self.b.sampled

    @property
    def partial(self) -> bool:
        """True if what only one process has is no difference."""
        return self.sampled or bool(self.a.unseen or self.b.unseen)

    def steps(self) -> list[int]:
        """The steps that both hashed, counted as `a` counts; step 0 only if `b` began at the beginning, too."""
        shared = {step + self.offset for step in self.b.steps if step > 0 or self.offset == 0} & self.a.steps.keys()
        return sorted(shared)

    def hashes(self, step: int, channel: str) -> tuple[dict[str, str], dict[str, str]] | None:
        """The hashes of a channel at a step of `a`, in both processes; None if one of them did not see it."""
        if channel == STARTS and self.offset and step == self.offset:
            return self._starts
        if channel == CHANGED:
            return self._changed(step)
        ours, theirs = self.a.steps.get(step, {}).get(channel), self.b.steps.get(step - self.offset, {}).get(channel)
        if ours is None or theirs is None:
            return None
        if channel == "optimizer" and self.offset and step == self.offset:
            return self._slots(ours, theirs)
        if channel == "batch" and self.offset and step == self.offset + 1:
            return _last_batches(ours, theirs), _last_batches(theirs, ours)
        if channel in OF_OPTIMIZERS and self._turns:
            ours = {name: code for name, code in ours.items() if self._turns.get(number_of(name), 0) <= step}
        if channel in OF_OPTIMIZERS:
            return self._unfinished(0, step, ours, theirs), self._unfinished(1, step - self.offset, theirs, ours)
        return ours, theirs

    def _unfinished(self, side: int, step: int, own: dict[str, str], others: dict[str, str]) -> dict[str, str]:
        """What a side has, without optimizers that only it still has and that step no more: Python may delete them later."""
        alone = {*map(number_of, own)} - {*map(number_of, others)}
        last = self._courses[side].last_steps
        over = {number for number in alone if last.get(number, 0) < step}
        return {name: code for name, code in own.items() if number_of(name) not in over} if over else own

    def _slots(self, ours: dict[str, str], theirs: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The state of the optimizer of `a` where `b` continues, and of `b` before its first step.

        Options of groups are left out: a schedule may change those between two steps.
        """
        numbers = {number_of(name) for name in self.b.steps[0].get(STARTS, {})}
        options = {name for name in ours if name.removeprefix(f"{number_of(name)}.").startswith("group ")}
        return {name: ours[name] for name in ours.keys() - options if number_of(name) in numbers}, theirs

    @cached_property
    def _courses(self) -> tuple[Course, Course]:
        return Course(self.a), Course(self.b)

    def _changed(self, step: int) -> tuple[dict[str, str], dict[str, str]] | None:
        """Weights that something changed after the step before, of one of them or both; None where one did not look."""
        ours, theirs = self.a.steps.get(step, {}).get(CHANGED), self.b.steps.get(step - self.offset, {}).get(CHANGED)
        if ours is None or theirs is None:
            return None
        steps = step - 1, step - self.offset - 1
        before = [
            {name: code for name in ours | theirs if (code := course.before(name, after)) is not None}
            for course, after in zip(self._courses, steps, strict=True)
        ]
        both = before[0].keys() & before[1].keys()
        return {name: before[0][name] for name in both}, {name: before[1][name] for name in both}

    @cached_property
    def _starts(self) -> tuple[dict[str, str], dict[str, str]] | None:
        """The weights that `a` has where `b` goes on, after its step or as the next begins, and those that `b` starts from.

        What another optimizer changes before, as both have it, is not what `b` starts from; nor is what both make later.
        """
        whole, rest = self._courses
        ours: dict[str, str] = {}
        theirs: dict[str, str] = {}
        for later, weights in rest.starts.items():
            for name, code in weights.items():
                then = whole.weight(name, self.offset)
                if whole.place(name, self.offset) <= self.offset and then == whole.weight(name, self.offset + later):
                    changed = whole.before(name, self.offset + later)
                    ours |= {} if then is None or changed is None else {name: then if code == then else changed}
                    theirs[name] = code
        return (ours, theirs) if theirs and ours else None

    @cached_property
    def _turns(self) -> dict[str, int]:
        """The step at which `b` first looks at each optimizer that `a` has looked at when `b` goes on, if ever."""
        if not self.offset:
            return {}
        last = self._courses[0].last_steps
        whole = len(self.a.steps) > self.a.last
        over = {number: self.a.last + 1 for number, step in last.items() if whole and step <= self.offset}
        starts = self._courses[1].starts.items()
        return over | {number_of(name): self.offset + later + 1 for later, names in starts if later for name in names}

    def places(self, step: int, channel: str, name: str = "") -> tuple[tuple[int, str], tuple[int, str]]:
        """The step and the channel of each side, for a name in a channel at a step of `a`.

        What a resumed run starts from are the weights after the step before.
        """
        if channel == STARTS and self.offset and step == self.offset:
            starts = self.b.of(STARTS).items()
            line = next((line for line, weights in sorted(starts) if name in weights), 0)
            return (self._courses[0].place(name, step), "weights"), (line, STARTS)
        if channel == CHANGED:
            return self._changed_at(self.a, name, step), self._changed_at(self.b, name, step - self.offset)
        return (step, channel), (step - self.offset, channel)

    @staticmethod
    def _changed_at(process: Process, name: str, step: int) -> tuple[int, str]:
        """The step and channel that hold the hash of a weight before a step: its own if something changed it."""
        if name in process.steps.get(step, {}).get(CHANGED, {}):
            return step, CHANGED
        place = Course(process).place(name, step - 1)
        return place, "weights" if place else STARTS

    def differing(self, step: int, channel: str) -> list[str]:
        """The names whose hashes differ."""
        both = self.hashes(step, channel)
        if both is None or both[0] == both[1]:
            return []
        ours, theirs = both
        held = ours.keys() & theirs.keys() if self.partial else ours.keys() | theirs.keys()
        held -= self.a.ignored if channel == "generator" else set()
        return [name for name in sorted(held, key=natural) if ours.get(name) != theirs.get(name)]


def _last_batches(hashes: dict[str, str], like: dict[str, str]) -> dict[str, str]:
    """The last n batches of a step, n the number that the other one had; they are called `0.image`, `1.image`, ...

    A resumed run may go through the data from the beginning, and pass over what it has trained on.
    """
    if not all(NUMBERED.match(name) for name in hashes | like):
        return hashes
    last, wanted = (max((int(name.partition(".")[0]) for name in names), default=0) for names in (hashes, like))
    parts = [(name.partition("."), code) for name, code in hashes.items()]
    more = max(last - wanted, 0)
    return {f"{int(n) - more}{dot}{rest}": code for (n, dot, rest), code in parts if int(n) >= more}


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Names as people order them: `layers.2` before `layers.10`. A longer number is the larger one, of any length."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
    return [(index % 2 == 1, len(part) if index % 2 else 0, part) for index, part in enumerate(parts)]


def pairs(a: Record, b: Record, resumed: bool | None = None) -> list[Pair]:
    """The processes of two records side by side.

    `resumed`: b goes on where a run like a was stopped; False where both begin at the beginning, None if unknown.
    """
    result = []
    for ours, theirs in zip_longest(a.processes, b.processes):
        if ours is None or theirs is None:
            break
        called = CALLED[resumed]
        begun = Alignment(names=renamed(ours, theirs, 0)) if resumed is False else None
        alignment = begun or align(ours, theirs, bool(resumed))
        beside = tuple(process for process in a.processes if process is not ours)
        result.append(Pair(ours, aligned(theirs, alignment), alignment.after, called, beside))
    return result
