"""Other batches, and generators in another state."""

from collections.abc import Sequence
from itertools import count

from repro.compare.pairs import Pair
from repro.compare.reasons.case import GUESS, HASHES, Case, Reason, Rule, rule
from repro.text import listed

UNSEEDED = "TensorFlow has no seed, so what it draws, such as the order of a tf.data shuffle, is new in each run: call tf.random.set_seed"
SAVE_GENERATORS = "save the state of each random generator with the checkpoint, and set it when resuming"
SAVE_PLACE = "save the place in the data with the checkpoint, and go on there"
SEED = "set the seed of each generator before anything draws"


@rule(GUESS, SAVE_GENERATORS)
def generator_not_restored(case: Case) -> str | None:
    """The generator of the first resumed step is in the state of an earlier step; whether what differs is drawn from it, no hash shows."""
    old = old_state(case) if case.draws and case.first_resumed else None
    if old is None or old[1] > case.step:
        return None
    other = (
        ", or for another reason, such as the place in the data or the number of the epoch"
        if case.channel == "batch"
        else ""
    )
    return f"{_at(case, *old)}: the random generator was not restored, so {_old_draws(case)}{other}"


@rule(HASHES, "draw as many numbers in each run, whatever is logged, evaluated or read from a cache")
def generator_drew_more(case: Case) -> str | None:
    """One run's generator is in a state that the other run's has at another step; a resumed one's at a later step."""
    in_the_middle = (case.pair.offset == 0 and case.step > 0) or case.first_resumed
    old = old_state(case) if case.draws and in_the_middle else None
    if old is None or (case.first_resumed and old[1] < case.step):
        return None
    name, step = old
    how = "drew more, or was set forward" if step > case.step else "drew less, or was set back"
    return f"{_at(case, name, step)}: until then it {how}"


@rule(GUESS, "make each sample from its index alone, or save what else the data set holds with the checkpoint")
def part_of_a_batch(case: Case) -> str | None:
    """A part of the batch is equal, and no other step has it, so the place in the data is right; another part differs."""
    both = case.pair.hashes(case.step, "batch") if case.channel == "batch" and not case.generators else None
    ours, theirs = both or ({}, {})
    equal = [name for name, code in ours.items() if theirs.get(name) == code and _is_of_one_step(case.pair, code)]
    if not equal:
        return None
    return (
        f"of the batch {listed(equal)} is equal, so the place in the data is right, and {case.names} is not: it is made of what the data set "
        "or its workers hold beside the samples, as a cache that changes, or drawn from a generator that cannot be seen"
    )


@rule(HASHES, SAVE_PLACE)
def old_batches_again(case: Case) -> str | None:
    """The first batches of a resumed run are those of other steps of the whole run, one after another."""
    begin, length = batches_of_others(case.pair, case.step) if case.draws and case.first_resumed else (0, 0)
    if length < 3 or begin > case.step:  # of a few batches, two may follow each other by chance
        return None
    a, b = case.pair.called
    return (
        f"the first {length} batches of {b} are those of steps {begin} to {begin + length - 1} of {a}: "
        "the place in the data, the number of the epoch, or the generator that orders it was not restored, or is of another step than the weights"
    )


@rule(GUESS, SAVE_PLACE)
def resumed_with_an_old_batch(case: Case) -> str | None:
    """The first batch of a resumed run is one that the whole run had at another step."""
    begin, length = batches_of_others(case.pair, case.step) if case.draws and case.first_resumed else (0, 0)
    if not length:
        return None
    a, b = case.pair.called
    if begin > case.step:
        return f"the first batch of {b} is that of step {begin} of {a}: those before it were passed over, or taken by steps that were skipped"
    return (
        f"the first batch of {b} is that of step {begin} of {a}: "
        "the place in the data, the number of the epoch, or the generator that orders it was not restored, or is of another step than the weights"
    )


@rule(GUESS, SAVE_GENERATORS)
def resumed_with_an_unknown_state(case: Case) -> str | None:
    """The generator of the first resumed step is in a state that the whole run never had."""
    if not case.draws or not case.first_resumed or not case.generators:
        return None
    a, _ = case.pair.called
    return (
        f"the generator {listed(case.generators)} is in a state that {a} never had: it was not restored, or it was and something drew since: "
        "a sampler that orders the epoch anew, a batch that is fetched ahead, or the start of a DataLoader's workers"
    )


@rule(GUESS, SAVE_PLACE)
def resumed_elsewhere_in_the_data(case: Case) -> str | None:
    """The first batch of a resumed run is another, though the generators are equal."""
    if not case.draws or not case.first_resumed:
        return None
    equal = "" if case.generators else ", from equal generators"
    return f"another batch{equal}: the place in the data, or the number of the epoch, was not restored"


@rule(GUESS, SEED)
def generators_differ_from_the_start(case: Case) -> str | None:
    """The generators that are drawn from differ before the first step. A run may also have drawn more before it."""
    before_the_first = case.channel == "generator" and case.step == 0
    from_the_start = bool(case.generators) and case.pair.offset == 0 and bool(case.drawn_from(0))
    if not case.draws or not (before_the_first or (from_the_start and 0 in case.pair.steps())):
        return None
    names = case.found.names if case.step == 0 else case.generators
    anew = "python" in names and case.pair.b.about.forked
    forked = "; Python seeds `random` anew in a forked process" if anew else ""
    return (
        f"the random generators differ before the first step ({listed(names)}): "
        f"no seed is set, or one that changes from run to run, such as the time or the process number{forked}; or one run drew more before"
    )


@rule(GUESS, SEED)
def generator_draws_other_numbers(case: Case) -> str | None:
    """A generator is in another state, from a step in the middle on."""
    if not case.draws or not case.generators:
        return None
    return f"from step {case.step} on {listed(case.generators)} draws different numbers than before"


@rule(GUESS, SEED)
def another_batch_without_a_seed(case: Case) -> str | None:
    """Another batch; the generators differ before the first step, and nothing shows whether they are drawn from."""
    if not case.draws or not case.unlike_at_first:
        return None
    return f"another batch, and the random generators differ before the first step ({listed(case.unlike_at_first)}): no seed is set"


@rule(GUESS, "call tf.random.set_seed")
def another_batch_of_unseeded_tensorflow(case: Case) -> str | None:
    """Another batch, and TensorFlow has no seed."""
    return f"another batch, and {UNSEEDED}" if case.draws and case.tensorflow_is_unseeded else None


@rule(GUESS, "sort the set or the listing, or give the generator a seed")
def batches_in_another_order(case: Case) -> str | None:
    """Both runs have the same batches, in another order, from equal generators."""
    if not case.draws or not _same_batches_in_all(case.pair):
        return None
    return (
        "the same batches come in another order, and the generators that can be seen are equal: "
        "the order comes from a set or hash(), from a folder's listing, from workers, or from a generator that cannot be seen"
    )


@rule(GUESS, "sort the set or the listing, or give the generator a seed")
def another_batch(case: Case) -> str | None:
    """Another batch, from generators that are equal as far as they can be seen."""
    if not case.draws:
        return None
    return (
        "another batch, though the generators that can be seen are equal: its order comes from a set or hash(), or from a folder's listing, "
        "or it is drawn from a generator that cannot be seen, such as those in a DataLoader's workers, or by several threads from one"
    )


RULES: tuple[Rule, ...] = (
    generator_not_restored,
    generator_drew_more,
    part_of_a_batch,
    old_batches_again,
    resumed_with_an_old_batch,
    resumed_with_an_unknown_state,
    resumed_elsewhere_in_the_data,
    generators_differ_from_the_start,
    generator_draws_other_numbers,
    another_batch_without_a_seed,
    another_batch_of_unseeded_tensorflow,
    batches_in_another_order,
    another_batch,
)


def old_batches(case: Case) -> Reason:
    """The reason of a resumed run's batches where no generator decides."""
    rules = (part_of_a_batch, old_batches_again, resumed_with_an_old_batch, resumed_elsewhere_in_the_data)
    return next(known for rule in rules if (known := rule(case)))


def _at(case: Case, name: str, step: int) -> str:
    """Says which generator is in which old state."""
    a, b = case.pair.called
    return f"the generator `{name}` at step {case.step - case.pair.offset} of {b} is that of step {step} of {a}"


def _old_draws(case: Case) -> str:
    """The effect of a generator's old state, in words."""
    if case.channel == "batch":
        return "old batches come again"
    unseen = "a batch that cannot be seen, " if case.batch_unseen else ""
    return f"old numbers are drawn again, as for {unseen}dropout or augmentation"


def old_state(case: Case, names: Sequence[str] | None = None) -> tuple[str, int] | None:
    """A generator that B has at this step in a state that A had at another one, and that step; of some names, or of all."""
    both = case.pair.hashes(case.step, "generator")
    if both is None:
        return None
    for name in case.generators if names is None else names:
        for old, states in sorted(case.pair.a.of("generator").items()):
            if old not in (0, case.step) and states.get(name) == both[1].get(name, ""):
                return name, old
    return None


def batches_of_others(pair: Pair, step: int) -> tuple[int, int]:
    """The other step of A that had the batch of this one of B, and how many steps from there on B has, one after another."""
    whole, rest = pair.a.of("batch"), pair.b.of("batch")
    both, own = pair.hashes(step, "batch"), step - pair.offset
    if both is None:
        return 0, 0

    def alike(old: int) -> int:
        return next(n for n in count(1) if whole.get(old + n) != rest.get(own + n, {}))

    # A loader that begins may hand out one batch more, which it asks for ahead: as it did at its first step of all.
    begins = [old for old, batch in whole.items() if old != step and batch in (both[1], rest[own])]
    return max(((old, alike(old)) for old in begins), key=lambda found: (found[1], -found[0]), default=(0, 0))


def _is_of_one_step(pair: Pair, code: str) -> bool:
    """True if one step alone of A has a part of a batch, of several steps."""
    batches = [*pair.a.of("batch").values()]
    return len(batches) > 1 and sum(code in batch.values() for batch in batches) == 1


def _same_batches_in_all(pair: Pair) -> bool:
    ours, theirs = (sorted(map(str, one.of("batch").values())) for one in (pair.a, pair.b))
    return len(ours) > 1 and ours == theirs
