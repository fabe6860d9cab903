"""The distribution: its wheel, in an environment that has nothing else, gives the import and the command."""

import subprocess
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path

import pytest

import repro
from support.runs import PROGRAMS, ROOT

UV = ROOT / ".venv" / "uv" / "bin" / "uv"
CONSTRAINTS = (f"--build-constraints={ROOT / 'requirements' / 'build.txt'}", "--require-hashes")


def succeed(*command: str | Path) -> None:
    """Runs a command that must end well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def files(folder: Path) -> set[Path]:
    return {*folder.rglob("*")}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's files that a build can read."""
    if not UV.exists():
        pytest.skip("no environment .venv/uv; requirements/install.sh makes it with any other")
    copy = tmp_path_factory.mktemp("source")
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git repository to take the files from")
    for name in listed.stdout.splitlines():
        if (
            name.startswith(("repro/", "mnist_", "pyproject", "README", "LICENSE", ".gitignore", "tests/conftest"))
            and (ROOT / name).exists()
        ):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the locked versions of what builds it."""
    target = tmp_path_factory.mktemp("wheel")
    succeed(UV, "build", "--quiet", "--wheel", *CONSTRAINTS, "--out-dir", target, source)
    (built,) = target.glob("*.whl")
    return built


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
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        described = message_from_bytes(archive.read(metadata))
        entries = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
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


def test_building_and_installing_leave_nothing_beside_the_code(source: Path, tmp_path: Path) -> None:
    before = files(source)
    succeed(UV, "build", "--quiet", *CONSTRAINTS, "--out-dir", tmp_path / "dist", source)
    assert len(files(tmp_path / "dist")) == 3  # the wheel, the source distribution, a .gitignore
    succeed(UV, "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "installed", source)
    assert (tmp_path / "installed" / "repro").is_dir()
    assert files(source) == before


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
