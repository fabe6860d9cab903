"""Fixtures of the commands' tests."""

from pathlib import Path

import pytest

from repro.record.injection import PATH


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start commands in, with the scripts' folder beside nothing else on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PATH, raising=False)
    return tmp_path


@pytest.fixture
def data(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data of the script that lists them, in the current folder, and no fixed seed of hashes."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    (here / "data").mkdir()
    for number in range(64):
        (here / "data" / str(number)).touch()
