"""Trainings that follow one another in a process, as in a sweep."""

from repro.record.lines import CHANGED, STARTS, Process


def begins(process: Process) -> list[int]:
    """The first step of each: of an optimizer that is new where others step no more, or of weights that all are new.

    Weights that are clipped or masked after every step are not.
    """
    hashed = sorted(step for step in process.steps if step)
    stepping: dict[str, list[int]] = {}
    for step in hashed:
        for number in _stepped(process, step):
            stepping.setdefault(number, []).append(step)
    result: list[int] = []
    for step in hashed:
        new = {name.partition(".")[0] for name in process.steps[step].get(STARTS, {})}
        others = any(steps[0] < step <= steps[-1] for number, steps in stepping.items() if number not in new)
        changed = [_all_changed(process, near) for near in (step - 1, step, step + 1)]
        if step == hashed[0] or (new and not others) or changed == [False, True, False]:
            result.append(step)
    return result


def _stepped(process: Process, step: int) -> set[str]:
    hashes = process.steps[step]
    return {name.partition(".")[0] for name in hashes.get("gradients", hashes.get("weights", {}))}


def _all_changed(process: Process, step: int) -> bool:
    """True if something else than an optimizer changed all weights before a step."""
    hashes = process.steps.get(step, {})
    weights = hashes.get("weights", {})
    return bool(weights) and hashes.get(CHANGED, {}).keys() >= weights.keys()
