"""Stops within an accumulation window."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from repro.files import matching
from repro.observe import recorder, windows
from repro.record import outputs
from repro.record.process import terminate
from repro.verify.command_runs import Trials
from repro.verify.questions import Change
from repro.verify.stops import Stop
from repro.verify.trial import Command
from repro.verify.windows import passes_at_stop
from support.observed import interpreter
from support.runs import HANG, PROGRAMS, ROOT


@pytest.mark.parametrize(
    ("words", "passes", "where", "checkpoint"),
    [
        (("20", "5"), 1, "7.1", "25"),
        (("20", "19"), 1, "8.1", "19"),
        (("1", "0"), 1, "8.1", "32"),
        (("20", "5", "8"), 1, "7.1", "25"),
        (("4", "3", "7"), 0, "9.0", "27"),
        (("100", "99"), None, None, None),
    ],
    ids=["in a window", "after steps", "after passes", "one pass later on", "one pass", "never"],
)
def test_it_is_stopped_where_a_checkpoint_was_written_or_else_between_two_passes(
    words: tuple[str, ...], passes: int | None, where: str | None, checkpoint: str | None, tmp_path: Path
) -> None:
    """Checkpoint 25 is written after two of the four passes of step 7; the process is stopped in step 8."""
    folder, steps = tmp_path / "run", tmp_path / "run" / "steps"
    steps.mkdir(parents=True)

    def files() -> dict[str, outputs.State]:
        return outputs.folder(folder, without=steps)

    command = [sys.executable, str(PROGRAMS / "windows.py"), str(folder), *words]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True) as process:
        assert passes_at_stop(process, steps, 8, {}, files) == passes
        if passes is not None:
            terminate(process, signal.SIGKILL)
    held = [file.name.split(".", 2)[2] for file in matching(steps, "held.*")]
    assert held == ([where] if where else [])
    assert process.returncode == (0 if passes is None else -signal.SIGKILL)
    assert checkpoint is None or (folder / "checkpoint").read_text() == checkpoint


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process that waits before each backward pass; the folder of its steps."""
    (tmp_path / "steps").mkdir()
    monkeypatch.setattr(recorder, "active", recorder.Recorder(str(tmp_path), 1))
    monkeypatch.setattr(windows, "first_step", 0)
    return tmp_path / "steps"


def test_a_process_that_nobody_looks_at_goes_on(waiting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LIMIT", 0.01)
    windows.wait(1)
    assert not [*waiting.iterdir()]


def test_a_handler_of_a_signal_may_raise_while_it_waits(waiting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LIMIT", HANG)
    monkeypatch.setattr("repro.observe.windows.time.sleep", lambda _: signal.raise_signal(signal.SIGALRM))

    def preempted(*_: object) -> NoReturn:
        raise LookupError

    before = signal.signal(signal.SIGALRM, preempted)
    try:
        with pytest.raises(LookupError):
            windows.wait(1)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_program_of_pytorch_is_killed_within_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint is written after two passes of step 11, of four. It is killed in step 12."""
    monkeypatch.chdir(tmp_path)
    command = [interpreter("pytorch"), str(ROOT / "evidence/cases/accumulation.py"), "{run}"]
    trials = Trials(Command(command, resume=[*command, "--resume"]), tmp_path / "runs")
    trial = trials.run(Change("killed", course="kill", stops=(0.5,)), [Stop(15, 8)])
    assert (trial.error, trial.stopped_within) == (None, True)
    (stopped,), record = trial.parts, trial.record
    assert record is not None
    first = record.processes[0].lines[1]
    assert (stopped.steps, record.steps, first.scalars["backward passes"]) == (11, 20, "2")
