"""Runs of a command.

The cores of a run, and what two runs wrote.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from repro.record import outputs, record
from repro.record.process import error_line, limited_to_cores, start, terminate
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.command_runs import Trials
from repro.verify.judgment import Outputs
from repro.verify.questions import BASELINE, REPEAT, Change
from repro.verify.trial import Command, Trial
from support.commands import Steps, sha, write
from support.runs import HANG
from support.waiting import is_gone, until


def test_fewer_cores_for_what_is_started_only() -> None:
    before = os.sched_getaffinity(0)
    with limited_to_cores(1):
        code = "import os; print(len(os.sched_getaffinity(0)))"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1\n"
    assert os.sched_getaffinity(0) == before


def test_what_ignores_a_signal_is_killed_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.record.process.GRACE", 0.2)
    code = f"trap '' TERM; sleep {HANG} & echo $! > child; echo; wait; sleep {HANG}"
    with subprocess.Popen(["sh", "-c", code], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        terminate(process, signal.SIGTERM)
    assert process.returncode == -signal.SIGKILL
    until(lambda: is_gone(int((tmp_path / "child").read_text())))


def test_what_went_into_a_session_of_its_own_is_ended_too(tmp_path: Path) -> None:
    code = f"setsid sh -c 'echo $$ > child; sleep {HANG}' & while ! test -s child; do sleep 0.01; done; echo; wait"
    with subprocess.Popen(["sh", "-c", code], cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        terminate(process, signal.SIGKILL)
    until(lambda: is_gone(int((tmp_path / "child").read_text())))


def test_outputs_of_the_runs_own_folder_have_its_name_in_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "runs [1]"  # brackets are no pattern here
    (own / "deep").mkdir(parents=True)
    (own / "deep" / "m").write_text("1")
    (tmp_path / "n").write_text("2")
    monkeypatch.chdir(tmp_path)
    assert [*outputs.matched(["{run}", "{run}/deep/*", "n"], own)] == ["n", "{run}/deep/m"]


def test_a_file_that_was_written_again_counts_as_written(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    before = outputs.folder(tmp_path)
    beside = tmp_path / "new"
    beside.write_text("1")
    os.utime(beside, ns=(1, 1))
    beside.replace(tmp_path / "a")
    assert outputs.written(before, outputs.folder(tmp_path)) == {str(tmp_path / "a")}


def test_what_a_rank_said_comes_before_the_launchers_table(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(
        "[rank0]: KeyError: of the run before\n[rank1]: Traceback (most recent call last):\n[rank1]:   File\n"
        "[rank1]: ValueError: why\n[rank0]: RuntimeError: closed by peer\nFAILED: train.py\n=====\n"
    )
    assert error_line(tmp_path / "stderr", since=37) == "[rank1]: ValueError: why"
    (tmp_path / "stderr").write_text("one\ntwo\n")
    assert error_line(tmp_path / "stderr") == "two"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Traceback (most recent call last):\n  File\nx.Odd: why\n\nCheck the documentation of it.\n", "x.Odd: why"),
        ("Traceback (most recent call last):\n  File\nKeyError\nmake: *** [all] Error 1\n", "KeyError"),
        ("Odd: a\n\nThe above exception:\n\nTraceback (most recent call last):\n  File\nOdd: b\nend\n", "Odd: b"),
        ("  File\n    x = (\n        ^\nSyntaxError: why\nend\n", "SyntaxError: why"),
        (
            "KeyError: 1\nException ignored in: x\nTraceback (most recent call last):\n  File\nOSError: 2\n",
            "KeyError: 1",
        ),
        ("Traceback (most recent call last):\n  File\nx.Odd: \x1b[1;31mwhy\x1b[0m.\n", "x.Odd: why."),
        ("ValueError is what it says\nError 3\n", "Error 3"),
        ("", ""),
    ],
)
def test_the_line_of_an_exception_says_more_than_the_last_one(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(text)
    assert error_line(tmp_path / "stderr") == said


@pytest.mark.parametrize(
    ("patterns", "written", "printed", "said"),
    [
        ((), [], "at {}", "there is no --output, and the command prints a different text in each run"),
        ((), [], "", "there is no --output, and the command prints nothing"),
        (("m",), ["m"], "", "the outputs differ from run to run, and the command prints nothing"),
        (("m",), [], "", "--output names no file that the command wrote, and the command prints nothing"),
    ],
)
def test_without_the_observer_there_is_nothing_to_compare(
    patterns: tuple[str, ...], written: list[str], printed: str, said: str, tmp_path: Path
) -> None:
    """Outputs that differ from run to run were left out."""
    command = Command(["x"], patterns=patterns)
    baseline, repeat = (Trial(change, command, tmp_path / change.label) for change in (BASELINE, REPEAT))
    for trial in (baseline, repeat):
        trial.folder.mkdir()
        (trial.folder / "stdout").write_text(printed.format(trial.change.label))
        trial.hashes = dict.fromkeys(written, trial.change.label)
        trial.leave_out(written)
    (question,) = (question for question in COMMAND_QUESTIONS if question.name == "observed")
    assert Outputs(question, baseline, repeat).obstacle(baseline) == said


def test_the_fingerprint_of_a_resumed_run_is_one_of_the_whole_runs_names(tmp_path: Path) -> None:
    """It lacks an optimizer that was done when it began; of one whose weights are not there, nothing is said."""
    first = {0: {"initial weights": weights(0, "0")}, 1: step(1, "0")}
    whole = record.read(write(tmp_path / "whole", first | {2: step(2, "1") | {"initial weights": weights(1, "1")}}))
    for number, names in enumerate((("w",), ("net.w",), ("w", "more"))):
        rest: Steps = {0: {"initial weights": weights(1, "0", *names)}, 1: step(2, "0", *names)}
        resumed = record.read(write(tmp_path / str(number), rest))
        trial = Trial(Change("killed", course="kill"), Command(["x"]), tmp_path, record=resumed)
        assert trial.fingerprint != whole.content.fingerprint
        trial.name_as(whole)
        assert trial.fingerprint == (whole.content.fingerprint if len(names) == 1 else None)


def weights(after: int, optimizer: str, *names: str) -> dict[str, str]:
    """The weights of an optimizer after a step."""
    return {f"{optimizer}.{name}": sha((name.rpartition(".")[2], after)) for name in names or ("w",)}


def step(number: int, optimizer: str, *names: str) -> dict[str, dict[str, str]]:
    return {"gradients": weights(number, optimizer, *names), "weights": weights(number, optimizer, *names)}


def test_what_a_command_sets_in_a_list_of_settings_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"GLIBC_TUNABLES": "glibc.malloc.check=1", "XLA_FLAGS": "--a", "NPY_DISABLE_CPU_FEATURES": "X"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    change = Change("c", tuple((name, "b") for name in own))
    said = 'echo "$GLIBC_TUNABLES $XLA_FLAGS $NPY_DISABLE_CPU_FEATURES"'
    trial = Trials(Command(["sh", "-c", said]), tmp_path).run(change)
    assert trial.stdout == b"glibc.malloc.check=1:b --a b b\n"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_what_has_just_been_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """... though nobody waits for it yet."""
    started = []

    def interrupted(*words, **how) -> subprocess.Popen[bytes]:
        started.append(start(*words, **how))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr("repro.record.running.start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Trials(Command(["sleep", str(HANG)]), tmp_path).run(BASELINE)
    assert started[0].returncode == -signal.SIGKILL
