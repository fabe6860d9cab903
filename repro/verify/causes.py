"""The causes that further runs test, in the order in which they are tested."""

import os
from collections.abc import Sequence

from repro.compare.difference import Difference
from repro.compare.metrics import METRICS
from repro.record.lines import SCALARS, STARTS
from repro.verify.caches import EMPTIED
from repro.verify.command_questions import UNCACHED
from repro.verify.hypotheses import Clock, FirstRun, Hypothesis, Race, SharedDraws
from repro.verify.questions import Change


def _values(name: str, values: Sequence[str], label: str, more: tuple[tuple[str, str], ...] = ()) -> tuple[Change, ...]:
    return tuple(Change(label.format(value), ((name, value), *more)) for value in values)


def _is_length(divergence: Difference) -> bool:
    return bool(divergence.lengths) and min(divergence.lengths or (0,)) > 0


def _draws(divergence: Difference) -> bool:
    """True if drawn numbers may decide: they differ first, or may be drawn in what is not seen of a step."""
    pair, step = divergence.pair, divergence.step or 0
    unseen = pair is not None and any(pair.hashes(step, channel) is None for channel in ("batch", "gradients"))
    return not _is_length(divergence) and (divergence.channel in ("generator", "batch", STARTS, METRICS) or unseen)


def _is_late(divergence: Difference) -> bool:
    """True if the initial weights differ, and no generator does when the first step begins."""
    pair = divergence.pair
    seen = pair is not None and pair.hashes(0, "generator") is not None and not pair.differing(0, "generator")
    return divergence.channel == STARTS and seen


def _results(divergence: Difference) -> bool:
    return divergence.channel != "generator" and not _is_length(divergence)


DELAYS = (("REPRO_DELAYS=2", "2"), ("REPRO_DELAYS=-2 (swapped)", "-2"), ("REPRO_DELAYS=3", "3"))
SEEDS = _values("REPRO_CHANGES", ("seed=0", "seed=77", "seed=5"), "{} at the start")

HYPOTHESES: tuple[Hypothesis, ...] = (
    FirstRun(
        "first run",
        "only the first run differs, so what it left decides",
        "empty it before each run, or keep it for all",
        (EMPTIED,),
        lambda divergence: not _is_length(divergence),
    ),
    Hypothesis(
        "late seed",
        "the initial weights are drawn before a seed is set",
        "set the seeds before the model is made",
        SEEDS,
        _is_late,
        restorable=True,
    ),
    Hypothesis(
        "no seed",
        "no seed is set, or not before something is drawn",
        "set the seeds of Python, NumPy and the framework first of all, and give one to each generator that is made",
        SEEDS,
        lambda divergence: _draws(divergence) and not _is_late(divergence),
        restorable=True,
    ),
    Hypothesis(
        "numbers from the time",
        "a number of each step, such as the learning rate, is computed from the time that has passed",
        "compute it from the number of the step",
        _values("REPRO_CHANGES", ("ticks=1", "ticks=7", "ticks=3"), "{} (time held)"),
        lambda divergence: divergence.channel == SCALARS,
    ),
    Hypothesis(
        "order of a set",
        "the order of a set, or hash(), decides",
        "sort the set, or set PYTHONHASHSEED",
        _values("PYTHONHASHSEED", ("0", "77", "5", "123"), "PYTHONHASHSEED={}"),
        lambda divergence: not _is_length(divergence) and "PYTHONHASHSEED" not in os.environ,
    ),
    Hypothesis(
        "seed from the time",
        "a seed is taken from the time, the process number or the system's entropy",
        "let an option of the command set it, and print it",
        _values(
            "REPRO_CHANGES",
            ("seed=0,origin=0", "seed=77,origin=77", "seed=5,origin=5"),
            "{} (time, process number and entropy held)",
        ),
        _draws,
        restorable=True,
    ),
    Hypothesis(
        "uninitialized memory",
        "memory is read that nothing has set, such as that of torch.empty or numpy.empty",
        "set it before it is read",
        _values(
            "MALLOC_PERTURB_",
            ("195", "67", "90"),
            "MALLOC_PERTURB_={}",
            (UNCACHED,),
        ),
        _results,
    ),
    Hypothesis(
        "addresses",
        "where objects lie in memory decides, as in the order of a set of objects, or of tensors",
        "keep them in a list",
        _values(
            "REPRO_CHANGES", ("place=1", "place=30", "place=70"), "{} (addresses held)", (("PYTHONHASHSEED", "0"),)
        ),
        _results,
    ),
    SharedDraws(
        "threads that draw",
        "threads draw from one generator, in an order that changes from run to run",
        "give each task a generator of its own, with a seed by its number",
        _values("REPRO_CHANGES", ("draws=0", "draws=77", "draws=5"), "{} (a generator for each task of a thread)"),
        lambda divergence: not _is_length(divergence),
    ),
    Race(
        "race",
        "threads, workers or ranks race: which of them comes first decides",
        "take what they give in the order in which it was asked for",
        tuple(Change(label, (("REPRO_DELAYS", value),)) for label, value in DELAYS),
        lambda divergence: not _is_length(divergence),
    ),
    Clock(
        "limit of time",
        "the number of steps depends on the time that they take",
        "train for a number of steps",
        _values("REPRO_CHANGES", ("clock=4", "clock=16"), "{}"),
        _is_length,
    ),
)
"""In the order in which they are tested; the first that holds is the cause."""
