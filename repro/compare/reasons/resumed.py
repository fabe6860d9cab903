"""The first step of a resumed run, from the same batch."""

from repro.compare.reasons.case import GUESS, HASHES, Case, Rule, rule
from repro.record.lines import CHANGED, STARTS
from repro.text import listed

WATCHED = "watch."  # prefix of the names of what repro.watch was given
SAVE_OPTIMIZER = "save the optimizer's state with the checkpoint, and load it when resuming"
SAVE_ALL = "save it with the checkpoint, and load it when resuming"


@rule(HASHES, "save the weights after the step's update, and change nothing when they are read")
def resumed_from_other_weights(case: Case) -> str | None:
    """A resumed run starts from weights that no step of the whole run had."""
    if not case.resumed or case.channel != STARTS:
        return None
    a, b = case.pair.called
    return (
        f"the weights that {b} starts from match no step of {a} ({case.names}): "
        "the checkpoint does not hold them, or they are changed when it is read"
    )


@rule(HASHES, "save the weights after that change, or make it again when resuming")
def resumed_without_a_change(case: Case) -> str | None:
    """Something other than the optimizer, such as a mask, changes weights differently before the first resumed step."""
    if not case.resumed or case.channel != CHANGED:
        return None
    a, b = case.pair.called
    return (
        f"something other than the optimizer changes weights of {a} between steps {case.step - 1} and {case.step} ({case.names}), "
        f"as a clip or a mask, and {b} begins its first step with different ones"
    )


@rule(HASHES, SAVE_OPTIMIZER)
def optimizer_starts_from_another_state(case: Case) -> str | None:
    """Before the first resumed step, the optimizer does not hold what it held after the step before."""
    if case.channel != "optimizer" or not case.resumed or case.first_resumed:
        return None
    a, b = case.pair.called
    _, before = case.pair.hashes(case.step, "optimizer") or ({}, {})
    if not before:
        return f"before its first step the optimizer of {b} holds nothing of what that of {a} held after step {case.step}: its state was not restored"
    return f"before its first step the optimizer of {b} holds other values than that of {a} after step {case.step} ({case.names}): its state was not restored as it was"


@rule(GUESS, SAVE_ALL)
def watched_state_not_restored(case: Case) -> str | None:
    """A part of what repro.watch was given is equal, and another part is not."""
    if not case.resumed or case.channel != "weights":
        return None
    both = case.pair.hashes(case.step, case.channel)
    equal = [name for name in sorted(both[0]) if name not in case.found.names] if both else []
    if not equal or not all(name.startswith(WATCHED) for name in case.found.names):
        return None
    return f"of what repro.watch was given {listed(equal)} is equal, {case.names} is not: it was not restored"


@rule(GUESS, SAVE_OPTIMIZER)
def resumed_to_other_weights(case: Case) -> str | None:
    """A resumed run comes from equal weights to others, and the gradients cannot be seen."""
    unseen = case.pair.hashes(case.step, "gradients") is None
    if not case.resumed or case.channel not in ("optimizer", "weights") or not unseen:
        return None
    _, b = case.pair.called
    data = ", the place in the data" if case.batch_unseen else ""
    differing = case.differing_of("buffers")
    buffers = f", buffers that differ ({listed(differing)})" if differing else ""
    return (
        f"from equal weights{case.and_batch} {b} arrives at different ones ({case.names}), and the gradients cannot be seen: "
        f"the optimizer's state{data}{buffers}, or what the step draws was not restored"
    )


@rule(HASHES, SAVE_OPTIMIZER)
def optimizer_began_again(case: Case) -> str | None:
    """From equal gradients, the optimizer counts from its first step, or its momentum is this step's gradient alone."""
    names = _of_a_first_step(case) if case.resumed and case.channel == "optimizer" else []
    if not names:
        return None
    a, b = case.pair.called
    return (
        f"{b} has the gradients of {a}, but its optimizer is as after a first step ({listed(names)}): "
        "its state was not restored"
    )


@rule(GUESS, SAVE_OPTIMIZER)
def optimizer_not_restored(case: Case) -> str | None:
    """From equal gradients, the optimizer's state is another."""
    if not case.resumed or case.channel != "optimizer":
        return None
    a, b = case.pair.called
    return (
        f"{b} has the gradients of {a}, but another state of the optimizer ({case.names}): "
        "it was not restored, or has different settings"
    )


@rule(GUESS, SAVE_OPTIMIZER)
def unseen_optimizer_not_restored(case: Case) -> str | None:
    """From equal gradients come other weights, and the optimizer's state cannot be seen."""
    if not case.resumed or case.channel != "weights" or case.pair.hashes(case.step, "optimizer") is not None:
        return None
    return (
        "the gradients are equal, the weights after the step are not: "
        "the optimizer's state, which cannot be seen, or the learning rate was not restored"
    )


@rule(GUESS, "save the learning rate's schedule with the checkpoint, and load it when resuming")
def learning_rate_not_restored(case: Case) -> str | None:
    """From equal gradients and an equal state of the optimizer come other weights."""
    if not case.resumed or case.channel != "weights":
        return None
    return (
        "gradients and optimizer state are equal, the weights after the step are not: "
        "the learning rate, or its schedule, was not restored"
    )


@rule(GUESS, "save the buffers with the checkpoint (all of the state_dict), and load them when resuming")
def buffers_not_restored(case: Case) -> str | None:
    """The buffers are others, the weights are equal."""
    if not case.resumed or case.channel != "buffers":
        return None
    return f"the buffers differ ({case.names}): they were not restored"


@rule(GUESS, SAVE_ALL)
def resumed_with_other_gradients(case: Case) -> str | None:
    """The first gradients of a resumed run are others, from equal weights."""
    if not case.resumed:
        return None
    data = "the place in the data, " if case.batch_unseen else ""
    return (
        f"the first gradients after resuming differ from equal weights{case.and_batch}: "
        f"{data}dropout that draws again, buffers, the mode (train or eval), or a scale was not restored"
    )


RULES: tuple[Rule, ...] = (
    resumed_from_other_weights,
    resumed_without_a_change,
    optimizer_starts_from_another_state,
    watched_state_not_restored,
    resumed_to_other_weights,
    optimizer_began_again,
    optimizer_not_restored,
    unseen_optimizer_not_restored,
    learning_rate_not_restored,
    buffers_not_restored,
    resumed_with_other_gradients,
)


def _of_a_first_step(case: Case) -> list[str]:
    """The optimizer's names that differ and are as after a first step: counters of 1, and momenta equal to the gradient."""
    both = case.pair.hashes(case.step, "optimizer")
    gradients = case.pair.hashes(case.step, "gradients")
    first = case.pair.a.of("optimizer").get(1, {})
    if both is None or gradients is None:
        return []
    return [
        name
        for name in case.found.names
        if both[1].get(name) in (first.get(name, ""), gradients[1].get(name.rpartition(".")[0], ""))
    ]
