"""Why two records part, in a sentence. What only may be the reason is called a guess."""

from dataclasses import dataclass

from repro.compare.difference import Difference, Pair, offset
from repro.compare.facts import Cause, causes
from repro.record.record import STARTS, Record
from repro.text import MOST_NAMES, listed, ranks

UNSEEDED = (
    "TensorFlow has no seed, so what it draws, as the order of a tf.data shuffle, is new in each run: call "
    "tf.random.set_seed"
)
WATCHED = "watch."  # how the names of what repro.watch was given begin


@dataclass(frozen=True)
class Reason:
    """Why; `guess` where the hashes allow another reason as well."""

    text: str
    guess: bool = False

    def __str__(self) -> str:
        return f"{self.text} (a guess)" if self.guess else self.text


def reason(found: Difference) -> Reason:
    """What the hashes say about the cause of a difference."""
    pair, step = found.pair, found.step
    if pair is None or step is None:
        return _outputs(found)
    if found.lengths:
        return Reason(f"one run ends after step {min(found.lengths)}, the other after step {max(found.lengths)}")
    old = offset(pair.a, pair.b) if not pair.offset and step == 0 else 0
    if old:
        a, b = pair.called
        return Reason(f"{b} starts from the weights of step {old} of {a}: it went on from what an earlier run had left")
    first = step == pair.offset + 1
    if found.went_on and found.channel != STARTS:
        told = ", ".join(f"{ranks(numbers)} after step {after}" for after, numbers in found.went_on.items())
        return Reason(f"not all ranks go on after the same step: {told}; they read checkpoints of different steps")
    if found.channel in ("batch", "generator"):
        return _drawn(found, pair, step, resumed=pair.offset > 0 and first)
    if pair.offset and (first or step == pair.offset):
        return _resumed(found, pair, step)
    return _straight(found, pair, step)


def _outputs(found: Difference) -> Reason:
    """Only files differ."""
    if found.equal_before is None:
        return Reason("the files differ, and no step was seen, so nothing shows where that begins")
    return Reason(
        "the files differ, though every weight that was hashed is equal: they may hold a time, a random number, a "
        "path, an option of the command, or what no step shows, as an average of the weights or what comes after the "
        "last step",
        guess=True,
    )


# --- batches and generators -----------------------------------------------------------------------------------------


def _drawn(found: Difference, pair: Pair, step: int, resumed: bool) -> Reason:
    """Another batch, or another state of a generator."""
    a, b = pair.called
    again = _old_state(pair, step)
    if again and (resumed or (pair.offset == 0 and step > 0)):
        name, old = again
        where = f"the generator `{name}` at step {step - pair.offset} of {b} is that of step {old} of {a}"
        if resumed:
            return Reason(f"{where}: the random generator was not restored, so {_again(found, pair, step)}")
        return Reason(f"{where}: it was set back, or began again")
    old_batch = _old_batch(pair, step)
    if old_batch is not None and resumed:
        return Reason(
            f"the first batch of {b} is that of step {old_batch} of {a}: the place in the data, or the generator "
            "that orders it, was not restored, so old batches come again"
        )
    differing = _moving(pair, step)
    if resumed:
        if differing:
            return Reason(
                f"the generator {listed(differing)} is in a state that {a} never had: it was not restored, was seeded "
                "anew, or has drawn more or less since it was (a batch that is fetched ahead, or the start of a "
                "DataLoader's workers, draws as well)"
            )
        return Reason("another batch, from equal generators: the place in the data was not restored", guess=True)
    if (found.channel == "generator" and step == 0) or (differing and _unlike_from_the_start(pair)):
        return Reason(
            f"the random generators differ before the first step ({listed(found.names if step == 0 else differing)}): "
            "no seed is set, or one that changes from run to run, as the time or the number of the process"
        )
    if differing:
        return Reason(f"from step {step} on {listed(differing)} draws other numbers than before", guess=True)
    unlike = _unlike_at_first(pair)
    if unlike:
        return Reason(
            f"another batch, and the random generators differ before the first step ({listed(unlike)}): no seed is set",
            guess=True,
        )
    if _tensorflow_unseeded(pair):
        return Reason(f"another batch, and {UNSEEDED}", guess=True)
    if _shuffled(pair):
        return Reason(
            "the same batches come in another order, and the generators that can be seen are equal: the order comes "
            "from a set or hash(), from a folder's listing, from workers, or from a generator that cannot be seen",
            guess=True,
        )
    return Reason(
        "another batch, though the generators that can be seen are equal: its order comes from a set or hash(), or "
        "from a folder's listing, or it is drawn from a generator that cannot be seen, as those in a DataLoader's "
        "workers", guess=True,
    )  # fmt: skip


def _again(found: Difference, pair: Pair, step: int) -> str:
    """What an old state of a generator brings back."""
    if found.channel == "batch":
        return "old batches come again"
    unseen = "a batch that cannot be seen, " if pair.hashes(step, "batch") is None else ""
    return f"old numbers are drawn again, as for {unseen}dropout or augmentation"


def _moving(pair: Pair, step: int) -> list[str]:
    moving = pair.a.moving() | pair.b.moving()
    return [name for name in pair.differing(step, "generator") if name in moving]


def _unlike_from_the_start(pair: Pair) -> bool:
    return pair.offset == 0 and 0 in pair.steps() and bool(_moving(pair, 0))


def _unlike_at_first(pair: Pair) -> list[str]:
    """The generators that differ before the first step, where nothing later tells whether they are drawn from."""
    later = any(step > 1 for one in (pair.a, pair.b) for step in one.of("generator"))
    return [] if pair.offset or later else pair.differing(0, "generator")


def _tensorflow_unseeded(pair: Pair) -> bool:
    """Whether TensorFlow is there, and no run ever had the generator that tf.random.set_seed makes."""
    runs = (pair.a, pair.b)
    seeded = any("tensorflow" in states for one in runs for states in one.of("generator").values())
    return not seeded and all("tensorflow" in one.about.frameworks for one in runs)


def _old_state(pair: Pair, step: int) -> tuple[str, int] | None:
    """A generator that B has at a step in a state that A had at another one, and that step."""
    both = pair.hashes(step, "generator")
    for name in _moving(pair, step) if both else ():
        for old, states in sorted(pair.a.of("generator").items()):
            if old != step and old > 0 and both is not None and states.get(name) == both[1].get(name, ""):
                return name, old
    return None


def _old_batch(pair: Pair, step: int) -> int | None:
    both = pair.hashes(step, "batch")
    if both is None:
        return None
    return next((old for old, batch in sorted(pair.a.of("batch").items()) if old != step and batch == both[1]), None)


def _shuffled(pair: Pair) -> bool:
    """Whether both saw the same batches in all."""
    ours, theirs = (sorted(map(str, one.of("batch").values())) for one in (pair.a, pair.b))
    return len(ours) > 1 and ours == theirs


# --- what is computed -----------------------------------------------------------------------------------------------


def _resumed(found: Difference, pair: Pair, step: int) -> Reason:
    """What differs at the first step of a resumed run, from the same batch."""
    names, (a, b) = listed(found.names), pair.called
    if found.channel == STARTS:
        return Reason(
            f"the weights that {b} starts from are those of no step of {a} ({names}): the checkpoint does not hold "
            "them, or they are changed when it is read"
        )
    both = pair.hashes(step, found.channel)
    equal = [name for name in sorted(both[0]) if name not in found.names] if both else []
    if found.channel == "weights" and all(name.startswith(WATCHED) for name in found.names) and equal:
        return Reason(
            f"of what repro.watch was given {listed(equal)} is equal, {names} is not: it was not restored", True
        )
    if found.channel in ("optimizer", "weights") and pair.hashes(step, "gradients") is None:
        data = ", the place in the data" if pair.hashes(step, "batch") is None else ""
        return Reason(
            f"from equal weights{_alike(pair, step)} {b} comes to others ({names}), and the gradients cannot be seen: "
            f"the optimizer's state{data}, or what the step draws was not restored", guess=True,
        )  # fmt: skip
    if found.channel == "optimizer":
        return Reason(
            f"{b} has the gradients of {a}, but another state of the optimizer ({names}): it was not restored"
        )
    if found.channel == "weights":
        if pair.hashes(step, "optimizer") is None:
            return Reason(
                "the gradients are equal, the weights after the step are not: the optimizer's state, which cannot be "
                "seen, or the learning rate was not restored", guess=True,
            )  # fmt: skip
        return Reason(
            "gradients and optimizer state are equal, the weights after the step are not: the learning rate, or its "
            "schedule, was not restored", guess=True,
        )  # fmt: skip
    if found.channel == "buffers":
        return Reason(f"the buffers differ ({names}): they were not restored", guess=True)
    return Reason(
        f"the first gradients after resuming differ from equal weights{_alike(pair, step)}: dropout that draws anew, "
        "buffers, the mode (train or eval), or a scale was not restored", guess=True,
    )  # fmt: skip


def _straight(found: Difference, pair: Pair, step: int) -> Reason:
    """What differs in two runs from the beginning."""
    if found.channel == STARTS:
        if _moving(pair, 0) or pair.differing(0, "generator"):
            return Reason("the initial weights differ, and so do the generators: no seed is set", guess=True)
        if _tensorflow_unseeded(pair):
            return Reason(f"the initial weights differ, and {UNSEEDED}", guess=True)
        return Reason(
            "the initial weights differ, though the generators that can be seen are equal: they are drawn from one "
            "that cannot be seen, or in another order, or read from another file", guess=True,
        )  # fmt: skip
    order = "an operation that adds in another order"
    if pair.sampled:
        return Reason(
            "one configuration, so one order of batches and one schedule: an operation gives other bits", True
        )
    settings = "other settings (learning rate, decay)"
    if found.channel in ("optimizer", "weights") and pair.hashes(step, "gradients"):
        return Reason(f"gradients are equal, what the optimizer makes of them is not: {settings}, or {order}", True)
    if found.channel in ("gradients", "optimizer", "weights"):
        other = "gradients" if found.channel == "gradients" else "results of the step, whose gradients cannot be seen"
        causes = [settings] * (found.channel != "gradients") + [order]
        if pair.hashes(step, "batch") is None:
            unlike = _unlike_at_first(pair)
            drawn = f": the generator {listed(unlike)} differs before the first step" if unlike else ""
            causes = [f"another batch{drawn}", *causes]
        return Reason(f"equal weights{_alike(pair, step)}, other {other}: {', or '.join(causes)}", guess=True)
    return Reason("the buffers differ, the weights do not: running means, or an operation in the forward pass", True)


def _alike(pair: Pair, step: int) -> str:
    if pair.hashes(step, "batch") is None:
        return " (the batch cannot be seen)"
    return " and an equal batch"


# --- recorded facts -------------------------------------------------------------------------------------------------


def differing_facts(a: Record, b: Record) -> list[Cause]:
    """The recorded facts that differ, most likely cause first."""
    return causes(a.facts, b.facts)


def beside_the_container(a: Record, b: Record) -> str:
    """The first few recorded facts that differ, but for the container itself, as the end of a sentence."""
    found = [cause for cause in differing_facts(a, b) if not cause.fact.startswith("container.")]
    named = ", ".join(f"{cause.fact}: {cause.a} and {cause.b}" for cause in found[:MOST_NAMES])
    return f"; recorded facts that differ: {named}" if found else "; no other recorded fact differs"
