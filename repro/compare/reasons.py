"""Why two records diverge: a list of named rules.

Each rule looks at the first difference, and either knows the reason or leaves it to the next one. A reason that the hashes
prove is said as it is; one that they only allow is called a guess.
"""

from collections.abc import Callable
from dataclasses import dataclass

from repro.compare.alignment import align
from repro.compare.difference import Difference
from repro.compare.facts import Cause, causes
from repro.compare.pairs import Pair
from repro.record.lines import STARTS
from repro.record.record import Record
from repro.text import MOST_NAMES, listed, ranks

UNSEEDED = "TensorFlow has no seed, so what it draws, as the order of a tf.data shuffle, is new in each run: call tf.random.set_seed"
OTHER_ORDER = "an operation that adds in another order"
OTHER_SETTINGS = "other settings (learning rate, decay)"
WATCHED = "watch."  # how the names of what repro.watch was given begin


@dataclass(frozen=True)
class Reason:
    """Why; `guess` where the hashes allow another reason as well."""

    text: str
    guess: bool = False

    def __str__(self) -> str:
        return f"{self.text} (a guess)" if self.guess else self.text


@dataclass(frozen=True)
class Case:
    """The first difference of two processes, and what the hashes around it say."""

    found: Difference
    pair: Pair
    step: int

    @property
    def channel(self) -> str:
        return self.found.channel

    @property
    def names(self) -> str:
        """The first few names that differ."""
        return listed(self.found.names)

    @property
    def first_resumed(self) -> bool:
        """Whether this is the first step of a resumed run."""
        return self.pair.offset > 0 and self.step == self.pair.offset + 1

    @property
    def resumed(self) -> bool:
        """Whether this is that step, or the weights that it starts from."""
        return self.first_resumed or (self.pair.offset > 0 and self.step == self.pair.offset)

    @property
    def draws(self) -> bool:
        """Whether another batch, or another state of a generator, comes first."""
        return self.channel in ("batch", "generator")

    @property
    def batch_unseen(self) -> bool:
        return self.pair.hashes(self.step, "batch") is None

    @property
    def generators(self) -> list[str]:
        """The generators that differ at this step, of those that are drawn from."""
        return _drawn_from(self.pair, self.step)


Rule = Callable[[Case], Reason | None]


def reason(found: Difference) -> Reason:
    """The reason of a difference, by the first rule that knows one."""
    if found.pair is None or found.step is None:
        return _files(found)
    case = Case(found, found.pair, found.step)
    return next(known for rule in RULES if (known := rule(case)))


def other_numerics(a: Record, b: Record) -> Reason | None:
    """Whether two records have another arithmetic: then that is the likely reason, wherever it shows first."""
    ours, theirs = (one.facts.get("portable_numerics") for one in (a, b))
    if ours == theirs:
        return None
    which = "have other options in the two" if ours and theirs else "are in one of the two alone"
    return Reason(f"portable numerics {which}", guess=True)


def _files(found: Difference) -> Reason:
    """Only output files differ."""
    if found.equal_before is None:
        return Reason("the files differ, and no step was seen, so nothing shows where that begins")
    return Reason(
        "the files differ, though every weight that was hashed is equal: they may hold a time, a random number, a path, an option of the command, "
        "or what no step shows, as an average of the weights or what comes after the last step",
        guess=True,
    )


# --- how far the runs go, and from where ------------------------------------------------------------------------------


def one_run_ends_sooner(case: Case) -> Reason | None:
    lengths = case.found.lengths
    if not lengths:
        return None
    if min(lengths) == 0:
        return Reason(f"one run took no step, the other {max(lengths)}")
    return Reason(f"one run ends after step {min(lengths)}, the other after step {max(lengths)}")


def one_begins_later(case: Case) -> Reason | None:
    begun = case.pair.a.begun, case.pair.b.begun
    if case.pair.offset or begun[0] == begun[1] or case.found.names:
        return None
    later = case.pair.called[begun.index(max(begun))]
    return Reason(f"{later} counts on after step {max(begun)}: it went on from what an earlier run had left")


def started_from_an_earlier_run(case: Case) -> Reason | None:
    old = align(case.pair.a, case.pair.b).after if not case.pair.offset and case.step == 0 else 0
    if not old:
        return None
    a, b = case.pair.called
    return Reason(f"{b} starts from the weights of step {old} of {a}: it went on from what an earlier run had left")


def ranks_went_on_after_different_steps(case: Case) -> Reason | None:
    after = case.found.went_on
    if not after or case.channel == STARTS:
        return None
    each = ", ".join(f"{ranks(numbers)} after step {step}" for step, numbers in after.items())
    return Reason(f"not all ranks go on after the same step: {each}; they read checkpoints of different steps")


def processes_train_the_same_weights(case: Case) -> Reason | None:
    """... and one is now before another, now behind it, as in Hogwild."""
    among = case.found.among
    if not among or not among.overtaken or case.draws:
        return None
    process, run, step, other = among.overtaken
    return Reason(
        f"process {process} of {run} starts from the weights after step {step} of process {other}: "
        "they train the same weights, and which of them comes first changes from run to run"
    )


# --- batches and generators -------------------------------------------------------------------------------------------


def generator_has_an_old_state(case: Case) -> Reason | None:
    in_the_middle = case.pair.offset == 0 and case.step > 0
    if not case.draws or not (case.first_resumed or in_the_middle):
        return None
    old = _old_state(case.pair, case.step)
    if old is None:
        return None
    name, step = old
    a, b = case.pair.called
    where = f"the generator `{name}` at step {case.step - case.pair.offset} of {b} is that of step {step} of {a}"
    if case.first_resumed:
        return Reason(f"{where}: the random generator was not restored, so {_old_draws(case)}")
    return Reason(f"{where}: it was set back, or began again")


def resumed_with_an_old_batch(case: Case) -> Reason | None:
    old = _old_batch(case.pair, case.step) if case.draws and case.first_resumed else None
    if old is None:
        return None
    a, b = case.pair.called
    return Reason(
        f"the first batch of {b} is that of step {old} of {a}: "
        "the place in the data, or the generator that orders it, was not restored, so old batches come again"
    )


def resumed_with_an_unknown_state(case: Case) -> Reason | None:
    if not case.draws or not case.first_resumed or not case.generators:
        return None
    a, _ = case.pair.called
    return Reason(
        f"the generator {listed(case.generators)} is in a state that {a} never had: it was not restored, or it was and something drew since: "
        "a sampler that orders the epoch anew, a batch that is fetched ahead, or the start of a DataLoader's workers"
    )


def resumed_elsewhere_in_the_data(case: Case) -> Reason | None:
    if not case.draws or not case.first_resumed:
        return None
    return Reason("another batch, from equal generators: the place in the data was not restored", guess=True)


def generators_differ_from_the_start(case: Case) -> Reason | None:
    before_the_first = case.channel == "generator" and case.step == 0
    from_the_start = bool(case.generators) and case.pair.offset == 0 and bool(_drawn_from(case.pair, 0))
    if not case.draws or not (before_the_first or (from_the_start and 0 in case.pair.steps())):
        return None
    names = case.found.names if case.step == 0 else case.generators
    anew = "python" in names and case.pair.b.about.forked
    forked = "; Python seeds `random` anew in a forked process" if anew else ""
    return Reason(
        f"the random generators differ before the first step ({listed(names)}): "
        f"no seed is set, or one that changes from run to run, as the time or the number of the process{forked}"
    )


def generator_draws_other_numbers(case: Case) -> Reason | None:
    if not case.draws or not case.generators:
        return None
    return Reason(f"from step {case.step} on {listed(case.generators)} draws other numbers than before", guess=True)


def another_batch(case: Case) -> Reason | None:
    """... from generators that are equal as far as they can be seen."""
    if not case.draws:
        return None
    unlike = _unlike_at_first(case.pair)
    if unlike:
        return Reason(
            f"another batch, and the random generators differ before the first step ({listed(unlike)}): no seed is set",
            guess=True,
        )
    if _tensorflow_is_unseeded(case.pair):
        return Reason(f"another batch, and {UNSEEDED}", guess=True)
    if _same_batches_in_all(case.pair):
        return Reason(
            "the same batches come in another order, and the generators that can be seen are equal: "
            "the order comes from a set or hash(), from a folder's listing, from workers, or from a generator that cannot be seen",
            guess=True,
        )
    return Reason(
        "another batch, though the generators that can be seen are equal: its order comes from a set or hash(), or from a folder's listing, "
        "or it is drawn from a generator that cannot be seen, as those in a DataLoader's workers",
        guess=True,
    )


# --- the first step of a resumed run, from the same batch -------------------------------------------------------------


def resumed_from_other_weights(case: Case) -> Reason | None:
    if not case.resumed or case.channel != STARTS:
        return None
    a, b = case.pair.called
    return Reason(
        f"the weights that {b} starts from are those of no step of {a} ({case.names}): "
        "the checkpoint does not hold them, or they are changed when it is read"
    )


def watched_state_not_restored(case: Case) -> Reason | None:
    if not case.resumed or case.channel != "weights":
        return None
    both = case.pair.hashes(case.step, case.channel)
    equal = [name for name in sorted(both[0]) if name not in case.found.names] if both else []
    if not equal or not all(name.startswith(WATCHED) for name in case.found.names):
        return None
    return Reason(
        f"of what repro.watch was given {listed(equal)} is equal, {case.names} is not: it was not restored", guess=True
    )


def resumed_to_other_weights(case: Case) -> Reason | None:
    """... whose gradients cannot be seen."""
    unseen = case.pair.hashes(case.step, "gradients") is None
    if not case.resumed or case.channel not in ("optimizer", "weights") or not unseen:
        return None
    _, b = case.pair.called
    data = ", the place in the data" if case.batch_unseen else ""
    return Reason(
        f"from equal weights{_batch(case)} {b} comes to others ({case.names}), and the gradients cannot be seen: "
        f"the optimizer's state{data}, or what the step draws was not restored",
        guess=True,
    )


def optimizer_not_restored(case: Case) -> Reason | None:
    if not case.resumed or case.channel != "optimizer":
        return None
    a, b = case.pair.called
    return Reason(
        f"{b} has the gradients of {a}, but another state of the optimizer ({case.names}): it was not restored"
    )


def learning_rate_not_restored(case: Case) -> Reason | None:
    if not case.resumed or case.channel != "weights":
        return None
    if case.pair.hashes(case.step, "optimizer") is None:
        return Reason(
            "the gradients are equal, the weights after the step are not: "
            "the optimizer's state, which cannot be seen, or the learning rate was not restored",
            guess=True,
        )
    return Reason(
        "gradients and optimizer state are equal, the weights after the step are not: "
        "the learning rate, or its schedule, was not restored",
        guess=True,
    )


def buffers_not_restored(case: Case) -> Reason | None:
    if not case.resumed or case.channel != "buffers":
        return None
    return Reason(f"the buffers differ ({case.names}): they were not restored", guess=True)


def resumed_with_other_gradients(case: Case) -> Reason | None:
    if not case.resumed:
        return None
    return Reason(
        f"the first gradients after resuming differ from equal weights{_batch(case)}: "
        "dropout that draws anew, buffers, the mode (train or eval), or a scale was not restored",
        guess=True,
    )


# --- two runs from the beginning --------------------------------------------------------------------------------------


def other_initial_weights(case: Case) -> Reason | None:
    if case.channel != STARTS:
        return None
    if _drawn_from(case.pair, 0) or case.pair.differing(0, "generator"):
        return Reason("the initial weights differ, and so do the generators: no seed is set", guess=True)
    if _tensorflow_is_unseeded(case.pair):
        return Reason(f"the initial weights differ, and {UNSEEDED}", guess=True)
    return Reason(
        "the initial weights differ, though the generators that can be seen are equal: "
        "they are drawn from one that cannot be seen, or in another order, or read from another file",
        guess=True,
    )


def operation_gives_other_bits(case: Case) -> Reason | None:
    """... as one configuration means one order of batches, and one schedule."""
    if not case.pair.sampled:
        return None
    return Reason("one configuration, so one order of batches and one schedule: an operation gives other bits", True)


def optimizer_gives_other_weights(case: Case) -> Reason | None:
    if case.channel not in ("optimizer", "weights") or not case.pair.hashes(case.step, "gradients"):
        return None
    return Reason(
        f"gradients are equal, what the optimizer makes of them is not: {OTHER_SETTINGS}, or {OTHER_ORDER}, "
        "or something else changed the weights between the steps",
        guess=True,
    )


def step_gives_other_results(case: Case) -> Reason | None:
    if case.channel not in ("gradients", "optimizer", "weights"):
        return None
    possible = [OTHER_ORDER] if case.channel == "gradients" else [OTHER_SETTINGS, OTHER_ORDER]
    results = "gradients" if case.channel == "gradients" else "results of the step, whose gradients cannot be seen"
    if case.batch_unseen:
        unlike = _unlike_at_first(case.pair)
        drawn = f": the generator {listed(unlike)} differs before the first step" if unlike else ""
        possible = [f"another batch{drawn}", *possible]
    if case.found.among:
        possible.append("another process that trains the same weights")
    return Reason(f"equal weights{_batch(case)}, other {results}: {', or '.join(possible)}", guess=True)


def other_buffers(case: Case) -> Reason | None:
    return Reason("the buffers differ, the weights do not: running means, or an operation in the forward pass", True)


RULES: tuple[Rule, ...] = (
    one_run_ends_sooner,
    processes_train_the_same_weights,
    one_begins_later,
    started_from_an_earlier_run,
    ranks_went_on_after_different_steps,
    generator_has_an_old_state,
    resumed_with_an_old_batch,
    resumed_with_an_unknown_state,
    resumed_elsewhere_in_the_data,
    generators_differ_from_the_start,
    generator_draws_other_numbers,
    another_batch,
    resumed_from_other_weights,
    watched_state_not_restored,
    resumed_to_other_weights,
    optimizer_not_restored,
    learning_rate_not_restored,
    buffers_not_restored,
    resumed_with_other_gradients,
    other_initial_weights,
    operation_gives_other_bits,
    optimizer_gives_other_weights,
    step_gives_other_results,
    other_buffers,
)
"""In the order in which they are asked; the last one always knows a reason."""


# --- what rules look at -----------------------------------------------------------------------------------------------


def _old_draws(case: Case) -> str:
    """What an old state of a generator brings back."""
    if case.channel == "batch":
        return "old batches come again"
    unseen = "a batch that cannot be seen, " if case.batch_unseen else ""
    return f"old numbers are drawn again, as for {unseen}dropout or augmentation"


def _batch(case: Case) -> str:
    return " (the batch cannot be seen)" if case.batch_unseen else " and an equal batch"


def _drawn_from(pair: Pair, step: int) -> list[str]:
    """The generators that differ at a step, of those that are drawn from."""
    moving = pair.a.moving() | pair.b.moving()
    return [name for name in pair.differing(step, "generator") if name in moving]


def _unlike_at_first(pair: Pair) -> list[str]:
    """The generators that differ before the first step, where nothing later shows whether they are drawn from."""
    later = any(step > 1 for one in (pair.a, pair.b) for step in one.of("generator"))
    return [] if pair.offset or later else pair.differing(0, "generator")


def _tensorflow_is_unseeded(pair: Pair) -> bool:
    """Whether TensorFlow is there, and no run ever had the generator that tf.random.set_seed makes."""
    runs = (pair.a, pair.b)
    seeded = any("tensorflow" in states for one in runs for states in one.of("generator").values())
    return not seeded and all("tensorflow" in one.about.frameworks for one in runs)


def _old_state(pair: Pair, step: int) -> tuple[str, int] | None:
    """A generator that B has at a step in a state that A had at another one, and that step."""
    both = pair.hashes(step, "generator")
    if both is None:
        return None
    for name in _drawn_from(pair, step):
        for old, states in sorted(pair.a.of("generator").items()):
            if old not in (0, step) and states.get(name) == both[1].get(name, ""):
                return name, old
    return None


def _old_batch(pair: Pair, step: int) -> int | None:
    """The other step of A that had the batch of this one of B."""
    both = pair.hashes(step, "batch")
    if both is None:
        return None
    return next((old for old, batch in sorted(pair.a.of("batch").items()) if old != step and batch == both[1]), None)


def _same_batches_in_all(pair: Pair) -> bool:
    ours, theirs = (sorted(map(str, one.of("batch").values())) for one in (pair.a, pair.b))
    return len(ours) > 1 and ours == theirs


# --- recorded facts ---------------------------------------------------------------------------------------------------


def differing_facts(a: Record, b: Record) -> list[Cause]:
    """The recorded facts that differ, most likely cause first."""
    return causes(a.facts, b.facts)


def facts_besides_the_container(a: Record, b: Record) -> str:
    """The first few recorded facts that differ, but for the container itself, as the end of a sentence."""
    found = [cause for cause in differing_facts(a, b) if not cause.fact.startswith("container.")]
    named = ", ".join(f"{cause.fact}: {cause.a} and {cause.b}" for cause in found[:MOST_NAMES])
    return f"; recorded facts that differ: {named}" if found else "; no other recorded fact differs"
