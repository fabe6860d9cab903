"""Samples and weights of a training on another number of ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from repro.record import record
from repro.record.record import Record
from repro.record.typed_lines import Samples, Step
from repro.verify import vary
from repro.verify.questions import BASELINE
from repro.verify.ranks import NO_STEP, SPLIT, UNKNOWN, Ranks
from repro.verify.trial import Command, Trial
from support.commands import sha, straight, write

(RANKS,) = vary.questions(["ranks=--ranks={}:2"], ())
ONE, TWO = [[["a", "b", "c", "d"]]], [[["a", "c"]], [["d", "b"]]]


def ran(folder: Path, steps: int, *ranks: Sequence[list[str] | None], **changed: Any) -> Record:
    """A record with the samples of each step of each rank; where there are fewer of these, the last ones come again."""
    made = record.read(write(folder, *(straight(steps, **changed) for _ in ranks)))
    for process, of_rank in zip(made.processes, ranks, strict=True):
        for step in range(1, steps + 1):
            rows = of_rank[min(step, len(of_rank)) - 1]
            about = {"epoch": 1, "data": 0, "sampler": "x", "replacement": False, "stream": False, "workers": 0}
            samples = msgspec.convert(about | {"size": 4, "indices": None, "rows": rows, "drew": []}, Samples)
            process.lines[step] = Step(step=step, hashes={}, samples={"0": samples})
    return made


def judged(folder: Path, a: Record, b: Record) -> str:
    baseline = Trial(BASELINE, Command(["x"]), folder, record=a)
    trial = Trial(RANKS.changes[0], Command(["x"]), folder, record=b)
    own = Ranks(RANKS, baseline, baseline)
    obstacle = own.obstacle(trial)
    if obstacle:
        return obstacle
    difference = own.difference(trial)
    return (
        own.meaning(trial, difference).removeprefix(f"{trial.change.label}: ") if difference else own.sameness([trial])
    )


@pytest.mark.parametrize(
    ("ranks", "changed", "said"),
    [
        (TWO, {"batch": {1: sha(1), 2: sha(1)}}, "2 runs, 3 steps: the same samples in any order, and the same weights of the first rank"),
        (TWO, {"weights": {2: sha(7)}}, SPLIT),
        ([[["a", "b"]], [["c", "e"]]], {}, "1 of the 4 samples of step 1 are others: what a rank reads depends on the number of ranks"),
        ([[["a", "c"], ["a", "a"]], [["d", "b"]]], {}, "1 of the 4 samples of step 2 are others: what a rank reads depends on the number of ranks"),
        ([[["a", "b", "c", "d"]]] * 2, {}, "step 1 is made of 4 samples with 1 rank, of 8 with 2: divide the batch by the number of ranks"),
        (TWO, {"initial_weights": {0: sha(7)}}, "the initial weights depend on the number of ranks"),
        ([[None], [None]], {"weights": {2: sha(7)}}, UNKNOWN),
    ],
)  # fmt: skip
def test_another_number_of_ranks(ranks: list[list[list[str] | None]], changed: Any, said: str, tmp_path: Path) -> None:
    assert judged(tmp_path, ran(tmp_path / "1", 3, *ONE), ran(tmp_path / "2", 3, *ranks, **changed)) == said


def test_fewer_steps(tmp_path: Path) -> None:
    said = judged(tmp_path, ran(tmp_path / "1", 4, *ONE), ran(tmp_path / "2", 2, *TWO))
    assert said == "4 steps with 1 rank, 2 with 2"
    assert judged(tmp_path, ran(tmp_path / "3", 4, *ONE), ran(tmp_path / "4", 0, *TWO)) == NO_STEP
