"""Lines that the observer writes of itself."""

import time
from itertools import count
from pathlib import Path

import pytest

from repro.observe import recorder
from support.observed import lines


@pytest.fixture
def active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> recorder.Recorder:
    """A recorder that writes here, and a clock that goes on by a second whenever it is asked."""
    clock = count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(recorder, "active", recorder.Recorder(str(tmp_path), 1))
    assert recorder.active is not None
    return recorder.active


@recorder.never_raise
def inner() -> None:
    pass


@recorder.never_raise
def outer() -> None:
    inner()
    raise ValueError("planted")


def test_the_seconds_within_the_observer_are_counted_once(active: recorder.Recorder, tmp_path: Path) -> None:
    outer()  # the clock is asked at both ends, and once in between
    inner()
    active.count()
    active.end()
    (written,) = lines(tmp_path).values()
    assert [line["kind"] for line in written] == ["process", "note", "end"]
    assert written[-1]["seconds"] == 3


def test_lines_that_cannot_be_written_are_missed(
    active: recorder.Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    active.step(1, {"weights": {"w": "a"}})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(active, "append", full)
    active.step(2, {"weights": {"w": "b"}})
    active.end()
    assert [file.suffix for file in sorted((tmp_path / "steps").iterdir())] == [".jsonl", ".broken"]
    assert "No space left on device; the program goes on, and is no longer observed" in capsys.readouterr().err


def test_a_process_that_was_forked_unseen_has_its_own_file(active: recorder.Recorder, tmp_path: Path) -> None:
    active.step(1, {"weights": {"w": "a"}})
    active.process -= 1
    active.step(2, {"weights": {"w": "b"}})
    assert len(lines(tmp_path)) == 2


def test_a_process_that_took_no_step_says_nothing_of_seconds(active: recorder.Recorder, tmp_path: Path) -> None:
    inner()
    active.end()
    assert not lines(tmp_path)
