"""A later step of a resumed run."""

from repro.compare.reasons.case import GUESS, HASHES, Case, Rule, rule
from repro.compare.reasons.draws import batches_of_others
from repro.text import listed


@rule(HASHES, "let the place in the data hold for the first epoch after resuming alone, in worker processes as well")
def resumed_place_kept_for_another_epoch(case: Case) -> str | None:
    """A resumed run begins the next epoch with the batch that it continued with, not with the first one."""
    both = case.pair.hashes(case.step, "batch")
    if case.channel != "batch" or not case.pair.offset or case.first_resumed or not both:
        return None
    begun, length = case.pair.hashes(case.pair.offset + 1, "batch"), _epoch(case.pair.a.of("batch"))
    if not length or (case.step - 1) % length or not begun or both[1] != begun[1]:
        return None
    a, b = case.pair.called
    return (
        f"at step {case.step} the batches of {a} start again with that of its step 1, those of {b} with that of its own step 1: "
        "the place in the data where it went on was kept for another epoch"
    )


@rule(HASHES, "save the generator that orders an epoch, or the epoch's number, and set it once when resuming")
def resumed_order_came_again(case: Case) -> str | None:
    """After the first steps of a resumed run, which are equal, it has batches in an order that they had before."""
    if case.channel != "batch" or not case.pair.offset or case.first_resumed:
        return None
    old, count = batches_of_others(case.pair, case.step)
    whole = [tuple(sorted(batch.items())) for batch in case.pair.a.of("batch").values()]
    if count < 2 or old > case.step or len({*whole}) < len(whole):
        return None
    a, b = case.pair.called
    return (
        f"from step {case.step} on {b} has the batches of steps {old} to {old + count - 1} of {a}: their order came again, "
        "as the generator or the number that it follows from was set back"
    )


@rule(HASHES, "save all that the optimizer holds with the checkpoint, and load it")
def optimizer_holds_more_than_its_state(case: Case) -> str | None:
    """From equal weights, gradients, states and options, the optimizer of a resumed run arrives at other weights, at any of its steps."""
    equal = [channel for channel in ("gradients", "optimizer") if case.pair.hashes(case.step, channel)]
    if case.channel != "weights" or not case.pair.offset or len(equal) < 2 or not case.options_are_equal:
        return None
    _, b = case.pair.called
    return (
        f"at step {case.step} gradients, the optimizer's state and its options are equal, the weights after it are not ({case.names}): "
        f"the optimizer of {b} holds what is not in its state, as the slow weights of Lookahead, and this was not restored; or something changes weights within its step"
    )


@rule(GUESS, "save the order of the epoch that comes next, the schedule and every counter with the checkpoint")
def resumed_and_differs_later(case: Case) -> str | None:
    """The first steps of a resumed run are equal, and a later one is not."""
    steps = [step for step in case.pair.steps() if step < case.step] if case.pair.offset else []
    if not steps or case.found.lengths:
        return None
    a, b = case.pair.called
    drawn = f", where the generator {listed(case.generators)} is in another state" if case.generators else ""
    return (
        f"{b} is equal to {a} until step {steps[-1]}, and differs at step {case.step}, in the {case.channel}{drawn}: "
        "what was not restored is used only then, such as the order of another epoch, a schedule or a counter; or chance decides"
    )


def _epoch(batches: dict[int, dict[str, str]]) -> int:
    """The number of steps after which the batches come again in one order, all unlike until then; 0 if they do not."""
    length = next((step - 1 for step, batch in sorted(batches.items()) if step > 1 and batch == batches.get(1)), 0)
    again = all(batch == batches.get(step - length) for step, batch in batches.items() if step > length)
    unlike = len({tuple(sorted(batches.get(step, {}).items())) for step in range(1, length + 1)}) == length
    return length if again and unlike else 0


RULES: tuple[Rule, ...] = (
    resumed_place_kept_for_another_epoch,
    resumed_order_came_again,
    optimizer_holds_more_than_its_state,
    resumed_and_differs_later,
)
