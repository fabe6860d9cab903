"""Start of the observer in somebody else's process.

What it touches, it leaves as the program would have found it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import repro
from support.observed import HERE, SCRIPTS, SITE, ended, lines, notes, observed, start, steps
from support.runs import ROOT

WATCH = "import repro; repro.watch(1, {'w': 1})\n"


def written(tmp_path: Path, name: str, text: str) -> str:
    """A script in a folder of its own."""
    path = tmp_path / "mine" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def test_the_program_finds_its_path_as_ever(tmp_path: Path) -> None:
    text = WATCH + "import sys; print(sys.path, sys.argv, sys.flags, __file__, __name__)\n"
    printed, _ = observed(HERE, tmp_path / "seen", written(tmp_path, "a.py", text), "word")
    assert str(SITE) not in printed


def test_a_sitecustomize_of_ones_own_still_runs(tmp_path: Path) -> None:
    script = written(tmp_path, "a.py", "import sys; print(sys.modules['sitecustomize'].MINE)\n" + WATCH)
    written(tmp_path, "sitecustomize.py", "print('mine'); MINE = 7\n")
    printed, result = observed(HERE, tmp_path / "seen", script, PYTHONPATH=f"{tmp_path / 'mine'}:{ROOT}")
    assert printed == "mine\n7\n" and steps(result).keys() == {1}


def test_a_package_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "mine" / "repro").mkdir(parents=True)
    (tmp_path / "mine" / "repro" / "__init__.py").write_text("MINE = 7\n")
    text = (
        "import sys, repro; print(repro.MINE)\n"
        "found = sys.modules.get('_repro.observe.recorder')\n"
        "if found: found.active.step(1, {'weights': {'w': 'a'}})\n"
    )
    printed, result = observed(HERE, tmp_path / "seen", written(tmp_path, "a.py", text))
    assert printed == "7\n" and steps(result) == {1: {"weights": {"w": "a"}}}


@pytest.mark.parametrize(
    "text",
    [
        "import os; os.chdir('/')\n",
        "import sys; sys.path[:] = [folder for folder in sys.path if folder]; sys.path.insert(0, '/nowhere')\n",
        "import os, sys; [os.close(n) for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')]\n",
        "import os; os.environ.clear()\n",
        "import sys, io; sys.stderr = None\n",
    ],
)
def test_a_program_that_changes_its_surroundings(text: str, tmp_path: Path) -> None:
    _, result = observed(HERE, tmp_path / "seen", written(tmp_path, "a.py", "import repro\n" + text + WATCH))
    assert steps(result).keys() == {1}


def test_a_program_that_becomes_another_has_two_files(tmp_path: Path) -> None:
    text = (
        WATCH + "import os, sys\nif len(sys.argv) < 2: os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\n"
    )
    process = start([HERE, written(tmp_path, "a.py", text)], tmp_path / "seen")
    ended(process)
    assert lines(tmp_path / "seen").keys() == {str(process.pid), f"{process.pid}-2"}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_have_their_own_files(method: str, tmp_path: Path) -> None:
    assert ended(start([HERE, str(SCRIPTS / "children.py"), method], tmp_path / "seen")) == "0\n"
    hashes = {steps(one)[1]["weights"]["watch.w"] for one in lines(tmp_path / "seen").values()}
    assert len(lines(tmp_path / "seen")) == len(hashes) == 2


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_ignores_the_observer_is_reported(option: str, tmp_path: Path) -> None:
    done = repro("record", "--to", "a", "--", HERE, option, "-c", "print('done')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "NOTHING WAS OBSERVED" in done.stderr and "python -I, -E and -S ignore the observer" in done.stderr


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real one: the program goes on, and says once that it is no longer observed."""
    (tmp_path / "small").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path / "small")]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        text = "import repro\nfor step in range(1, 400): repro.watch(step, {'w': step})\nprint('done')\n"
        script = written(tmp_path, "a.py", text)
        done = repro("record", "--to", "small/a", "--", sys.executable, script, cwd=tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path / "small")], check=True)
    assert (done.returncode, done.stdout) == (0, "done\n")  # those of the command
    said = done.stderr.splitlines()
    assert len(said) == 2 and "No space left on device; the program goes on, and is no longer observed" in said[0]
    assert said[1].startswith("error: ") and "No space left on device; make it writable, or free space" in said[1]


def test_what_goes_wrong_in_the_observer_is_a_note(tmp_path: Path) -> None:
    text = WATCH + "class Odd:\n    shape = dtype = property(lambda self: 1 / 0)\nrepro.watch(2, {'odd': Odd()})\n"
    _, result = observed(HERE, tmp_path / "seen", written(tmp_path, "a.py", text))
    assert any("ZeroDivisionError" in note for note in notes(result)) and steps(result).keys() == {1}
