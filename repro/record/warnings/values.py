"""Warnings about zeros, NaN and weights that stay."""

from collections.abc import Iterator

from repro.record.lines import STARTS, Process
from repro.record.record import Record
from repro.record.warnings.passes import rank
from repro.text import counted, listed

MANY = 10  # steps without a change, of a weight that has gradients
LEAST = 3  # steps: an array that is zero in one or two of them is nothing unusual


def _steps(process: Process, channel: str) -> list[int]:
    return [step for step in sorted(process.of(channel)) if step > 0]


def _zero(process: Process, step: int, channel: str) -> set[str]:
    return {*process.lines[step].zero.get(channel, [])} if step in process.lines else set()


def zero_gradients(record: Record) -> Iterator[str]:
    """Gradients are zero for one weight in every step, or for all weights from a step on."""
    for process in record.processes:
        steps, whose = _steps(process, "gradients"), rank(process, record)
        seen: dict[str, list[bool]] = {}
        for step in steps:
            zero = _zero(process, step, "gradients")
            for name in process.steps[step]["gradients"]:
                seen.setdefault(name, []).append(name in zero)
        always = [name for name, zeros in sorted(seen.items()) if len(zeros) >= LEAST and all(zeros)]
        if always:
            least = min(len(seen[name]) for name in always)
            which = "all gradients are" if len(always) == len(seen) else f"the gradient of {listed(always)} is"
            yield f"{whose}{which} zero in each step, {least} or more"
            continue
        dead = [step for step in steps if {*process.steps[step]["gradients"]} == _zero(process, step, "gradients")]
        if len(dead) >= LEAST and dead == steps[steps.index(dead[0]) :]:
            yield f"{whose}all gradients are zero from step {dead[0]} on, to step {dead[-1]}"


def zero_weights(record: Record) -> Iterator[str]:
    """A weight is zero after each step, though its gradient is not: a layer may begin with zeros."""
    for process in record.processes:
        steps = _steps(process, "weights")
        if len(steps) < LEAST:
            continue
        always = set.intersection(*(_zero(process, step, "weights") for step in steps))
        names = {*process.steps[steps[-1]]["weights"]}
        if always == names:
            yield f"{rank(process, record)}all weights are zero after each of {counted(len(steps), 'step')}"
        elif learning := [name for name in sorted(always) if _learns(process, name)]:
            yield f"{rank(process, record)}{listed(learning)} is zero after each of {counted(len(steps), 'step')}, though its gradient is not"


def _learns(process: Process, name: str) -> bool:
    steps = _steps(process, "gradients")
    seen = [step for step in steps if name in process.steps[step]["gradients"]]
    return any(name not in _zero(process, step, "gradients") for step in seen)


def unchanged_weights(record: Record) -> Iterator[str]:
    """Weights never change in the whole training. A first step is left out: its learning rate may be 0."""
    for process in record.processes:
        steps = _steps(process, "weights")
        starts = process.steps.get(0, {}).get(STARTS)
        if starts and len(steps) >= LEAST and all(process.steps[step]["weights"] == starts for step in steps):
            yield f"{rank(process, record)}no weight was changed in {counted(len(steps), 'step')}"


def stuck_weights(record: Record) -> Iterator[str]:
    """Some weights never change, though their gradients are not zero and no learning rate is: as in bfloat16, where a small step is rounded away."""
    for process in record.processes:
        steps = [step for step in _steps(process, "weights") if not _rests(process, step)]
        starts = process.steps.get(0, {}).get(STARTS, {})
        stuck = [
            name
            for name, code in starts.items()
            if all(process.steps[step]["weights"].get(name) == code for step in _steps(process, "weights"))
            and sum(_has_gradient(process, step, name) for step in steps) >= MANY
            and not all(name in _zero(process, step, "weights") for step in steps)
        ]
        if stuck and len(stuck) < len(process.steps[steps[-1]]["weights"]):
            verb, their = ("were", "their gradients are") if len(stuck) > 1 else ("was", "its gradient is")
            yield f"{rank(process, record)}{listed(stuck)} {verb} not changed in {counted(len(steps), 'step')}, though {their} not zero: each step may be less than the numbers can hold, as in bfloat16"


def _rests(process: Process, step: int) -> bool:
    """True if a group's learning rate is 0 at a step, so that some weights are meant to stay."""
    scalars = process.lines[step].scalars if step in process.lines else {}
    return any(name.endswith(".lr") and text in ("0", "0.0") for name, text in scalars.items())


def _has_gradient(process: Process, step: int, name: str) -> bool:
    return name in process.steps[step].get("gradients", {}) and name not in _zero(process, step, "gradients")


def not_a_number(record: Record) -> Iterator[str]:
    """Gradients or weights hold NaN, from a step on to the last one."""
    for process in record.processes:
        held = {step: line.nan for step, line in process.lines.items() if line.nan}
        steps = sorted(step for step in process.steps if step > 0)
        if not held or steps[-1] not in held:
            continue
        first = next(step for step in steps if all(later in held for later in steps if later >= step))
        channel = "gradients" if "gradients" in held[first] else next(iter(held[first]))
        yield f"{rank(process, record)}NaN from step {first} on, to the last step, {steps[-1]}: first in the {channel} ({listed(held[first][channel])})"
