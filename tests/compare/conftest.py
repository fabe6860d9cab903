"""Fixtures of the tests of comparisons."""

from pathlib import Path

import pytest

from repro.compare.difference import Difference
from repro.record import record
from support.commands import Steps, write
from support.compared import compared


@pytest.fixture
def compare(tmp_path: Path):
    def call(a: Steps, b: Steps, goes_on: bool | None = None) -> Difference | None:
        ours, theirs = (record.read(write(tmp_path / name, steps)) for name, steps in (("a", a), ("b", b)))
        return compared(ours, theirs, goes_on)

    return call
