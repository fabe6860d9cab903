"""The first divergence of two records.

The first step, and of that step the first channel in the order of cause.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from repro.compare import files, metrics
from repro.compare.metrics import METRICS, MetricDifference
from repro.compare.names import number_of
from repro.compare.pairs import Pair, natural, pairs
from repro.errors import UsageError
from repro.record.lines import CHANNELS, COPIES, PASSES, SCALARS, SCALE, STARTS, Process
from repro.record.record import OUTPUTS, Record

DRAWN = ("batch", "generator")
"""The channels that may differ without an effect."""


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
    """The step in which they diverge, as the first record counts; None for outputs."""
    channel: str
    names: list[str]
    pair: Pair | None = None
    """The processes that differ; None for outputs."""
    lengths: tuple[int, int] | None = None
    """The last steps of both, where all that both hashed is equal and one goes on."""
    equal_before: int | None = None
    """The last step before it that both hashed."""
    ranks: list[int] = field(default_factory=list)
    """All ranks that diverge in this step and channel, if several ranks train."""
    went_on: dict[int, list[int]] = field(default_factory=dict)
    """The ranks that go on after each step, if that is not one step for all."""
    among: Among | None = None
    """The process that differs, of several that are not ranks."""
    measured: MetricDifference | None = None
    """The value of a metric that differs, where no step does."""
    inside: str | None = None
    """The key in which the first output differs, in words, where that is known."""
    untrained: bool = False
    """True if outputs differ in nothing that is trained, such as a time."""
    beside: Pair | None = None
    """For outputs: the first processes of both, all of whose steps are equal."""

    def as_json(self) -> dict[str, Any]:
        ranks = {"ranks": self.ranks} if self.ranks else {}
        at = {"at": self.measured.metric.at} if self.measured else {}
        return {"step": self.step, "channel": self.channel, "name": self.names[0] if self.names else None} | ranks | at


def check_comparable(a: Record, b: Record) -> None:
    """Raises UsageError if two records are of different programs, or share nothing that could be compared."""
    if not a.steps and not b.steps and not (a.files & b.files) and not metrics.compared(a, b):
        raise UsageError(
            f"compare: nothing that both records hold can be compared: no step was seen in {a.path} or {b.path}, and "
            "no output and no metric has the same name; record the command with --output"
        )
    seen = [
        any(process.steps for process in one.processes) for one in (a, b)
    ]  # including what was there before the first step
    if seen[0] != seen[1] and not (a.files & b.files):
        raise UsageError(
            f"compare: {a.path} holds {a.steps} steps, {b.path} {b.steps}; compare two records of one program"
        )
    names = [{name for process in one.processes for name in process.weights} for one in (a, b)]
    both = pairs(a, b) if all(names) and not names[0] & names[1] else []
    if both and not any(pair.a.weights.keys() & pair.b.weights.keys() for pair in both):
        raise UsageError(
            f"compare: the records are of different programs: no weight of {a.path} has the name of one of {b.path} "
            f"({min(names[0])} and {min(names[1])}); compare two records of one program"
        )


def first_difference(a: Record, b: Record, resumed: bool | None = None, lenient: bool = False) -> Difference | None:
    """Finds where two records diverge; None if all that both hold is equal.

    `resumed` as in pairs(), `lenient` as in files.compare(), as it is of a resumed run. A generator that neither run draws from is ignored: nobody seeds what they do not use.
    """
    both = pairs(a, b, resumed)
    differences = [one for pair in both if (one := _of_pair(pair))]
    if len(a.processes) != len(b.processes) and not differences:
        return _of_count(a, b, resumed)
    if differences:
        first = min(differences, key=_order)
        ranks = {one.pair.a.rank for one in differences if one.pair and _order(one) == _order(first)}
        if len({process.rank for process in a.processes}) > 1:
            first.ranks = sorted(rank for rank in ranks if rank is not None)
            first.went_on = _went_on(both)
        elif len(a.processes) > 1:
            number = next(n for n, pair in enumerate(both, 1) if first.pair and pair.a is first.pair.a)
            ours, theirs = {*_overtaken(a)}, {*_overtaken(b)}
            raced = [(one, both[0].called[one not in ours]) for one in sorted(ours ^ theirs)]
            seen = [(process, called, step, other) for (process, step, other), called in raced]
            first.among = Among(number, len(a.processes), min(seen, key=lambda one: one[0] != number, default=None))
        return first
    ends = min(a.steps, b.steps) or None
    # After the same steps a score alone decides: another name may be that of a time. A resumed run may average anew.
    scores = ends is not None or resumed is None
    measured = None if resumed or any(pair.offset for pair in both) else metrics.first(a, b, scores)
    if measured:
        return Difference(None, METRICS, [measured.metric.name], equal_before=ends, measured=measured)
    of_outputs = of_files(a, b, lenient or resumed is True or any(pair.offset for pair in both))
    return replace(of_outputs, beside=next(iter(both), None)) if of_outputs else None


def of_files(a: Record, b: Record, lenient: bool = False) -> Difference | None:
    """The difference of two runs whose steps are equal; `lenient` as in files.compare()."""
    names = [name for name in sorted(a.outputs | b.outputs) if a.outputs.get(name) != b.outputs.get(name)]
    own = files.compare(a, b, lenient).differing
    keys = [*files.explained(a, b, names), *((text, True) for text in own.values())]
    trained = [text for text, is_trained in keys if is_trained]
    inside = next(iter([*trained, *(text for text, _ in keys)]), None)
    untrained = len(keys) == len(names) + len(own) and not trained
    names += own
    if not names:
        return None
    before = min(a.steps, b.steps) or None
    return Difference(None, OUTPUTS, names, equal_before=before, inside=inside, untrained=untrained)


def _overtaken(record: Record) -> Iterator[tuple[int, int, int]]:
    """The processes that start from weights that another one of the run has trained, and trains further.

    What does so after one step in both runs is no race: it reads a checkpoint of the other one.
    """
    starts = [process.steps.get(0, {}).get(STARTS) for process in record.processes]
    for number, own in enumerate(starts, 1):
        for other, process in enumerate(record.processes, 1):
            after = next((step for step, weights in sorted(process.of("weights").items()) if weights == own), None)
            if after is None or other == number or own == starts[other - 1]:
                continue
            if after < process.last or _earlier(record.processes[number - 1], process):
                yield number, after, other


def _earlier(a: Process, b: Process) -> bool:
    """True if a process started before another one, by their process numbers."""
    return a.about.pid is not None and b.about.pid is not None and a.about.pid < b.about.pid


def race(record: Record) -> str | None:
    """Evidence that processes of one run train the same weights, though another run may do it alike; None without."""
    for number, after, other in _overtaken(record):
        if _earlier(record.processes[number - 1], record.processes[other - 1]):
            return (
                f"process {number} starts from the weights after step {after} of process {other}, which was started later: "
                "they train the same weights, or one reads what the other has written, and which comes first may change from run to run"
            )
    return None


def _went_on(both: list[Pair]) -> dict[int, list[int]]:
    """The ranks that go on after each step; empty if that is one step for all."""
    if any(pair.differing(pair.offset, STARTS) for pair in both if pair.offset):
        return {}  # where a rank starts from other weights, nothing says which step they are of
    steps = {pair.offset for pair in both}
    ranks = {step: [pair.a.rank for pair in both if pair.offset == step] for step in sorted(steps)}
    return {step: [rank for rank in of if rank is not None] for step, of in ranks.items()} if len(steps) > 1 else {}


def _order(difference: Difference) -> tuple[int, int]:
    """A sort key: the step, then the channel in the order of cause."""
    return difference.step or 0, CHANNELS.index(difference.channel)


def ignore_idle_generators(a: Record, b: Record) -> None:
    """Marks, in the first of two equal records, the generators that differ: they are no difference of another run."""
    for pair in pairs(a, b, False):
        pair.a.ignored |= {name for step in pair.steps() for name in pair.differing(step, "generator")}


def without_effect(a: Record, b: Record, resumed: bool | None = None) -> str:
    """The end of a line about two equal records: what drew other numbers or handed out another batch, without effect."""
    both = pairs(a, b, resumed)
    names = {
        name
        for pair in both
        for step in pair.steps()
        for name in [*pair.differing(step, "generator"), *_ignored(pair, step)]
        if name in pair.a.moving() | pair.b.moving()
    }
    batches = any(pair.differing(step, "batch") for pair in both for step in pair.steps())
    what = [f"{', '.join(f'`{name}`' for name in sorted(names))} drew other numbers"] if names else []
    what += ["a loader handed out another batch"] if batches else []
    return f"; but {' and '.join(what)}, with no effect on what is seen" if what else ""


def _ignored(pair: Pair, step: int) -> list[str]:
    """The generators that differ and are no difference, as two equal runs have them in different states."""
    ours, theirs = pair.hashes(step, "generator") or ({}, {})
    return [name for name in pair.a.ignored if ours.get(name) != theirs.get(name)]


def _of_count(a: Record, b: Record, resumed: bool | None) -> Difference:
    """The difference of two runs from the beginning of which one took no step. UsageError where one was resumed."""
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
    if not pair.offset and pair.a.begun != pair.b.begun and not pair.partial:
        return Difference(min(pair.a.begun, pair.b.begun) + 1, STARTS, [], pair)
    felt = next((step for step in steps if _changes_results(pair, step)), None)
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
    if pair.offset and pair.differing(pair.offset, "optimizer"):
        return Difference(pair.offset, "optimizer", pair.differing(pair.offset, "optimizer"), pair)
    until = [step for step in steps if step <= felt]
    for step in until:
        for channel in CHANNELS:
            names = _names(pair, step, channel, until)
            if names:
                before = [earlier for earlier in steps if earlier < step]
                return Difference(step, channel, names, pair, equal_before=before[-1] if before else None)
    return None


def _names(pair: Pair, step: int, channel: str, until: list[int]) -> list[str]:
    """Names that differ and can matter, of the steps until the first one whose results differ.

    A batch matters to its own step, or to the next one where it was asked for ahead; that of an evaluation to none.
    A number matters to its own step; a counter to none, as its schedule sets a number, too.
    Before the first step, where no drawing may be seen yet, every generator matters.
    """
    names = pair.differing(step, channel)
    if channel == "batch":
        return names if step in until[-2:] else []
    if channel == SCALARS:
        return [name for name in names if decides(name)] if step == until[-1] else []
    if channel == COPIES:
        return _copies(pair, step)
    if channel != "generator":
        return names
    drawn = [name for name in names if name in pair.a.moving() | pair.b.moving()]
    return drawn or (names if until == [0] else [])


def decides(scalar: str) -> bool:
    """True if a number of a step decides its bits: backward passes, a group's option, the scale of the loss."""
    return scalar in (PASSES, SCALE) or (bool(number_of(scalar)) and not scalar.endswith(".initial_lr"))


def _changes_results(pair: Pair, step: int) -> bool:
    """True if results of a step differ, not only its inputs."""
    given = (*DRAWN, SCALARS, COPIES)
    return any(pair.differing(step, channel) for channel in CHANNELS if channel not in given) or bool(
        _copies(pair, step)
    )


def _copies(pair: Pair, step: int) -> list[str]:
    """The copies of the weights that differ, and matter: both have them, they change, and they differ to the end.

    A checkpoint in memory, the initial weights, or those of any step are no result.
    """
    seen = sorted(pair.a.of(COPIES).items())
    last = max((step for step in pair.steps() if pair.hashes(step, COPIES)), default=0)
    names = {*pair.differing(step, COPIES)} & {*pair.differing(last, COPIES)}
    both = pair.hashes(step, COPIES) or ({}, {})
    weights = {
        each for channel in ("weights", STARTS) for hashes in pair.a.of(channel).values() for each in hashes.values()
    }
    return [
        name
        for name in sorted(names & both[0].keys() & both[1].keys(), key=natural)
        if both[0][name] not in weights and len({hashes.get(name) for _, hashes in seen}) > 1
    ]
