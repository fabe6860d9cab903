"""Why an evaluation has other scores in other batches: what runs show, and what only looks like it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repro.record import record
from repro.record.metric_values import Metric
from repro.verify import batch_causes
from repro.verify.batch_sizes import BatchSizes
from repro.verify.questions import BASELINE, REPEAT, Change, Question
from repro.verify.trial import Command, Trial
from support.commands import straight, write

SEVEN = Change("batch 1: --batch=7", option=("--batch={}", "7"))
MARKS = ["last batch", "statistics"]


def said(folder: Path, score: Callable[[bool, set[str]], object], marks: list[str]) -> tuple[str | None, int]:
    """What is said where a score follows from the batch size, 7 or not, and from what is taken away; and the number of runs."""
    made: dict[str, Trial] = {}

    def run(change: Change, against: Trial | None = None) -> Trial:
        if change.label in made:
            return made[change.label]
        away = {value for _, values in change.environment for value in values.split(",")}
        path = write(folder / str(len(made)), straight(0))
        trial = Trial(change, Command(["x"]), path, record=record.read(path))
        trial.changed = marks
        assert trial.record
        trial.record.metrics = [Metric("stdout", "accuracy", "", str(score(change.option is not None, away)))]
        return made.setdefault(change.label, trial)

    judgment = BatchSizes(Question("batch", "", (SEVEN,), compared="batch"), run(BASELINE), run(REPEAT))
    return batch_causes.said(judgment, run(SEVEN), run), len(made) - 3


KEPT, RUNNING = "last_batch=kept", "statistics=running"


@pytest.mark.parametrize(
    ("score", "words", "runs"),
    [
        (lambda seven, away: 0.5 + 0.1 * (seven and KEPT not in away), "the last, smaller batch is left out", 2),
        (lambda seven, away: 0.5 + 0.1 * (seven and RUNNING not in away), "takes the statistics of each batch", 4),
        (
            lambda seven, away: 0.5 + 0.1 * (seven and KEPT not in away) + 0.2 * (seven and RUNNING not in away),
            "scores other samples, and a batch normalization takes",
            6,
        ),
        (lambda seven, away: 0.5 + 0.1 * seven, None, 6),
        (lambda seven, away: 0.5 + 0.0001 * seven, None, 0),
    ],
    ids=["left out", "statistics", "both", "neither", "last digits"],
)
def test_a_cause_is_one_where_both_runs_agree_without_it(
    score: Callable[[bool, set[str]], object], words: str | None, runs: int, tmp_path: Path
) -> None:
    text, made = said(tmp_path, score, MARKS)
    assert (words in text if words and text else text == words) and made == runs


def test_what_is_not_there_decides_nothing(tmp_path: Path) -> None:
    """Runs agree with the change, by chance: it found nothing to change."""
    text, made = said(tmp_path, lambda seven, away: 0.5 + 0.1 * (seven and not away), [])
    assert text is None and made == 2


def test_the_answer_has_the_scores_and_a_remedy(tmp_path: Path) -> None:
    text, _ = said(tmp_path, lambda seven, away: 0.5 + 0.1 * (seven and RUNNING not in away), MARKS[1:])
    assert text == (
        "batch 1: --batch=7: a batch normalization takes the statistics of each batch, as in training: with running statistics "
        "both runs agree, without it `accuracy` (stdout): 0.5 and 0.6; set the network to evaluation mode (model.eval(), training=False)"
    )
