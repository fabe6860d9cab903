"""`repro record`: the command runs as it stands, and leaves a record; what goes wrong is one line."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from repro import __main__
from repro.record import record
from repro.record.injection import EVERY, FOLDER, PATH, SITE
from support.commands import REPRO, SCRIPTS, environment, recorded, repro, script
from support.observed import interpreter
from support.runs import HANG
from support.waiting import until


def test_input_output_and_exit_code_are_the_commands_own(here: Path) -> None:
    done = repro("record", "--to", "a", "--", "sh", "-c", "cat; echo said >&2; exit 7", cwd=here, stdin="read")
    assert (done.returncode, done.stdout) == (7, "read")
    assert done.stderr.startswith("said\nrepro: NOTHING WAS OBSERVED")
    assert record.read(here / "a").content.exit_code == 7


def test_what_a_record_holds(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    assert recorded("--to", "a", "--output", "out/*", "--every", "5", "--", *script("trainer")) == 0
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1 and told[0].startswith(
        "repro: 10 steps observed (plain 1.0), one step in 5 hashed; outputs hashed: 2; "
    )
    result = record.read(here / "a")
    assert [*result.processes[0].steps] == [0, 1, 5, 10]
    assert result.content.folder == str(here) and result.content.command == script("trainer")
    assert [*result.outputs] == ["out/checkpoint.json", "out/model.json"]
    facts = result.content.facts
    assert facts["versions"] == {"python": "3.11.0", "plain": "1.0"} and facts["threads"] == 1
    assert [*facts["scripts"]] == [str(SCRIPTS / "trainer.py")]
    assert {"cpu", "gpu", "environment", "container", "source"} <= facts.keys()
    assert result.content.fingerprint and result.content.fingerprint in told[0]


def test_what_observing_took(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("--to", "a", "--", *script("trainer"))
    assert re.search(r"; \d+\.\d s, 0\.0 s of them for observing \(\d\.\d%\); ", capfd.readouterr().err)


def test_two_records_have_one_fingerprint(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        recorded("--to", name, "--", *script("trainer", "--pause=0"))
    capfd.readouterr()
    assert __main__.main(["compare", "a", "b"]) == 0
    assert capfd.readouterr().out.endswith("same: all that both records hold is equal (12 steps)\n")


def test_compare_names_where_a_resumed_run_parts(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faulty = script("generator_not_restored", "--pause=0")
    recorded("--to", "whole", "--", *faulty)
    recorded("--to", "part", "--", *faulty, "--steps=6", "--out=two")
    recorded("--to", "rest", "--", *faulty, "--resume", "--out=two")
    capfd.readouterr()
    for order in (("whole", "rest"), ("rest", "whole")):
        assert __main__.main(["compare", *order]) == 3
        told = capfd.readouterr().out
        assert "differs: first seen at step 7 of A, which is step 1 of B, resumed after 6, in the batch" in told
        assert "the generator `python` at step 1 of B is that of step 1 of A: the random generator was not" in told


def test_other_options_are_told(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("--to", "a", "--", *script("trainer", "--pause=0"))
    recorded("--to", "b", "--", *script("trainer", "--pause=0", "--seed=7"))
    capfd.readouterr()
    assert __main__.main(["compare", "a", "b"]) == 3
    told = capfd.readouterr().out.split("most likely cause first:\n")[1]
    assert told.startswith("    command: ") and "(another command, or other options)" in told


@pytest.mark.deep
def test_workers_that_seed_themselves(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        recorded("--to", name, "--", interpreter("pytorch"), str(SCRIPTS / "workers_unseeded.py"))
    capfd.readouterr()
    assert __main__.main(["compare", "a", "b"]) == 3
    told = capfd.readouterr().out
    assert "differs: first seen at step 1, in the batch" in told
    assert "a generator that cannot be seen, such as those in a DataLoader's workers (a guess)" in told


def test_the_variables_that_the_observer_reads(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = f"import os; print([os.environ.get(name) for name in ('{PATH}', '{FOLDER}', '{EVERY}')])"
    os.environ[PATH] = "/mine"
    recorded("--to", "a", "--every", "3", "--", sys.executable, "-c", code)
    assert capfd.readouterr().out.strip() == str([f"{SITE}{os.pathsep}/mine", str(here / "a"), "3"])


def test_a_default_place(here: Path) -> None:
    recorded("--", "true")
    (made,) = (here / "repro-records").iterdir()
    assert record.read(made).steps == 0


def test_an_output_that_was_there_before_is_none_of_the_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "old.txt").write_text("old")
    recorded("--to", "a", "--output", "*.txt", "--", "sh", "-c", "echo new > new.txt")
    result = record.read(here / "a")
    assert [*result.outputs] == ["new.txt"]
    assert "old.txt was there before, and the command did not write it" in capfd.readouterr().err


def test_an_output_that_names_no_file_is_told(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """... beside others, and beside steps: nobody should think that it was compared."""
    (here / "old.txt").write_text("old")
    written = [*script("trainer", "--pause=0"), "--out=out"]
    recorded("--to", "a", "--output", "out/*", "--output", "modle.*", "--output", "*.txt", "--", *written)
    assert record.read(here / "a").content.notes == [
        "--output modle.* names no file that the command wrote",
        "old.txt was there before, and the command did not write it",
    ]
    assert "--output modle.* names no file" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "a"), "no command; put it after --"),
        (("--to", "a", "--"), "no command; put it after --"),
        (("--to", "a", "python", "train.py"), "put -- before the command"),
        (("--every", "0", "--", "true"), "--every 0: must be 1 or more"),
        (("--every", "x", "--", "true"), "argument --every: invalid int value: 'x'"),
        (("--modules", "", "--", "true"), "--modules '': must be numbers of steps from 1, as 1 or 1,2"),
        (("--modules", "1,0", "--", "true"), "--modules '1,0': must be numbers of steps from 1, as 1 or 1,2"),
        (("--modules", "1,,2", "--", "true"), "--modules '1,,2': must be numbers of steps from 1, as 1 or 1,2"),
        (("--to", "a", "--", "/no/such"), "'/no/such' cannot be started: No such file or directory"),
        (("--to", "a", "--", "./plain"), "'./plain' cannot be started: Permission denied"),
        (("--to", "a", "--", "a\0b"), "cannot be started: embedded null byte"),
        (("--to", "full", "--", "true"), "already exists and is not empty"),
    ],
)
def test_wrong_usage_is_one_line_and_2(
    words: tuple[str, ...], said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "full").mkdir()
    (here / "plain").write_text("no program")
    (here / "full" / "mine").write_text("mine")
    assert recorded(*words) == 2
    told = capfd.readouterr().err
    assert told.startswith("error: ") and said in told and told.count("\n") == 1
    assert (here / "full" / "mine").read_text() == "mine"


def test_a_command_that_kills_itself(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert recorded("--to", "a", "--", "sh", "-c", "kill -KILL $$") == 128 + signal.SIGKILL
    assert record.read(here / "a").content.exit_code == 137
    assert "NOTHING WAS OBSERVED" in capfd.readouterr().err


def test_a_full_disk_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.os.fsync", full)
    for code in (0, 4):
        assert recorded("--to", f"{code}", "--", "sh", "-c", f"exit {code}") == code
        told = capfd.readouterr().err
        assert told.count("\n") == 1 and "record.json: No space left on device; make it writable, or free space" in told
        assert f"; the command ended with code {code}, without a record" in told
        assert not (here / f"{code}" / record.FILE).exists()


def test_a_command_that_removes_the_current_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "current").mkdir()
    monkeypatch.chdir(here / "current")
    try:
        assert recorded("--to", "../a", "--", "rmdir", str(here / "current")) == 0
    finally:
        os.chdir(here)
    assert record.read(here / "a").content.folder == str(here / "current")


def test_outputs_of_any_name(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["a\u00a0b", "a b", "a\\xa0b", "a\nb", "a\u200db", "a\x1b[2Jb", os.fsdecode(b"a\xffb")]
    words = [f"o/{name}" for name in names]
    command = [sys.executable, "-c", "import sys; [open(name, 'w').write(name) for name in sys.argv[1:6]]", *words[:5]]
    shell = "mkdir o; " + shlex.join(command) + "".join(f"; echo 1 > {shlex.quote(word)}" for word in words[5:])
    assert recorded("--to", "a", "--output", "o/*", "--", "sh", "-c", shell) == 0
    result = record.read(here / "a")
    assert len(result.outputs) == len(names) and all(name.isprintable() for name in result.outputs)
    assert {"o/a\\xa0b", "o/a\\\\xa0b", "o/a\\nb", "o/a\\udcffb"} <= result.outputs.keys()
    capfd.readouterr()
    assert __main__.main(["compare", "a", "a"]) == 0
    assert "outputs: 7" in capfd.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.usefixtures("interruptible")
def test_signals_go_to_the_command(number: signal.Signals, here: Path) -> None:
    code = (
        f"import signal, sys, time; signal.signal({number:d}, lambda *_: sys.exit(5)); print('ready', flush=True); "
        f"time.sleep({HANG})"
    )
    command = [*REPRO, "record", "--to", "a", "--", sys.executable, "-c", code]
    with subprocess.Popen(
        command, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(timeout=HANG) == 5
    assert json.loads((here / "a" / record.FILE).read_text())["exit_code"] == 5


def test_debug_after_the_dashes_is_the_commands_own(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("--to", "a", "--", "echo", "--debug", "--", "x")
    assert capfd.readouterr().out == "--debug -- x\n"


def test_a_record_that_is_cut_off_while_it_runs(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [*REPRO, "record", "--to", "a", "--", *script("trainer", f"--pause={HANG}")]
    with subprocess.Popen(command, cwd=here, env=environment(), start_new_session=True) as process:
        until(lambda: list((here / "a" / "steps").glob("*.jsonl")), process)
        os.killpg(process.pid, signal.SIGKILL)
    assert __main__.main(["compare", "a", "a"]) == 1
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and "a was cut off before its end" in told
