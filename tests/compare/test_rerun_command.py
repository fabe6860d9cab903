"""`repro compare A B --narrow` of two records: what it runs, what it refuses to run, the operation that it names."""

import hashlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from repro import __main__
from repro.record import lines, record
from repro.record.injection import PATH
from support.commands import REPRO, SCRIPTS, environment, straight, write
from support.observed import interpreter
from support.runs import HANG
from support.waiting import until, whole_line

BY_HAND = '''
"""Writes the lines of five steps, as the observer would, with an operation that depends on OMP_NUM_THREADS."""
import hashlib, json, os, pathlib, sys, time

def sha(value):
    return hashlib.sha256(repr(value).encode()).hexdigest()

pathlib.Path("ran").open("a").write(os.environ.get("OMP_NUM_THREADS", "none") + "\\n")
threads, drawn = os.environ.get("OMP_NUM_THREADS"), pathlib.Path("drawn").read_text()
narrow = int(os.environ.get("REPRO_OBSERVE_NARROW", "0"))
if narrow and "hang" in sys.argv:
    pathlib.Path("pid").write_text(f"{os.getpid()}\\n")
    time.sleep(HANG)
with open(f"{os.environ['REPRO_OBSERVE']}/steps/{os.getpid()}.jsonl", "a", buffering=1) as file:
    def line(**content):
        file.write(json.dumps(content) + "\\n")

    line(kind="process", argv=["train.py"], python="3.11.2", frameworks={"torch": "2"}, threads=int(threads or 2))
    line(kind="step", step=0, hashes={"initial weights": {"w": sha(drawn)}})
    for step in range(1, 6):
        other = threads if step >= 3 else None
        if step == narrow and "blind" not in sys.argv:
            line(kind="operation", step=step, number=1, name="aten.mm.default", inputs=[sha(step)],
                 outputs=[sha(("gradients", step, other))], in_place=False, view=False, read_at=[1], written_at=[2],
                 module="layers.1", line=f"{os.getcwd()}/train.py:3", backward=True)
        if step == 3 and narrow:
            pathlib.Path("stopped").touch()
        line(kind="step", step=step, hashes={channel: {"w": sha((channel, step, other))} for channel in
                                             ("gradients", "weights")})
        if step == 3 and narrow:
            time.sleep(HANG)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PATH, raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (tmp_path / "drawn").write_text("1")
    return tmp_path


def repro(*words: str) -> int:
    return __main__.main([*words])


def recorded(name: str, *command: str, threads: str, every: int = 1) -> None:
    os.environ["OMP_NUM_THREADS"] = threads
    try:
        assert repro("record", "--to", name, "--every", str(every), "--", *command) == 0
    finally:
        del os.environ["OMP_NUM_THREADS"]


def by_hand(here: Path, *options: str) -> None:
    """Two records of the script above, of runs with other numbers of threads."""
    (here / "train.py").write_text(BY_HAND.replace("HANG", str(HANG)))
    for threads in ("1", "4"):
        recorded(threads, sys.executable, "train.py", *options, threads=threads)
    (here / "ran").unlink()


@pytest.mark.slow  # four processes of PyTorch; tasks/test_verify.py names an operation, too
def test_a_sum_that_is_split_among_threads(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = (interpreter("pytorch"), str(SCRIPTS / "split_among_threads.py"))
    for name, threads in (("a", "1"), ("b", "4")):
        recorded(name, *command, threads=threads, every=4)
    if record.read(here / "a").content.fingerprint == record.read(here / "b").content.fingerprint:
        pytest.skip("on this machine the product is the same with 1 and 4 threads")
    capfd.readouterr()
    assert repro("compare", "a", "b", "--narrow") == 3
    told = capfd.readouterr()
    assert "differs: first seen at step 4, in the gradients" in told.out
    last = told.out.splitlines()[-1]
    assert last.startswith("  begins  in step 3, with aten.mm.default, operation ")
    assert " in the backward pass of 0 (" in last or " in the backward pass of 2 (" in last
    assert last.endswith("/split_among_threads.py:13): its inputs are equal, its results are not")


def test_both_are_run_as_they_were_and_stopped_after_the_step(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here)
    capfd.readouterr()
    os.environ["OMP_NUM_THREADS"] = "7"
    (here / "elsewhere").mkdir()
    os.chdir("elsewhere")
    assert repro("compare", "../1", "../4", "--narrow") == 3
    told = capfd.readouterr()
    assert told.out.endswith(
        "\n  begins  in step 3, with aten.mm.default, operation 1 of 1 in the backward pass of layers.1 (train.py:3): "
        "its inputs are equal, its results are not\n"
    )
    assert (here / "ran").read_text() == "1\n4\n" and (here / "stopped").exists()
    assert f"A will run again in {here}: OMP_NUM_THREADS=1 " in told.err and "A again, until step 3\n" in told.err
    assert not [*(here / "elsewhere").iterdir()]


def test_a_rerun_with_other_bits_says_nothing_of_operations(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here)
    (here / "drawn").write_text("2")
    capfd.readouterr()
    assert repro("compare", "1", "4", "--narrow") == 1
    told = capfd.readouterr()
    assert "error: compare: 1, run again, does not give the bits that were recorded" in told.err
    assert "the initial weights before the first step differ" in told.err and "begins" not in told.out


def test_a_rerun_that_fails(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here)
    (here / "drawn").unlink()
    capfd.readouterr()
    assert repro("compare", "1", "4", "--narrow") == 1
    error = capfd.readouterr().err.splitlines()[-1]
    assert "0 processes took steps, 1 are recorded" in error and "No such file or directory: 'drawn'" in error


def test_a_step_of_which_no_operation_was_seen(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here, "blind")
    capfd.readouterr()
    assert repro("compare", "1", "4", "--narrow") == 1
    assert "error: compare: no operation of step 3 was seen" in capfd.readouterr().err


def of_a_stranger(folder: Path, **environment: str) -> None:
    """Makes a record one that somebody else could have made of the same files, with other variables."""
    content = json.loads((folder / record.FILE).read_text())
    content["facts"]["environment"] |= environment
    (folder / record.FILE).write_text(json.dumps(content))


def test_what_a_stranger_recorded_is_shown_and_not_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here)
    of_a_stranger(here / "4", OMP_DYNAMIC="TRUE")
    capfd.readouterr()
    assert repro("compare", "1", "4", "--narrow") == 2
    told = capfd.readouterr()
    assert told.err.splitlines()[-1] == (
        "error: compare: --narrow has run nothing, as you have not recorded 4 on this machine; "
        "read the commands above, and run them with --trust"
    )
    assert (
        f"B will run again in {here}: OMP_NUM_THREADS=4 OMP_DYNAMIC=TRUE {shlex.quote(sys.executable)} train.py\n"
        in told.err
    )
    assert not (here / "ran").exists()


def test_with_trust_only_what_steers_numerics_is_set(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by_hand(here)
    (here / "evil").mkdir()
    (here / "evil" / "sitecustomize.py").write_text("open('victim', 'w')")
    hostile = {"PATH": f"{here}/evil", "PYTHONPATH": f"{here}/evil", "BASH_ENV": "x", "OMP_TOOL_LIBRARIES": "/x.so"}
    of_a_stranger(here / "1", **hostile, XLA_FLAGS="--xla_dump_to=x")
    capfd.readouterr()
    assert repro("compare", "1", "4", "--narrow", "--trust") == 3
    told = capfd.readouterr()
    assert (here / "ran").read_text() == "1\n4\n" and not (here / "victim").exists()
    assert (
        "A: not set as recorded, because they can do more than steer numerics: PATH, PYTHONPATH, BASH_ENV, "
        "OMP_TOOL_LIBRARIES, XLA_FLAGS\n"
    ) in told.err


@pytest.mark.parametrize(("said", "runs"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_a_terminal_is_asked(said: str, runs: bool, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand(here)
    of_a_stranger(here / "4", OMP_DYNAMIC="TRUE")
    keyboard = io.StringIO(said)
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert repro("compare", "1", "4", "--narrow") == (3 if runs else 2)
    assert (here / "ran").exists() == runs


def test_trust_without_narrow(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert repro("compare", "1", "4", "--trust") == 2
    assert "--trust goes with --narrow" in capfd.readouterr().err


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_what_is_run_again(here: Path) -> None:
    by_hand(here, "hang")
    with subprocess.Popen([*REPRO, "compare", "1", "4", "--narrow"], env=environment(), stderr=-1) as process:
        number = until(lambda: whole_line(here / "pid"), process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
    assert process.returncode == 1 and errors.endswith(b"error: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)


def changed(here: Path, **content: object) -> tuple[str, str]:
    """Two records by hand that part in the gradients of step 2, of a command that would leave a file."""
    (here / "train.py").write_text("open('ran', 'w')\n")
    facts = {"environment": {}, "scripts": {"train.py": "0" * 64}} | content.pop("facts", {})  # type: ignore[operator]
    whole = {"command": [sys.executable, "train.py"], "folder": str(here), "facts": facts} | content
    write(here / "a", straight(3), **whole)
    write(here / "b", straight(3, gradients={2: "x"}, weights={2: "x", 3: "x"}), **whole)
    return "a", "b"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "train.py is not the file that was recorded; record the command again"),
        ({"facts": {"scripts": {}}}, "its command names no script file"),
        ({"facts": {"scripts": None}}, "its command names no script file"),
        ({"facts": {"scripts": "train.py"}}, "its command names no script file"),
        ({"facts": {"environment": None}}, "it does not hold the variables of its run"),
        ({"facts": {"environment": {"PYTHONPATH": "/a\x1b[2J"}}}, "its environment holds characters that cannot be"),
        ({"command": ["sh", "-c", "touch ran\n"]}, "its command holds characters that cannot be shown"),
        ({"folder": "/no/such/folder"}, "the folder that it was run in does not exist: /no/such/folder"),
    ],
)
def test_what_is_not_known_to_be_the_same_command_is_not_run(
    content: dict, said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert repro("compare", *changed(here, **content), "--narrow") == 2
    told = capfd.readouterr()
    assert "differs: first seen at step 2, in the gradients" in told.out
    assert told.err.count("\n") == 1 and said in told.err and not (here / "ran").exists()


def test_a_shell_with_the_right_script_beside_it(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "train.py").write_text("public")
    scripts = {"train.py": hashlib.sha256(b"public").hexdigest()}
    changed(here, command=["sh", "-c", "touch ran", "train.py"], facts={"scripts": scripts})
    (here / "train.py").write_text("public")
    assert repro("compare", "a", "b", "--narrow") == 2
    told = capfd.readouterr()
    assert f"A will run again in {here}: sh -c 'touch ran' train.py\n" in told.err and "--trust" in told.err
    assert not (here / "ran").exists()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"batch": {2: "x"}, "weights": {2: "x"}}, "equal before it; here the batch differ first"),
        ({"generator": {2: "x"}, "weights": {2: "x"}}, "equal before it; here the generator differ first"),
    ],
)
def test_what_no_operation_of_the_step_explains(
    steps: dict, said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(here / "a", straight(3))
    write(here / "b", straight(3, **steps))
    assert repro("compare", "a", "b", "--narrow") == 2
    assert said in capfd.readouterr().err


def test_other_frameworks(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in changed(here):
        (file,) = (here / name / lines.STEPS).iterdir()
        file.write_text(file.read_text().replace('"torch"', '"jax"'))
    assert repro("compare", "a", "b", "--narrow") == 2
    assert "--narrow looks into steps of PyTorch alone" in capfd.readouterr().err


def test_nothing_is_run_where_both_are_the_same(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changed(here)
    assert repro("compare", "a", "a", "--narrow") == 0
    assert "same: " in capfd.readouterr().out
