"""Metrics of two runs: the first value that differs, and when it decides."""

from pathlib import Path

import pytest

from repro.compare.comparison import known
from repro.compare.difference import check_comparable, first_difference
from repro.compare.metrics import differences, resumed_note
from repro.errors import UsageError
from repro.record import record
from repro.record.metric_values import Metric
from repro.record.record import Record
from repro.report import comparison
from support.commands import Steps, resumed, straight, write

Values = list[tuple[str, str, str]]


def made(path: Path, values: Values, *steps: Steps, source: str = "stdout") -> Record:
    """A record with metrics: name, place and value."""
    made = record.read(write(path, *steps))
    made.metrics = [Metric(source=source, name=name, at=at, value=value) for name, at, value in values]
    return made


def first(a: Record, b: Record) -> list[str]:
    return [str(one) for one in differences(a, b)]


LOSSES = [("loss", "epoch 1", "0.5"), ("loss", "epoch 2", "0.25"), ("acc", "epoch 2", "0.9")]


def test_the_first_value_that_differs(tmp_path: Path) -> None:
    other = [LOSSES[0], ("loss", "epoch 2", "0.2500001"), ("acc", "epoch 2", "0.8")]
    a, b = made(tmp_path / "a", LOSSES), made(tmp_path / "b", other)
    difference = first_difference(a, b, False)
    assert difference and (difference.step, difference.channel, difference.names) == (None, "metrics", ["loss"])
    assert difference.as_json() == {"step": None, "channel": "metrics", "name": "loss", "at": "epoch 2"}
    told = comparison.told(known(a, b, difference))
    assert "a metric differs: `loss` (stdout) at epoch 2: 0.25 and 0.2500001; no step was seen" in told
    assert "metrics: 2 (3 values)" in told
    assert first_difference(a, made(tmp_path / "c", LOSSES), False) is None


def test_what_only_one_run_logged_is_no_difference(tmp_path: Path) -> None:
    more = [*LOSSES, ("loss", "epoch 3", "0.1"), ("f1", "", "0.5")]
    assert first(made(tmp_path / "a", LOSSES), made(tmp_path / "b", more)) == []


def test_values_without_a_place_are_counted(tmp_path: Path) -> None:
    three = [("loss", "", value) for value in ("0.5", "0.4", "0.3")]
    a, b = made(tmp_path / "a", three), made(tmp_path / "b", [*three[:2], ("loss", "", "0.2")])
    assert first(a, b) == ["`loss` (stdout) (value 3 of 3): 0.3 and 0.2"]
    assert first(a, made(tmp_path / "c", three[1:])) == []  # whichever of them is missing


def test_ranks_print_in_any_order(tmp_path: Path) -> None:
    values = [("loss", "epoch 1", "0.5"), ("loss", "epoch 1", "0.4")]
    one, two = straight(2), straight(2)
    a, b = made(tmp_path / "a", values, one, two), made(tmp_path / "b", values[::-1], one, two)
    assert first(a, b) == []
    assert len(first(made(tmp_path / "c", values, one), made(tmp_path / "d", values[::-1], one))) == 1


def test_after_equal_steps_a_score_alone_decides(tmp_path: Path) -> None:
    a = made(tmp_path / "a", [("mean", "", "1.5"), ("loss", "", "0.5")], straight(4))
    b = made(tmp_path / "b", [("mean", "", "1.6"), ("loss", "", "0.5")], straight(4))
    c = made(tmp_path / "c", [("mean", "", "1.5"), ("loss", "", "0.6")], straight(4))
    assert first_difference(a, b, False) is None
    difference = first_difference(a, c, False)
    assert difference and difference.names == ["loss"] and difference.equal_before == 4


def test_a_step_comes_before_a_metric(tmp_path: Path) -> None:
    a = made(tmp_path / "a", [("loss", "", "0.5")], straight(4))
    b = made(tmp_path / "b", [("loss", "", "0.6")], straight(4, weights={3: 7}))
    difference = first_difference(a, b, False)
    assert difference and (difference.step, difference.channel) == (3, "weights")


def test_a_metric_of_a_resumed_run_is_a_note(tmp_path: Path) -> None:
    a = made(tmp_path / "a", [("loss", f"step {n}", f"0.{n}") for n in range(1, 9)], straight(8))
    b = made(tmp_path / "b", [("loss", "step 5", "0.5"), ("loss", "step 6", "0.66")], resumed(4, 8))
    assert first_difference(a, b, True) is None and first_difference(a, b) is None
    assert "all steps are equal, but a metric differs: `loss` (stdout) at step 6: 0.6 and 0.66" in resumed_note(a, b)
    assert resumed_note(a, made(tmp_path / "c", [("loss", "step 6", "0.6")], resumed(4, 8))) == ""


def test_a_step_that_a_resumed_run_logs_twice(tmp_path: Path) -> None:
    """It went on from before: the last value of a place counts."""
    a = made(tmp_path / "a", [("loss", "step 5", "0.5")], straight(8))
    b = made(tmp_path / "b", [("loss", "step 5", "0.7"), ("loss", "step 5", "0.6")], resumed(4, 8))
    assert "at step 5: 0.5 and 0.6" in resumed_note(a, b)


def test_records_that_share_only_metrics_are_comparable(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", LOSSES), made(tmp_path / "b", LOSSES)
    check_comparable(a, b)
    b.metrics = []
    with pytest.raises(UsageError, match="no output and no metric has the same name"):
        check_comparable(a, b)


def test_after_equal_steps_values_that_may_be_of_other_moments_decide_nothing(tmp_path: Path) -> None:
    values = [("loss", "after epoch 1", "0.5"), ("loss", "after epoch 2", "0.4"), ("acc", "", "0.9")]
    later = [("loss", "after epoch 1", "0.6"), *values[1:]]
    a, b = made(tmp_path / "a", values, straight(4)), made(tmp_path / "b", later, straight(4))
    assert first(a, b) == ["`loss` (stdout) after epoch 1: 0.5 and 0.6"] and first_difference(a, b, False) is None
    c = made(tmp_path / "c", [*values[:2], ("acc", "", "0.8")], straight(4))
    difference = first_difference(a, c, False)
    assert difference and difference.names == ["acc"]  # of which each run has one value
