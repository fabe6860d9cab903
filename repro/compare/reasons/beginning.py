"""Two runs from the beginning, with equal batches."""

from repro.compare.reasons.case import GUESS, HASHES, Case, Rule, rule
from repro.compare.reasons.draws import SEED, UNSEEDED
from repro.compare.reasons.rounded import rounded_to
from repro.record.lines import CHANGED, STARTS
from repro.text import listed

OTHER_ORDER = "an operation that adds in another order"
OTHER_SETTINGS = "different settings (learning rate, decay)"
DETERMINISTIC = "set the framework's deterministic mode, or one thread; `compare --narrow` finds the operation"


@rule(GUESS, SEED)
def initial_weights_without_a_seed(case: Case) -> str | None:
    """The initial weights differ, and so do the generators."""
    if case.channel != STARTS or not (case.drawn_from(0) or case.pair.differing(0, "generator")):
        return None
    return "the initial weights differ, and so do the generators: no seed is set"


@rule(GUESS, "call tf.random.set_seed")
def initial_weights_of_unseeded_tensorflow(case: Case) -> str | None:
    """The initial weights differ, and TensorFlow has no seed."""
    if case.channel != STARTS or not case.tensorflow_is_unseeded:
        return None
    return f"the initial weights differ, and {UNSEEDED}"


@rule(GUESS, "set the seed before the model is made")
def other_initial_weights(case: Case) -> str | None:
    """The initial weights differ, the generators that can be seen do not."""
    if case.channel != STARTS:
        return None
    return (
        "the initial weights differ, though the generators that can be seen are equal: "
        "they are drawn from one that cannot be seen, or in another order, or read from another file"
    )


@rule(HASHES, "look at what else the program does to the weights: clips, masks, averages")
def weights_changed_between_steps(case: Case) -> str | None:
    """Something other than an optimizer's step gives different weights, from equal ones."""
    if case.channel != CHANGED:
        return None
    rounded = [
        (kind, who) for side, who in enumerate(case.pair.called) if (kind := rounded_to(case, case.found.names, side))
    ]
    how = "".join(f", in {who} to numbers of {kind} alone" for kind, who in rounded)
    return (
        f"weights are equal after step {case.step - 1}, and differ when step {case.step} begins ({case.names}): "
        f"something other than the optimizer changed them{how}, such as {'a cast and back' if how else 'a clip, a mask or an average'}"
    )


@rule(GUESS, DETERMINISTIC)
def operation_gives_other_bits(case: Case) -> str | None:
    """Two runs of a reference trainer differ: one configuration means one order of batches, and one schedule."""
    if not case.pair.sampled:
        return None
    return "one configuration, so one order of batches and one schedule: an operation gives different bits"


@rule(GUESS, DETERMINISTIC)
def optimizer_gives_other_weights(case: Case) -> str | None:
    """Equal gradients, other weights."""
    if case.channel not in ("optimizer", "weights") or not case.pair.hashes(case.step, "gradients"):
        return None
    settings = "" if case.options_are_equal else f"{OTHER_SETTINGS}, or "
    return (
        f"gradients are equal, but the optimizer's update of them is not: {settings}{OTHER_ORDER}, "
        "or something else changed the weights between the steps"
    )


@rule(GUESS, DETERMINISTIC)
def step_gives_other_results(case: Case) -> str | None:
    """Equal weights, other gradients, or other weights where the gradients cannot be seen."""
    if case.channel not in ("gradients", "optimizer", "weights"):
        return None
    by_options = case.channel != "gradients" and not case.options_are_equal
    possible = [OTHER_SETTINGS, OTHER_ORDER] if by_options else [OTHER_ORDER]
    results = "gradients" if case.channel == "gradients" else "results of the step, whose gradients cannot be seen"
    if case.batch_unseen:
        unlike = case.unlike_at_first
        drawn = f": the generator {listed(unlike)} differs before the first step" if unlike else ""
        possible = [f"another batch{drawn}", *possible]
    if case.found.among:
        possible.append("another process that trains the same weights")
    return f"equal weights{case.and_batch}, other {results}: {', or '.join(possible)}"


@rule(GUESS, DETERMINISTIC)
def other_buffers(case: Case) -> str | None:
    """The buffers differ, the weights do not."""
    return "the buffers differ, the weights do not: running means, or an operation in the forward pass"


RULES: tuple[Rule, ...] = (
    initial_weights_without_a_seed,
    initial_weights_of_unseeded_tensorflow,
    other_initial_weights,
    weights_changed_between_steps,
    operation_gives_other_bits,
    optimizer_gives_other_weights,
    step_gives_other_results,
    other_buffers,
)
