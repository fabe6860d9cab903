"""Changes inside a process: its clock, and where its objects lie."""

import os
import subprocess
import sys
import time
from types import FunctionType

import pytest

from repro.inject import changes, imports
from support.runs import ROOT


def now() -> float:
    return time.time()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts every clock back after the test."""
    for name in changes.CLOCKS:
        monkeypatch.setattr(time, name, getattr(time, name))
    monkeypatch.setattr(imports, "start", lambda: None)
    monkeypatch.setattr(imports.finder, "when_imported", lambda *_: None)


def test_time_moves_by_one_tick_whenever_the_program_asks(clocks: None) -> None:
    changes.ticks("7")
    assert [time.monotonic_ns(), time.monotonic_ns(), time.time_ns()] == [7_000_000, 14_000_000, 7_000_000]
    assert [time.perf_counter(), time.perf_counter()] == [0.007, 0.014]


@pytest.mark.parametrize("module", ["queue", "_repro.observe.recorder"])
def test_what_waits_and_what_observes_have_the_real_time(module: str, clocks: None) -> None:
    before = time.time()
    changes.ticks("7")
    theirs = FunctionType(now.__code__, {"__name__": module, "time": time})
    assert theirs() >= before
    assert time.time() == 0.007


def addresses(value: str) -> str:
    """The addresses of objects in a process where they are held."""
    more = {
        "PYTHONPATH": str(ROOT / "repro" / "inject" / "site"),
        "REPRO_CHANGES": f"place={value}",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [sys.executable, "-s", "-c", "print(*map(id, [bytes(size) for size in range(300)]))"],
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    if "its addresses cannot be held here" in done.stderr:
        pytest.skip("personality() is forbidden here, as in Docker")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_objects_lie_where_they_do_in_each_run_with_one_value() -> None:
    assert addresses("1") == addresses("1") != addresses("30")
