"""Numbers of steps, and the weights that a run starts from."""

from repro.compare.alignment import align
from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.record.lines import STARTS
from repro.text import ranks


@rule(HASHES, "let both train the same number of steps")
def one_run_ends_sooner(case: Case) -> str | None:
    """All steps that both have are equal, and one of them has more."""
    lengths = case.found.lengths
    if not lengths:
        return None
    if min(lengths) == 0:
        return f"one run took no step, the other {max(lengths)}"
    return f"one run ends after step {min(lengths)}, the other after step {max(lengths)}, from equal results until then"


@rule(HASHES, "give each run a separate folder")
def one_begins_later(case: Case) -> str | None:
    """One run counts on from the steps of an earlier one."""
    begun = case.pair.a.begun, case.pair.b.begun
    if case.pair.offset or begun[0] == begun[1] or case.found.names:
        return None
    later = case.pair.called[begun.index(max(begun))]
    return f"{later} continues after step {max(begun)}, like a run that resumes from what an earlier run left"


@rule(HASHES, "give each run a separate folder")
def started_from_an_earlier_run(case: Case) -> str | None:
    """One run starts from the weights after a step of the other."""
    old = align(case.pair.a, case.pair.b).after if not case.pair.offset and case.step == 0 else 0
    if not old:
        return None
    a, b = case.pair.called
    return f"{b} starts from the weights of step {old} of {a}: it went on from what an earlier run had left"


@rule(HASHES, "let all ranks read the newest checkpoint that all of them have written")
def ranks_went_on_after_different_steps(case: Case) -> str | None:
    """Ranks of one resumed run go on after different steps."""
    after = case.found.went_on
    if not after or case.channel == STARTS:
        return None
    each = ", ".join(f"{ranks(numbers)} after step {step}" for step, numbers in after.items())
    return f"not all ranks continue after the same step: {each}; they read checkpoints of different steps"


@rule(HASHES, "let one process change the weights at a time")
def processes_train_the_same_weights(case: Case) -> str | None:
    """A process is now before another one, now behind it, as in Hogwild."""
    among = case.found.among
    if not among or not among.overtaken or case.draws:
        return None
    process, run, step, other = among.overtaken
    return (
        f"process {process} of {run} starts from the weights after step {step} of process {other}: "
        "they train the same weights, or one reads what the other has written, and which comes first changes from run to run"
    )


RULES: tuple[Rule, ...] = (
    one_run_ends_sooner,
    processes_train_the_same_weights,
    one_begins_later,
    started_from_an_earlier_run,
    ranks_went_on_after_different_steps,
)
