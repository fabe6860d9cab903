"""The question `ranks`: does a training on another number of ranks see the same samples, and end with the same weights?

The samples of a step are compared over all ranks, in any order, as far as loaders of PyTorch show them; then the weights of
the first rank. Nothing is promised: a mean over ranks adds up in another order.
"""

from collections import Counter
from collections.abc import Sequence

from repro.compare.difference import Difference
from repro.compare.pairs import pairs
from repro.record.lines import STARTS
from repro.record.record import Record
from repro.text import counted
from repro.verify.judgment import StepJudgment, record_of
from repro.verify.trial import Trial

NO_STEP = "no step was seen with another number of ranks"
SPLIT = "the samples of each step until then are the same, in any order, so what is split among ranks decides: the order of sums, statistics of a batch, or dropout"
UNKNOWN = "the samples are not known; what is split among ranks decides, or each rank reads others (a guess)"


class Ranks(StepJudgment):
    """Samples of all ranks, and the weights of the first."""

    def obstacle(self, trial: Trial) -> str | None:
        trial.incomparable = True  # as many weights as ranks
        return None if record_of(trial).steps else NO_STEP

    def difference(self, trial: Trial) -> Difference | None:
        a, b = self.records(trial)
        pair = pairs(a, b, False)[0]
        steps = pair.steps()
        for step in steps:
            ours, theirs = _samples(a, step), _samples(b, step)
            if ours is not None and theirs is not None and ours != theirs:
                return Difference(step, "batch", pair.differing(step, "batch"), pair)
            for channel in (STARTS, "weights"):
                if names := pair.differing(step, channel):
                    return Difference(step, channel, names, pair)
        if pair.a.last != pair.b.last:
            ends = pair.a.last, pair.b.last
            return Difference(min(ends) + 1, "weights", [], pair, lengths=ends, equal_before=steps[-1])
        return None

    def cause(self, trial: Trial, difference: Difference) -> str:
        return f"{trial.change.label}: {_why(difference, *self.records(trial))}"

    def sameness(self, trials: Sequence[Trial]) -> str:
        steps = counted(record_of(self.baseline).steps, "step")
        return f"{len(trials) + 1} runs, {steps}: the same samples in any order, and the same weights of the first rank"


def _why(difference: Difference, a: Record, b: Record) -> str:
    step, here = difference.step or 0, len(a.processes)
    if difference.channel == STARTS:
        return "the initial weights depend on the number of ranks"
    if difference.lengths:
        return f"{difference.lengths[0]} steps with {counted(here, 'rank')}, {difference.lengths[1]} with {len(b.processes)}"
    ours, theirs = _samples(a, step), _samples(b, step)
    if difference.channel != "batch":
        return UNKNOWN if ours is None or theirs is None else SPLIT
    assert ours is not None and theirs is not None
    if ours.total() != theirs.total():
        return f"step {step} is made of {counted(ours.total(), 'sample')} with {counted(here, 'rank')}, of {theirs.total()} with {len(b.processes)}: divide the batch by the number of ranks"
    others = (theirs - ours).total()
    return f"{others} of the {theirs.total()} samples of step {step} are others: what a rank reads depends on the number of ranks"


def _samples(record: Record, step: int) -> Counter[str] | None:
    """The samples of a step over all ranks; None where those of a batch are not known."""
    lines = [process.lines.get(step) for process in record.processes]
    batches = [batch for line in lines if line for batch in line.samples.values()]
    if not batches or any(batch.rows is None for batch in batches):
        return None
    return Counter(row for batch in batches for row in batch.rows or ())
