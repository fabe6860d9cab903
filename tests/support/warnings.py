"""Warnings of records made by hand."""

from pathlib import Path
from typing import Any

import msgspec

from repro.record.lines import Process
from repro.record.record import Content, Record
from repro.record.warnings import warnings

CONTENT: dict[str, Any] = {
    "schema": 1,
    "command": [],
    "folder": "/",
    "started": "2026-01-01T00:00:00+00:00",
    "seconds": 1.0,
    "exit_code": 0,
    "every": 1,
    "facts": {},
    "processes": [],
    "outputs": {},
    "notes": [],
    "fingerprint": None,
}


def said(*processes: Process, every: int = 1) -> dict[str, str]:
    """The warnings by their rules, of which each says one thing at most."""
    result = warnings(Record(Path(), msgspec.convert(CONTENT | {"every": every}, Content), list(processes)))
    assert len({one.rule for one in result}) == len(result)
    return {one.rule: one.text for one in result}
