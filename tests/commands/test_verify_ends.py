"""`repro verify` of a command that is asked wrongly, has no room, or is ended: one line, and what is known is kept."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from repro import __main__
from repro.record import record
from repro.verify.command_runs import Trials
from repro.verify.questions import Change
from repro.verify.trial import Trial
from support.commands import REPRO, environment, script
from support.runs import HANG
from support.verified import SMALL, resumable, verify
from support.waiting import is_gone, until, whole_line

pytestmark = pytest.mark.usefixtures("data")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--vary", "x", "--", "true"), 2, "--vary 'x': must be NAME=OPTION{}:VALUE,VALUE, as in"),
        (("--stops", "0", "--resume", "true", "--", "true"), 2, "--stops 0: must be 1 or more"),
        (("--stops", "2", "--", "true"), 2, "--stops 2: goes with --resume"),
        (("--ask", "restart,none", "--", "true"), 2, "--ask none: must be some of all,restart,observed"),
        (("--resume", "'", "--", "true"), 2, '--resume "\'": No closing quotation'),
        (("--resume", "", "--", "true"), 2, "is empty"),
        (("--", "/no/such"), 2, "'/no/such' cannot be started"),
        (
            ("--", "true"),
            1,
            "nothing in the command was observed: no step of an optimizer, no output and no metric; name",
        ),
        (("--output", "x*", "--", "true"), 1, "--output x* names no file that the command wrote"),
        (("--", "sh", "-c", "echo first; echo why >&2; exit 4"), 1, "fails as it stands: it ended with code 4: why"),
        (("--", "sh", "-c", "printf '\\033[2J' >&2; exit 4"), 1, "fails as it stands: it ended with code 4"),
        (("--", "sh", "-c", "kill -KILL $$"), 1, "fails as it stands: it was killed by SIGKILL"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], code: int, said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "answers.json").write_text('{"answers": []}')
    assert verify(*words)[0] == code
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert said in error and error.isprintable()
    assert (here / "answers.json").read_text() == '{"answers": []}'  # what was there is untouched


def test_a_folder_of_ones_own_for_the_runs(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--to", "mine", "--ask", "restart", "--output", "{run}/m", "--", "sh", "-c", "echo 1 > {run}/m")
    assert verify(*words)[0] == 0
    assert (here / "mine" / "again" / "run" / "m").exists() and not (here / "repro-records").exists()
    assert verify(*words)[0] == 2
    assert "error: verify: mine already exists and is not empty" in capfd.readouterr().err


def test_our_own_files_below_the_current_folder_are_no_checkpoint(here: Path) -> None:
    code, content = verify("--to", "mine", "--ask", "kill", *resumable("late_checkpoint"))
    assert code == 0 and content["answers"]["kill"]["why"].startswith(
        "went on after step 10 of 12; outputs: 2; not covered: "
    )


def test_the_runs_own_folder_has_one_path_in_all_runs(here: Path) -> None:
    """Programs write it into their checkpoints."""
    said = "test ! -e {run}/m && echo {run} > {run}/m"
    code, content = verify("--ask", "restart,hash_seed", "--output", "{run}/m", "--", "sh", "-c", said)
    assert code == 0 and {answer["answer"] for answer in content["answers"].values()} == {"same"}


def test_a_file_that_holds_a_time_leaves_the_steps(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trainer = shlex.join(script("trainer", *SMALL))
    asked = ["--ask", "restart,observed,hash_seed", "--output", "{run}/m", "--output", "{run}/n"]
    code, content = verify(*asked, "--", "sh", "-c", f"{trainer}; date +%N > {{run}}/m; echo 1 > {{run}}/n")
    answers = content["answers"]
    assert code == 3
    assert {name: answer["answer"] for name, answer in answers.items()} == {
        "restart": "differs",
        "observed": "same",
        "hash_seed": "same",
    }
    assert answers["restart"]["first"] == {"step": None, "channel": "outputs", "name": "{run}/m"}
    assert "12 steps and outputs: 1" in answers["hash_seed"]["why"]
    told = capfd.readouterr()
    assert "`{run}/m` differs from run to run" in told.out
    assert f"equal but for `{{run}}/m`; without it, both have {content['fingerprint'][:23]}\n" in told.err


def test_files_whose_names_hold_a_time_leave_the_steps(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As those that TensorBoard reads."""
    trainer = shlex.join(script("trainer", *SMALL))
    asked = ["--ask", "restart,hash_seed", "--output", "{run}/[0-9n]*"]
    code, content = verify(*asked, "--", "sh", "-c", f"{trainer}; echo 1 > {{run}}/$(date +%N); echo 1 > {{run}}/n")
    answers = content["answers"]
    assert code == 3 and {name: answer["answer"] for name, answer in answers.items()} == {
        "restart": "differs",
        "hash_seed": "same",
    }
    assert "12 steps and outputs: 1" in answers["hash_seed"]["why"]
    assert " differ from run to run; all other answers" in " ".join(capfd.readouterr().out.split())


def test_a_command_that_removes_its_folder(here: Path) -> None:
    said = f"echo 1 > {here}/m; rm -r {{run}}"
    code, content = verify("--ask", "restart", "--output", "m", "--", "sh", "-c", said)
    assert (code, content["answers"]["restart"]["answer"]) == (0, "same")


def test_a_command_that_removes_the_current_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "current").mkdir()
    monkeypatch.chdir(here / "current")
    words = ("--to", "../runs", "--output", "{run}/m", "--", "sh", "-c", f"echo 1 > {{run}}/m; rmdir {here}/current")
    try:
        assert __main__.main(["verify", *words]) == 1
    finally:
        os.chdir(here)
    assert "error: the current folder is gone: something removed it" in capfd.readouterr().err
    assert (here / "runs" / "as-it-stands" / "record" / "record.json").exists()


def test_a_name_that_is_no_utf_8(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"{run}/a\xff\n")
    words = ("--to", "runs", "--ask", "restart", "--output", "{run}/*")
    code, content = verify(*words, "--", "sh", "-c", 'echo $$ > "$1"', "sh", name)
    assert code == 3 and content["answers"]["restart"]["first"]["name"] == r"{run}/a\udcff\n"
    assert r"a\udcff\n" in capfd.readouterr().out
    assert __main__.main(["compare", "runs/as-it-stands", "runs/again"]) == 3  # a run's folder is taken for its record


def test_a_full_disk_is_not_the_commands_failure(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.tempfile.TemporaryFile", full)
    assert __main__.main(["verify", "--to", "runs", "--", "sh", "-c", "exit 4"]) == 1
    told = capfd.readouterr().err
    assert f"error: {here}/runs/as-it-stands: No space left on device; make it" in told and "fails as" not in told


def test_what_is_known_is_shown_though_the_disk_fails_later(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--to", "runs", "--ask", "restart,hash_seed,threads", "--output", "{run}/m")
    command = f"echo 1 > {{run}}/m; test ! -e {here}/runs/pythonhashseed-77-objects-elsewhere || rm -r {here}/runs/pythonhashseed-77-objects-elsewhere"
    code, content = verify(*words, "--", "sh", "-c", command)
    answers = {name: answer["answer"] for name, answer in content["answers"].items()}
    assert (code, answers) == (1, {"restart": "same", "hash_seed": "not asked", "threads": "not asked"})
    told = capfd.readouterr()
    (error,) = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert "No such file or directory; see that it is there" in error and "restart same" in " ".join(told.out.split())


def test_a_place_for_the_answers_that_cannot_be_written(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["verify", "--json", "no/such.json", "--", "true"]) == 2
    assert "--json no/such.json: cannot be written" in capfd.readouterr().err
    assert not (here / "repro-records").exists()


def test_a_run_that_fails_under_a_change_is_inconclusive(here: Path) -> None:
    code, content = verify(
        "--ask",
        "environment,hash_seed",
        "--output",
        "{run}/m",
        "--",
        "sh",
        "-c",
        'echo 1 > {run}/m; test "$TZ" != Asia/Tokyo',
    )
    answers = content["answers"]
    assert (code, answers["environment"]["answer"], answers["hash_seed"]["answer"]) == (1, "cannot tell", "same")
    assert answers["environment"]["why"] == "elsewhere: it ended with code 1"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_what_is_known_and_ends_what_hangs(here: Path) -> None:
    hang = f'echo 1 > {{run}}/m; test -z "$PYTHONHASHSEED" || {{ echo $$ > {here}/pid; sleep {HANG}; }}'
    command = ["verify", "--ask", "restart,hash_seed,threads", "--output", "{run}/m", "--json", "answers.json"]
    with subprocess.Popen([*REPRO, *command, "--", "sh", "-c", hang], cwd=here, env=environment()) as process:
        number = until(lambda: whole_line(here / "pid"), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG) == 1
    answers = {one["question"]: one for one in json.loads((here / "answers.json").read_text())["answers"]}
    assert answers["restart"]["answer"] == "same"
    assert (answers["threads"]["answer"], answers["threads"]["why"]) == ("not asked", "interrupted")
    assert ends(int(number))


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 3), (OSError(28, "No space left on device"), 1)])
def test_what_two_runs_have_shown_outlives_the_end_of_all(
    error: BaseException, code: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two baseline runs differ, or one of two changed runs; then it ends in the next run."""
    run = Trials.run

    def ended_before(label: str) -> None:
        def runs(self: Trials, change: Change, *rest: Any) -> Trial:
            if change.label not in ("as it stands", "again", label):
                raise error
            return run(self, change, *rest)

        monkeypatch.setattr(Trials, "run", runs)

    ended_before("again")
    result, content = verify("--ask", "restart,threads", "--", *script("time_as_seed", *SMALL))
    answers = content["answers"]
    assert (result, answers["restart"]["answer"], answers["threads"]["answer"]) == (code, "differs", "cannot tell")
    assert "no seed is set" in answers["restart"]["why"]
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    ended_before("PYTHONHASHSEED=0")
    result, content = verify("--ask", "hash_seed,threads", "--", *script("set_order", *SMALL))
    answers = content["answers"]
    assert (result, answers["hash_seed"]["answer"], answers["threads"]["answer"]) == (code, "differs", "not asked")


TWO = f"echo $$ > pid; setsid sh -c 'echo $$ > other; sleep {HANG}' & sleep {HANG}"


"""A command whose second process has a session of its own, as the workers of some launchers have."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.usefixtures("interruptible")
def test_whatever_ends_it_in_the_first_run_ends_the_command(number: signal.Signals, here: Path) -> None:
    with hanging(here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.send_signal(number)
        said, errors = process.communicate(timeout=HANG)
    assert ends(int((here / "pid").read_text())) and ends(int((here / "other").read_text()))
    if number == signal.SIGKILL:
        return
    assert process.returncode == 1 and "Traceback" not in errors and "error" not in errors
    assert "interrupted; what was not run is skipped" in errors and "No question was answered" in said
    (answer,) = json.loads((here / "runs" / "results.json").read_text())["answers"]
    assert (answer["answer"], answer["reason"]) == ("not asked", "interrupted")


@pytest.mark.usefixtures("interruptible")
def test_a_terminal_that_is_gone_costs_no_results(here: Path) -> None:
    terminal, theirs = os.openpty()
    with hanging(here, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=HANG) == 1
    assert (here / "runs" / "results.json").exists() and ends(int((here / "pid").read_text()))


def hanging(here: Path, **how: Any) -> subprocess.Popen[Any]:
    """`repro verify` of TWO, of which both processes run, and its guard knows them."""
    command = [*REPRO, "verify", "--to", "runs", "--ask", "restart", "--", "sh", "-c", TWO]
    process = subprocess.Popen(command, cwd=here, env=environment(), **how)
    until(lambda: all(whole_line(here / name) for name in ("pid", "other")), process)
    until(lambda: any(is_ready(child) for child in psutil.Process(process.pid).children()), process)
    return process


def is_ready(process: psutil.Process) -> bool:
    return "repro.record.guard" in process.cmdline() and process.cwd() == "/"


def ends(process: int) -> bool:
    """Waits until a process that was killed is gone: somebody else has to fetch what is left of it."""
    return until(lambda: is_gone(process))


def test_a_full_disk_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.os.fsync", full)
    assert __main__.main(["verify", "--ask", "restart", "--", *script("trainer", *SMALL)]) == 1
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "No space left on device; make it writable, or free space" in error


def test_a_run_that_differs_ends_there_where_no_other_run_can_read_what_it_leaves(here: Path) -> None:
    for number, options in enumerate((SMALL, ("--out=out", "--pause=0.02"))):
        words = ("--to", f"{number}", "--ask", "seed", "--seed-option", "--seed={}")
        code, content = verify(*words, "--", *script("trainer", *options))
        answer = content["answers"]["seed"]
        assert (code, answer["answer"]) == (0, "differs")
        assert answer["first"] == {"step": 0, "channel": "generator", "name": "python"}
    assert record.read(here / "0" / "another-seed" / "record").steps < 12
    assert record.read(here / "1" / "another-seed" / "record").steps == 12


def test_a_remedy_is_tried_and_the_lines_to_add_are_printed(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = script("listing_order", "--out={run}", "--pause=0")
    code, content = verify("--ask", "file_order", "--cure", "--", *command)
    (cure,) = content["cures"]
    assert (code, cure["question"], cure["cure"]) == (3, "file_order", ["sorted listings"])
    assert cure["tried"][0]["result"] == "same in 6 runs"
    told = capfd.readouterr().out
    assert "6 of 6 runs with it are equal, 2 of 2 runs without differ from the baseline." in told
    assert "  script: sorted(...) around os.listdir, os.scandir, glob.glob, Path.iterdir and Path.glob\n" in told
