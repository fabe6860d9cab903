"""States that a resumed run begins with, found elsewhere in the whole run."""

from repro.compare.reasons.case import HASHES, Case, Rule, rule
from repro.compare.reasons.draws import SAVE_GENERATORS, old_state
from repro.compare.reasons.resumed import SAVE_ALL, SAVE_OPTIMIZER
from repro.text import listed

ACCUMULATED = ("acc_grads", "gradient_accumulator")
"""Parts of the names under which Optax and Keras hold gradients that are accumulated."""
PLACE, WINDOWS = ".mini_step", ".gradient_step"
"""Ends of the names under which optax.MultiSteps counts the passes of a window, and the windows."""


@rule(HASHES, "give the optimizer its parameters in one order: a sorted list, not a set")
def optimizer_state_of_other_parameters(case: Case) -> str | None:
    """Before its first step, the optimizer of a resumed run holds the right values for the wrong parameters."""
    ours, theirs = _slots(case)
    moved = [name for name in case.found.names if name in ours and name in theirs]
    if not moved or sorted(ours.values()) != sorted(theirs.values()):
        return None
    a, b = case.pair.called
    name = moved[0]
    owner = next(other for other, code in sorted(ours.items()) if code == theirs[name])
    return (
        f"before its first step the optimizer of {b} holds for `{name}` what that of {a} held for `{owner}` after step {case.step} "
        f"({len(moved)} such): each state went to another parameter, as they are in another order"
    )


@rule(HASHES, "save the weights and the optimizer's state after the same step")
def optimizer_state_of_another_step(case: Case) -> str | None:
    """Before its first step, the optimizer of a resumed run holds what it held after another step of the whole run."""
    ours, theirs = _slots(case)
    names = [name for name in case.found.names if name in ours and name in theirs]
    if not names or ours.keys() != theirs.keys():
        return None
    for step, held in sorted(case.pair.a.of("optimizer").items()):
        if all(held.get(name) == theirs[name] for name in names):
            a, b = case.pair.called
            return (
                f"before its first step the optimizer of {b} holds in {listed(names)} what that of {a} held after step {step}, "
                f"though it goes on after step {case.step}"
            )
    return None


@rule(HASHES, "save all of the optimizer's state, with the gradients that it has accumulated")
def accumulated_gradients_not_restored(case: Case) -> str | None:
    """A resumed run begins a window of accumulated gradients anew, and the rest of its optimizer's state is restored.

    As with optax.MultiSteps, or in Keras, where the gradients of the step itself are equal.
    """
    names = case.found.names if case.first_resumed and case.channel == "optimizer" else []
    held = [name for name in names if any(part in name for part in ACCUMULATED)]
    place = [name for name in names if name.endswith(PLACE)]
    of_equal = bool(place) or case.pair.hashes(case.step, "gradients") is not None
    alone = of_equal and not {*names} - {*held, *place}
    if not held or not (alone or any(_counts_on(case, name.removesuffix(PLACE)) for name in place)):
        return None
    a, b = case.pair.called
    return (
        f"after its first step the optimizer of {b} holds other accumulated gradients than that of {a} ({listed([*place, *held])}): "
        "those of a half-done accumulation window were not restored"
    )


@rule(HASHES, SAVE_OPTIMIZER)
def optimizer_of_a_first_step(case: Case) -> str | None:
    """After the first resumed step the optimizer holds what it held after the first step of all."""
    names = _of_a_first_step(case, "optimizer")
    if not names:
        return None
    a, b = case.pair.called
    return f"after its first step the optimizer of {b} holds in {listed(names)} what that of {a} held after its own first step: its state was not restored"


@rule(HASHES, SAVE_ALL)
def buffers_of_a_first_step(case: Case) -> str | None:
    """In the first resumed step the buffers, and what else a step has beside its weights, are those of the first step of all."""
    names = _of_a_first_step(case, "buffers")
    if not names:
        return None
    a, b = case.pair.called
    comes = (
        ""
        if case.channel == "buffers"
        else f"from equal weights{case.and_batch} {b} arrives at different ones ({case.names}); "
    )
    return f"{comes}the buffers {listed(names)} at step 1 of {b} are those at step 1 of {a}: they were not restored"


@rule(HASHES, "set the network to train mode after each evaluation")
def buffers_stay(case: Case) -> str | None:
    """In the first resumed step of PyTorch the gradients are others, and buffers stay as after the step before: the network is in eval mode."""
    after_steps = set(case.pair.a.about.frameworks) == {"torch"}  # others may write them down as before a step
    if case.channel != "gradients" or not case.first_resumed or not after_steps:
        return None
    both, names = case.pair.hashes(case.step, "buffers"), case.pair.differing(case.step, "buffers")
    before = case.pair.a.of("buffers").get(case.pair.offset, {})
    if both is None or not names or any(both[1].get(name, "") != before.get(name) for name in names):
        return None
    a, b = case.pair.called
    return (
        f"the buffers {listed(names)} were restored, and stay as they are in the first step of {b}, where {a} changes them: "
        "the network is in eval mode, as after an evaluation"
    )


@rule(HASHES, SAVE_GENERATORS)
def own_generator_not_restored(case: Case) -> str | None:
    """A key or a count of draws that the step itself is given, as those of JAX and Keras, is that of an earlier step."""
    old = old_state(case) if case.channel == "generator" and case.first_resumed else None
    if old is None or old[1] >= case.step or case.batch_unseen or _is_global(old[0]):
        return None
    name, step = old
    a, b = case.pair.called
    return f"from an equal batch, the generator `{name}` at step 1 of {b} is that of step {step} of {a}: it was not restored, so old numbers are drawn again, as for dropout"


RULES: tuple[Rule, ...] = (
    optimizer_state_of_other_parameters,
    optimizer_state_of_another_step,
    accumulated_gradients_not_restored,
    optimizer_of_a_first_step,
    buffers_of_a_first_step,
    buffers_stay,
    own_generator_not_restored,
)


def _of_a_first_step(case: Case, channel: str) -> list[str]:
    """The names that differ at the first resumed step, and are there as at the first step of the whole run."""
    names = case.differing_of(channel) if case.first_resumed else []
    both, first = case.pair.hashes(case.step, channel), case.pair.a.of(channel).get(1, {})
    return [name for name in names if name in first and both[1].get(name) == first[name]] if both else []


def _counts_on(case: Case, optimizer: str) -> bool:
    """True if MultiSteps counts windows on in a resumed run, and the passes of a window from the first one."""
    _, theirs = case.pair.hashes(case.step, "optimizer") or ({}, {})
    first = case.pair.a.of("optimizer").get(1, {})
    passes, windows = optimizer + PLACE, optimizer + WINDOWS
    anew = passes in theirs and theirs[passes] == first.get(passes)
    return anew and windows in theirs and theirs[windows] != first.get(windows)


def _is_global(generator: str) -> bool:
    """True for a generator of the process, which anything may draw from."""
    return generator in ("python", "numpy", "torch", "tensorflow") or generator.startswith("cuda:")


def _slots(case: Case) -> tuple[dict[str, str], dict[str, str]]:
    """The slots of both optimizers where a resumed run begins; empty elsewhere."""
    begins = case.channel == "optimizer" and case.resumed and not case.first_resumed
    return (case.pair.hashes(case.step, "optimizer") if begins else None) or ({}, {})
