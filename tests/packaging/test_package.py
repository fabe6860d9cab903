"""The distribution: its wheel, in an environment that has nothing else, gives the import and the command.

And what an index shows of it, and on which versions of Python it was tried.
"""

import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import repro
from support.packages import CONSTRAINTS, UV, reach, succeed
from support.runs import PROGRAMS, ROOT

MOST = 3_000_000  # bytes of the wheel
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def files(folder: Path) -> set[Path]:
    return {*folder.rglob("*")}


def metadata(wheel: Path) -> Message:
    """The metadata that an index shows."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies, and without an extra."""
    folder = tmp_path_factory.mktemp("environment")
    succeed(UV, "venv", "--quiet", "--clear", folder)
    succeed(UV, "pip", "install", "--quiet", f"--python={folder}/bin/python", wheel)
    return folder


def test_what_it_holds(wheel: Path) -> None:
    assert wheel.name == f"repro_bits-{repro.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = (name for name in names if name.endswith("/entry_points.txt"))
        entries = archive.read(points).decode()
    described = metadata(wheel)
    assert wheel.stat().st_size <= MOST
    assert {
        "repro/py.typed",
        "repro/inject/site/sitecustomize.py",
        "repro/report/templates/report.html",
        "repro/trainers/native/jax/layers.py",
        "mnist_jax.py",
    } <= {*names}
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"repro", f"repro_bits-{repro.__version__}.dist-info"}
    assert not [name for name in names if name.endswith("README.md")]
    assert "[pytest11]\nrepro = repro.pytest_plugin" in entries
    assert (described["Name"], described["License-Expression"]) == ("repro-bits", "Apache-2.0")
    assert described["Summary"] and described["Keywords"] and described.get_payload()


def test_the_page_of_an_index_is_the_readme_without_links_that_lead_nowhere(wheel: Path) -> None:
    description = metadata(wheel).get_payload()
    assert isinstance(description, str)
    tokens = [token for block in MarkdownIt().parse(description) for token in (block, *(block.children or []))]
    leads = [str(token.attrs.get("href") or token.attrs.get("src")) for token in tokens if token.tag in ("a", "img")]
    assert [lead for lead in leads if not lead.startswith("https://")] == []
    code = [token.content for token in tokens if token.type == "fence"]
    assert code[0].startswith("pip install repro-bits\nrepro verify ")
    assert "`repro record` runs a command once" in description and "](docs/record.md)" not in description
    assert "](docs/record.md)" in (ROOT / "README.md").read_text()  # there was one


def test_twine_takes_both_distributions(sources: Path, tmp_path: Path) -> None:
    succeed(UV, "build", "--quiet", *CONSTRAINTS, "--out-dir", tmp_path, sources)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        parts = {name.split("/")[1] for name in packed.getnames()}
    assert {"repro", "pyproject.toml", "README.md", "LICENSE"} <= parts and not {"tests", "evidence", "docs"} & parts
    built = [archive, *tmp_path.glob("*.whl")]
    reach(UV, "tool", "run", "twine", "check", "--strict", *built)


def test_building_and_installing_leave_nothing_beside_the_code(sources: Path, tmp_path: Path) -> None:
    before = files(sources)
    succeed(UV, "build", "--quiet", *CONSTRAINTS, "--out-dir", tmp_path / "dist", sources)
    assert len(files(tmp_path / "dist")) == 3  # the wheel, the source distribution, a .gitignore
    succeed(UV, "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "installed", sources)
    assert (tmp_path / "installed" / "repro").is_dir()
    assert files(sources) == before


@pytest.fixture
def ran(environment: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program of the environment in a folder of its own."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(environment / "bin" / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


def test_the_import_and_the_command_need_no_framework(ran: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    seeded = ran("python", "-c", "import repro; print(repro.__version__, repro.set_seeds(0, deterministic=False))")
    assert seeded.stdout == f"{repro.__version__} ['random', 'numpy']\n", seeded.stderr
    assert ran("repro", "--version").stdout == f"repro {repro.__version__}\n"
    helped = ran("repro", "verify", "--help")
    assert (helped.returncode, helped.stdout) == (0, ran("python", "-m", "repro", "verify", "--help").stdout)
    for arguments, code, message in (
        (("compare", "a", "b"), 2, "error: compare: a is not the folder of a run"),
        (("report", "--workspace=."), 2, "error: report: there is none of verify"),
        (
            ("jax", "--workspace=."),
            2,
            "error: jax: the reference trainers need the repository; there, call ./run.sh jax",
        ),
        (("train",), 2, "error: unknown command 'train'"),
    ):
        done = ran("repro", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
        assert done.stderr.startswith(message)


def test_a_training_of_ones_own_needs_no_extra(
    environment: Path, tmp_path: Path, ran: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """... and what does need one says which."""
    training = [str(environment / "bin" / "python"), str(PROGRAMS / "plain_training.py")]
    for name, *options in (("a",), ("b", "--seed=1")):
        recorded = ran("repro", "record", "--to", name, "--keep", "--", *training, *options)
        assert recorded.returncode == 0 and "repro: 8 steps observed" in recorded.stderr, recorded.stderr
    compared = ran("repro", "compare", "a", "b")
    assert compared.returncode == 3 and "differs: first seen at step 1" in compared.stdout, compared.stderr
    verified = ran("repro", "verify", "--to", "v", "--ask", "restart", "--", *training)
    assert verified.returncode == 0 and "1 of 1 as they should be" in verified.stdout, verified.stderr
    reported = ran("repro", "report", "v/results.json")
    assert reported.returncode == 0, reported.stderr
    assert "plain_training.py" in (tmp_path / "v" / "report" / "report.html").read_text()
    (tmp_path / "mlcube.yaml").write_text("tasks: {train: {}}")
    cube = ran("repro", "record", "--mlcube=.", "--task=train")
    assert (cube.returncode, cube.stderr.count("\n")) == (1, 1), cube.stderr
    assert cube.stderr.endswith(" install it with: pip install 'repro-bits[trainers]'\n")


def found_python(version: str) -> Path:
    """A Python of this version: one of the PATH's, of pyenv's, or of those that uv fetches; else the test is skipped."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [os.environ["PATH"], *(str(path) for path in pyenv.glob(f"{version}.*/bin"))]
    command = [str(UV), "python", "find", "--no-project", "--system", version]
    done = subprocess.run(
        command, env=os.environ | {"PATH": ":".join(folders)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no Python {version} here: {done.stderr.strip().splitlines()[-1]}")
    return Path(done.stdout.strip())


@pytest.mark.parametrize("version", PYTHONS)
def test_a_numpy_program_is_verified_on_each_python(version: str, wheel: Path, tmp_path: Path) -> None:
    python = found_python(version)
    assert f"Programming Language :: Python :: {version}" in metadata(wheel).get_all("Classifier", [])
    reach(UV, "venv", "--quiet", f"--python={python}", tmp_path / "env")
    reach(UV, "pip", "install", "--quiet", f"--python={tmp_path}/env/bin/python", wheel)
    programs = tmp_path / "env" / "bin"
    training = [str(programs / "python"), str(PROGRAMS / "numpy_training.py"), "--out={run}"]

    def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([programs / "repro", *words], capture_output=True, text=True, cwd=tmp_path, check=False)

    assert call("--version").stdout == f"repro {repro.__version__}\n"
    verified = call("verify", "--to=v", "--ask=restart,hash_seed", "--", *training)
    assert verified.returncode == 0 and "2 of 2 as they should be" in verified.stdout, verified.stderr
    differs = call("verify", "--to=d", "--ask=restart", "--", *training, "--unseeded")
    assert differs.returncode == 3 and "Not reproducible: restart" in differs.stdout, differs.stderr
    reported = call("report", "v/results.json")
    assert reported.returncode == 0 and "2 of 2 promises kept" in reported.stdout, reported.stderr


def test_uvx_needs_no_installation(wheel: Path, tmp_path: Path) -> None:
    training = ["python", str(PROGRAMS / "numpy_training.py"), "--out={run}"]
    verify = ["repro", "verify", f"--to={tmp_path / 'v'}", "--ask=restart", "--", *training]
    reach(UV, "tool", "run", "--from", wheel, *verify)
    assert (tmp_path / "v" / "results.json").exists()
