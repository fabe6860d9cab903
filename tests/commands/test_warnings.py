"""Warnings in the terminal, of `record` and of `verify`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.commands import record as task
from repro.console import wide_console
from repro.record import record
from repro.report import answers
from repro.verify.command import OwnCommand
from repro.verify.questions import BASELINE
from repro.verify.trial import Command, Trial
from support.commands import straight, write

SAID = "warning: NaN from step 4 on, to the last step, 4: first in the gradients (`w`)"


@pytest.fixture
def suspicious(tmp_path: Path) -> record.Record:
    recorded = record.read(write(tmp_path / "record", straight()))
    recorded.processes[0].lines[4].nan = {"gradients": ["w"]}
    return recorded


def test_record_prints_what_is_suspicious(suspicious: record.Record, capfd: pytest.CaptureFixture[str]) -> None:
    recording: Any = SimpleNamespace(finish=lambda *_: suspicious, computed=None)
    task._finished(recording, 0)
    assert f"repro: {SAID}\n" in capfd.readouterr().err


def test_verify_prints_what_is_suspicious_in_the_baseline(
    suspicious: record.Record, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = Command(["python", "train.py"])
    own = OwnCommand(command, ["restart"], tmp_path)
    assert own.warnings == []
    own.baseline = Trial(BASELINE, command, tmp_path, record=suspicious)
    answers.show(own, [], "", wide_console())
    assert SAID in capfd.readouterr().out.replace("\n", " ")
    own.baseline.record = None  # it failed, or was not observed
    assert own.warnings == []
