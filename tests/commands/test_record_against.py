"""`repro record --against` and `--keep`: a run is stopped where it first differs, and the arrays of both sides are kept."""

import hashlib
import json
import os
import shlex
import signal
import struct
import sys
from pathlib import Path

import pytest

from repro import __main__
from repro.record import record
from support.commands import recorded, script
from support.runs import HANG, PROGRAMS


def test_a_run_against_a_record_is_stopped_where_it_first_differs(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded("--to", "a", "--every", "2", "--", *script("trainer", "--pause=0"))
    told = capfd.readouterr()
    assert recorded("--to", "same", "--against", "a", "--", *script("trainer", "--pause=0")) == 0
    told = capfd.readouterr()
    assert (
        told.out == "trained\n" and told.err.splitlines()[-1] == "same: all that both records hold is equal (12 steps)"
    )
    assert record.read(here / "same").content.every == 2
    code = recorded("--to", "b", "--against", "a", "--", *script("trainer", f"--pause={HANG}", "--seed=7"))
    told = capfd.readouterr()
    assert code == 3 and not told.out and record.read(here / "b").steps < 12
    assert "stopped by --against at the first difference" in told.err.splitlines()[0]
    assert "differs: first seen at step 0, in the generator" in told.err and "    command: " in told.err
    stopped = record.read(here / "b").content
    assert stopped.exit_code == 128 + signal.SIGTERM and stopped.notes == [
        "stopped by --against at the first difference"
    ]
    assert __main__.main(["compare", "a", "b"]) == 3
    assert "differs: first seen at step 0, in the generator" in capfd.readouterr().out


def test_a_run_that_fails_and_does_not_differ_keeps_its_exit_code(here: Path) -> None:
    recorded("--to", "a", "--", *script("trainer", "--pause=0"))
    then_fails = ["sh", "-c", f"{shlex.join(script('trainer', '--pause=0'))}; exit 9"]
    assert recorded("--to", "b", "--against", "a", "--", *then_fails) == 9
    too_short = ["sh", "-c", f"{shlex.join(script('trainer', '--pause=0', '--steps=5'))}; exit 9"]
    assert recorded("--to", "c", "--against", "a", "--", *too_short) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "none"), "none holds no record: no record.json in it; name what `repro record` made"),
        (("--against", "empty"), "--against empty: holds no step and no output, so nothing can be compared with it"),
        (("--against", "a", "--every", "2"), "--every 2: a was recorded with --every 3; leave the option out"),
    ],
)
def test_what_nothing_can_be_compared_with(
    words: tuple[str, ...], said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded("--to", "a", "--every", "3", "--", *script("trainer", "--pause=0"))
    recorded("--to", "empty", "--", "true")
    capfd.readouterr()
    assert recorded("--to", "b", *words, "--", "touch", "ran") == 2
    told = capfd.readouterr().err
    assert told.startswith("error: record: ") and said in told and told.count("\n") == 1
    assert not (here / "b").exists() and not (here / "ran").exists()


def test_the_arrays_of_both_sides_at_the_first_difference(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, str(PROGRAMS / "kept_arrays.py")]
    recorded("--to", "a", "--", *command)
    assert recorded("--to", "b", "--against", "a", "--keep", "--", *command, "--from=4") == 3
    told = " ".join(capfd.readouterr().err.split())  # its lines are as long as the terminal is wide
    assert f"a will run again in {here}: {shlex.join(command)} a again, until step 4 " in told
    assert "by `w`: 1 of 1 elements, up to 524288 ulp, relative 6.2e-02" in told
    assert (here / "reached").read_text() in "45" and not (here / "a" / "kept").exists()
    assert sorted(os.listdir(here / "b")) == ["kept", "record.json", "steps"]
    names = {value: hashlib.sha256(b"float32 1\n" + struct.pack("<f", value)).hexdigest() for value in (0, 4, 4.25)}
    kept = [value for value, name in names.items() if (here / "b" / "kept" / name).exists()]
    assert kept == [4, 4.25]  # how many of the steps between were removed depends on how soon each line was read
    capfd.readouterr()
    assert __main__.main(["compare", "a", "b"]) == 3
    assert "  by      `w`: 1 of 1 elements" in capfd.readouterr().out


def test_the_command_of_a_stranger_is_not_run_for_its_arrays(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, str(PROGRAMS / "kept_arrays.py")]
    recorded("--to", "a", "--", *command)
    content = json.loads((here / "a" / record.FILE).read_text())
    (here / "a" / record.FILE).write_text(json.dumps(content | {"signature": "0" * 64}))
    capfd.readouterr()
    assert recorded("--to", "b", "--against", "a", "--keep", "--", *command, "--from=4") == 3
    told = capfd.readouterr().err
    assert "the arrays of a are not kept: it was not recorded by you on this machine, so its command is not run" in told
    assert "again, until step" not in told and "  by " not in told
