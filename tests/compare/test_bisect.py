"""`compare A B --bisect`: the facts that make the difference, what is run for it, and what is refused."""

import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from repro import __main__
from repro.compare.bisect import Bisection, RunResult
from repro.record import record
from repro.record.injection import PATH
from support.runs import PROGRAMS, ROOT, some

DECIDING = PROGRAMS / "deciding.py"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a repository, in which the script is the file train.py of the first commit."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in (PATH, "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    shutil.copy(DECIDING, "train.py")
    return folder


def recorded(name: str, *options: str, python: str = sys.executable, **variables: str) -> None:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        assert __main__.main(["record", "--to", f"../{name}", "--", python, "train.py", *options]) == 0
    finally:
        os.environ.clear()
        os.environ.update(before)


def bisected(capfd: pytest.CaptureFixture[str], *names: str, trust: bool = False) -> tuple[int, list[str], str]:
    """The exit code, the lines that say what makes the difference, and what was printed beside."""
    capfd.readouterr()
    words = [f"../{name}" for name in names or ("a", "b")]
    code = __main__.main(["compare", *words, "--bisect", *(["--trust"] if trust else [])])
    told = capfd.readouterr()
    return (
        code,
        [line.strip() for line in told.out.splitlines() if line.startswith(("  made by", "  shown", "  commit "))],
        told.err,
    )


def test_the_one_of_many_that_makes_the_difference(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("a", "--by=threads", "--lr=1", "--name=x")
    recorded("b", "--by=threads", "--lr=2", "--name=y", "--verbose", OMP_NUM_THREADS="4", MKL_NUM_THREADS="3")
    os.environ["OMP_NUM_THREADS"] = "4"
    code, lines, said = bisected(capfd)
    del os.environ["OMP_NUM_THREADS"]
    assert code == 3 and lines == [
        "made by variable OMP_NUM_THREADS: none in A, 4 in B",
        "shown   with this alone as in B, A's command gives B's bits until step 3, in each of 3 runs; with all else as in B: A's bits",
    ]
    before, _, after = said.partition("run 1, with nothing as in B: A's bits\n")
    assert (
        f"A will run again in {here}: {shlex.quote(sys.executable)} train.py --by=threads --lr=1 --name=x\n" in before
    )
    assert "  option --lr: --lr=1 in A, --lr=2 in B\n" in before and "about 17 runs of A's command" in before
    assert " ".join(after.split()).startswith(
        "run 2, with option --lr, option --name, option --verbose, variable MKL_NUM_THREADS, "
    )
    assert (here / "last-step").read_text() in "345"


def test_two_that_make_it_together(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("a", "--by=both", "--lr=0.1", "--name=x", OMP_NUM_THREADS="1")
    recorded("b", "--by=both", "--lr=0.2", "--name=y", OMP_NUM_THREADS="4")
    code, lines, _ = bisected(capfd)
    assert code == 3 and [line for line in lines if line.startswith("made by")] == [
        "made by option --lr: --lr=0.1 in A, --lr=0.2 in B",
        "made by variable OMP_NUM_THREADS: 1 in A, 4 in B",
    ]
    assert lines[-1].endswith("in each of 3 runs; none of them can be left out; with all else as in B: A's bits")


@pytest.mark.parametrize("names", some([("a", "b"), ("b", "a")], ("a", "b")))
def test_the_number_of_steps(names: tuple[str, str], here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("a")
    recorded("b", "--steps=4")
    _, lines, _ = bisected(capfd, *names)
    assert lines[0].startswith("made by option --steps: ") and "gives B's bits" in lines[1]


def test_a_difference_by_chance_is_no_facts(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("a", "--by=chance")
    recorded("b", "--by=chance", "--lr=2")
    code, lines, said = bisected(capfd)
    assert (code, lines) == (1, [])
    assert (
        "run again, does not give the bits that were recorded: by chance, or by what no record shows; ask repro verify"
        in said
    )


def test_a_difference_that_does_not_come_again_is_chance(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("a", "--by=rate", "--lr=1")
    recorded("b", "--by=rate", "--lr=2")
    for outcomes in ([False, True, True, False, False, False], [False, True, True, False, True, True]):
        left = list(outcomes)
        monkeypatch.setattr(Bisection, "_run", lambda self, chosen, left=left: RunResult(left.pop(0)))
        code, lines, _ = bisected(capfd)
        assert code == 3 and not left
        assert lines == ["made by chance: run again with the same facts, the command gives other bits"]


def test_what_no_fact_makes(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "setting.txt").write_text("1")
    recorded("a", "--by=file", "--lr=1")
    (here / "setting.txt").write_text("2")
    recorded("b", "--by=file", "--lr=2")
    assert bisected(capfd)[0] == 1
    (here / "setting.txt").write_text("1")
    code, lines, said = bisected(capfd)
    assert (code, lines) == (1, []) and said.endswith(
        "error: compare: --bisect: A's command with all of these as in B gives A's bits: something else makes the difference\n"
    )
    (here / "setting.txt").unlink()
    assert "does not give the bits that were recorded: it fails: FileNotFoundError: " in bisected(capfd)[2]


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("names", some([("1", "6"), ("6", "1")], ("6", "1")))
def test_the_commit_of_many(names: tuple[str, str], here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    git("init", "-q")
    (here / ".gitignore").write_text("last-step\ndata\n")
    (here / "data").mkdir()
    for number in range(1, 7):
        (here / "other.txt").write_text(str(number))
        (here / "setting.txt").write_text("0" if number < 4 else "1")
        (here / "train.py").write_text(f"{DECIDING.read_text()}\n# version {number}\n")
        git("add", "-A")
        git("commit", "-q", "-m", f"change {number}")
        if number in (1, 6):
            recorded(str(number), "--by=file")
    code, lines, _ = bisected(capfd, *names)
    assert code == 3 and lines[0].startswith("made by commit: ") and lines[1].endswith("in each of 3 runs")
    assert lines[2].endswith(" change 4, of 5 commits between the two")
    assert len(git("worktree", "list").splitlines()) == 1 and git("status", "--short") == ""


def test_a_script_that_changed_and_no_commit_has(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorded("a", "--lr=1")
    (here / "train.py").write_text((here / "train.py").read_text() + "\n")
    recorded("b", "--lr=1", "--steps=3")
    code, lines, said = bisected(capfd)
    assert (code, lines) == (2, []) and said.count("\n") == 1
    assert "train.py differs between the records, and no commit has both; commit what you change" in said


def test_what_a_stranger_recorded_is_shown_and_not_run(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    git("init", "-q")
    git("add", "train.py")
    git("commit", "-q", "-m", "first")
    recorded("a", "--by=rate", "--lr=1")
    recorded("b", "--by=rate", "--lr=2")
    content = json.loads(Path("../b", record.FILE).read_text())
    content["facts"]["source"]["commit"] = "f" * 40
    Path("../b", record.FILE).write_text(json.dumps(content))
    (here / "last-step").unlink()
    code, lines, said = bisected(capfd)
    assert (code, lines) == (2, []) and "B will run again in" in said
    assert "error: compare: --bisect has run nothing, as you have not recorded ../b on this machine" in said
    assert not (here / "last-step").exists() and not [*Path(".git").glob("worktrees")]
    code, lines, said = bisected(capfd, trust=True)
    assert code == 3 and lines[0] == "made by option --lr: --lr=1 in A, --lr=2 in B"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "b", "--trust"), "--trust goes with --narrow or --bisect; nothing is run without"),
        (("whole", "rest", "--bisect"), "B goes on where A was stopped, so it is not A's command with a change"),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from support.commands import resumed, straight, write

    write(here / "whole", straight(6))
    write(here / "rest", resumed(3, 6, optimizer={2: "other"}))
    for name in ("a", "b"):
        write(here / name, straight())
    assert __main__.main(["compare", *words]) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: compare: ") and said in error and error.count("\n") == 1


def wheel(folder: Path, name: str, version: str) -> None:
    """A wheel of a package with one empty module."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: nowhere\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    codes = {
        name: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        for name, text in files.items()
    }
    lines = [f"{name},sha256={codes[name].decode()},{len(text)}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)


@pytest.fixture
def uv(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv, which finds two versions of two packages in a folder, and nothing elsewhere."""
    folder = ROOT / ".venv" / "uv" / "bin"
    assert (folder / "uv").exists(), "requirements/install.sh installs it"
    for name in ("deciding", "other"):
        for version in ("1.0", "2.0"):
            wheel(here.parent / "wheels", name, version)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")
    monkeypatch.setenv("UV_FIND_LINKS", str(here.parent / "wheels"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(here.parent / "cache"))


def environment(name: str, version: str) -> None:
    subprocess.run(["uv", "venv", "-q", "--allow-existing", "--python", sys.executable, name], check=True)
    packages = [f"deciding=={version}", f"other=={version}"]
    subprocess.run(["uv", "pip", "install", "-q", "--no-deps", "--python", name, *packages], check=True)


@pytest.mark.usefixtures("uv")
def test_the_version_of_a_package(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for version in ("1.0", "2.0"):
        environment("env", version)
        recorded(version, "--by=package", python="env/bin/python")
    code, lines, said = bisected(capfd, "1.0", "2.0")
    assert code == 3 and lines[0] == "made by package deciding: 1.0 in A, 2.0 in B"
    assert "with this alone as in B, A's command gives B's bits until step 3" in lines[1]
    assert "package other" not in said  # no record says which version it had
    Path("../wheels/deciding-1.0-py3-none-any.whl").unlink()
    shutil.rmtree("../cache")
    code, lines, said = bisected(capfd, "1.0", "2.0")
    assert (code, lines) == (1, []) and "does not give the bits that were recorded: it fails: uv pip: " in said


@pytest.mark.slow  # the test above has one environment; here are two
@pytest.mark.usefixtures("uv")
def test_the_version_of_two_environments(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for version in ("1.0", "2.0"):
        environment(f"env-{version}", version)
        recorded(version, "--by=package", f"--lr={version}", python=f"env-{version}/bin/python")
    _, lines, said = bisected(capfd, "1.0", "2.0")
    assert lines[0] == "made by package deciding: 1.0 in A, 2.0 in B" and lines[1].endswith(
        "with all else as in B: A's bits"
    )
    assert (
        "  package other: 1.0 in A, 2.0 in B\n" in said
        and "  word: env-1.0/bin/python in A, env-2.0/bin/python in B\n" in said
    )


def test_versions_without_uv(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.compare.environments.shutil.which", lambda name: None)
    recorded("a", "--by=rate", "--lr=1")
    recorded("b", "--by=rate", "--lr=2")
    for name, version in (("a", "1"), ("b", "2")):
        path = Path("..", name, record.FILE)
        content = json.loads(path.read_text())
        content["facts"]["versions"]["numpy"] = version
        content["command"].remove(f"--lr={version}")
        path.write_text(json.dumps(content))
    _, lines, _ = bisected(capfd, trust=True)
    assert lines == ["made by nothing that a run can set; not set here: versions.numpy (uv is not installed)"]
