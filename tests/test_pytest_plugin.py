"""The fixture assert_reproducible in a test of one's own: what passes, what fails and why, what is an error."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import SCRIPTS, environment
from support.runs import HANG
from support.waiting import until, whole_line

TESTS = f"""
import shlex
import sys
import pytest

def script(name, *options):
    return [sys.executable, f"{SCRIPTS}/{{name}}.py", "--out={{run}}", "--pause=0.004", *options]

def test_sound(assert_reproducible, tmp_path):
    content = assert_reproducible(script("trainer"), outputs="{{run}}/*", vary=["pause=--pause={{}}:0.003,0.005"])
    assert content["steps"] == 12 and (tmp_path / "repro-records" / "1" / "again").is_dir()
    assert [answer["question"] for answer in content["answers"]] == ["restart", "observed", "hash_seed", "pause"]

def resumable(name):  # its steps take long enough to stop it between two of them
    return {{"command": script(name, "--pause=0.05"), "resume": script(name, "--pause=0.05", "--resume")}}

def test_resumed_and_seeded(assert_reproducible):
    commands = resumable("trainer")
    assert_reproducible(shlex.join(commands["command"]), resume=commands["resume"], seed_option="--seed={{}}")

def test_time_as_seed(assert_reproducible):
    assert_reproducible(script("time_as_seed"))

def test_old_batches(assert_reproducible):
    assert_reproducible(**resumable("generator_not_restored"))

def test_no_control(assert_reproducible):
    assert_reproducible("sh -c 'echo 1 > {{run}}/m'", outputs=["{{run}}/m"], seed_option="--x={{}}")

def test_fails(assert_reproducible):
    assert_reproducible("sh -c 'echo no data >&2; exit 3'")

def test_missing(assert_reproducible):
    assert_reproducible(["/no/such"])

def test_unseen(assert_reproducible):
    assert_reproducible("true")

def test_untold(assert_reproducible):
    assert_reproducible(script("trainer"), ask="restart,file_order")

def test_fails_under_a_change(assert_reproducible):
    assert_reproducible("sh -c 'echo 1 > {{run}}/m; test -z $PYTHONHASHSEED'", outputs=["{{run}}/m"])

def test_needs(assert_reproducible):
    assert_reproducible("true", ask=["resume_twice"])

def test_not_checked(assert_reproducible):
    with pytest.warns(pytest.PytestWarning, match="repro: observed: inconclusive"):
        assert_reproducible(["sh", "-c", "date +%N; exec " + shlex.join(script("trainer")).replace("{{run}}", ".")])

def test_twice(assert_reproducible):
    for _ in range(2):
        assert_reproducible(script("trainer"), ask="restart")
"""
FAILED = {
    "test_time_as_seed": "AssertionError: not reproducible: restart: differs at step 0, generator, python: a seed is taken "
    "from the time, the process number or the system's entropy: 3 runs with",
    "test_old_batches": ", batch, 0: the generator `python` at step 1 of the resumed run is that of step 1 of the",
    "test_no_control": "AssertionError: not reproducible: seed: same: another seed changes nothing",
    "test_fails": "repro.errors.ReproError: verify: the command fails as it stands: it ended with code 3: no data",
    "test_missing": "repro.errors.UsageError: the command '/no/such' cannot be started: No such file or directory",
    "test_unseen": "repro.errors.ReproError: verify: nothing in the command was observed",
    "test_untold": "repro.errors.ReproError: reproducibility is inconclusive: file_order: inconclusive: no",
    "test_fails_under_a_change": "; hash_seed: inconclusive: PYTHONHASHSEED=0: it ended with code 1",
    "test_needs": "repro.errors.UsageError: assert_reproducible: 'resume_twice' is asked, and needs resume=",
}


def own_pytest(folder: Path, *options: str) -> subprocess.Popen[str]:
    """pytest in a folder, with the plugin as an installed package brings it, and nothing else of this repository."""
    command = [sys.executable, "-m", "pytest", "-p", "repro.pytest_plugin", "-p", "no:cacheprovider", "-W", "error"]
    plain = {name: value for name, value in environment().items() if not name.startswith(("PYTEST_", "PYTHONHASH"))}
    (folder / "pytest.ini").write_text("[pytest]\n")
    command += [f"--basetemp={folder / 'temporary'}", *options]
    return subprocess.Popen(command, cwd=folder, env=plain, stdout=-1, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("beside", [(), pytest.param(("--numprocesses=2",), marks=pytest.mark.slow)])
def test_what_passes_and_what_fails(beside: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS)
    options = ("-rA", "--tb=short", "--show-capture=no") if not beside else ("-rA", "--tb=no")
    with own_pytest(tmp_path, *options, *beside) as process:
        told = process.communicate(timeout=HANG)[0]
    names = re.findall(r"def (test_\w+)", TESTS)
    outcomes = dict(re.findall(r"^(?:PASSED|FAILED|ERROR) test_mine\.py::(\w+)()", told, re.M))
    assert [*sorted(outcomes)] == sorted(names), told
    failed = {*re.findall(r"^FAILED test_mine\.py::(\w+)", told, re.M)}
    assert failed == {*FAILED}, told
    for name, said in FAILED.items() if not beside else ():
        section = told.split(f"_ {name} _")[1]
        (line,) = [line for line in section.split("\n____")[0].splitlines() if said in line]
        assert line.startswith("E   ")
    assert beside or ("  restart     same ✓ " in told and "  kill        differs ✗ " in told)


def test_it_imports_nothing_that_takes_time() -> None:
    code = "import pytest, sys; a = {*sys.modules}; import repro.pytest_plugin; print(*sorted({*sys.modules} - a))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    own = [name for name in done.stdout.split() if not name.startswith("repro")]
    assert own == [], own


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_what_is_asked_about(tmp_path: Path) -> None:
    hang = f"def test(assert_reproducible): assert_reproducible(['sh', '-c', 'echo $$ > {tmp_path}/pid; sleep {HANG}'])"
    (tmp_path / "test_mine.py").write_text(hang)
    with own_pytest(tmp_path) as process:
        number = until(lambda: whole_line(tmp_path / "pid"), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)
