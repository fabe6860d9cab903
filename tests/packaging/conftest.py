"""The engines, the images made for them, a short run's workspace, the host's fingerprints, and poison.

Nothing here is a stand-in. Where an engine is missing its tests are skipped, with the reason. Apptainer is for plain
users: where the tests run as root, they become the user `hpc`, whose home they poison.
"""

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.packages import CONSTRAINTS, UV, succeed
from support.probes import COMMIT, IMAGE, POISONED, STEPS, Caller, fingerprint_of, give
from support.runs import HANG, ROOT, alone, run_sh

BASE = "debian:bookworm-slim"
PLAIN_USER = "hpc"


@pytest.hookimpl(tryfirst=True)  # the marks decide which tests run, and where
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that ask for a container engine are marked so; one process of pytest runs those of each engine."""
    for item in items:
        engines = [engine for engine in ("apptainer", "docker") if engine in getattr(item, "fixturenames", ())]
        if engines:
            item.add_marker(pytest.mark.containers)
            item.add_marker(pytest.mark.xdist_group(engines[0]))


@pytest.fixture(scope="session")
def caller() -> Caller:
    """A plain user: whoever runs the tests, or, for root, the user that a test machine has for this."""
    if os.getuid() != 0:
        entry = pwd.getpwuid(os.getuid())
        return Caller(entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))
    try:
        entry = pwd.getpwnam(PLAIN_USER)
    except KeyError:
        pytest.skip(f"root needs a plain user to become: useradd --create-home {PLAIN_USER}")
    return Caller(entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))


@pytest.fixture(scope="session")
def playground(caller: Caller) -> Iterator[Path]:
    """A folder on disk that the plain user owns and can reach."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="repro-"))
    if os.getuid() == 0:
        os.chown(folder, caller.uid, caller.gid)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def poison(playground: Path) -> Path:
    """A folder of packages, some of those that a run imports, of which each raises."""
    folder = playground / "poison"
    for package in ("numpy", "torch", "tensorflow", "keras", "jax", "hydra", "rich"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(f"raise ImportError('a poisoned {package} got in')\n")
    python = ROOT / ".venv" / "dev" / "bin" / "python"
    control = subprocess.run(
        [python, "-c", "import numpy"], env={"PYTHONPATH": str(folder)}, capture_output=True, check=False
    )
    assert b"a poisoned numpy got in" in control.stderr  # it is poison
    return folder


@pytest.fixture(scope="session")
def poisoned(poison: Path) -> dict[str, str]:
    """A caller's environment with everything in it that must not get into a run."""
    return {name: value.replace("POISON", str(poison)) for name, value in POISONED.items()}


@pytest.fixture(scope="session")
def poisoned_home(caller: Caller, poison: Path) -> Iterator[Path]:
    """The plain user's home; the test machine's user, but no person, gets a poisoned `~/.local` there."""
    if os.getuid() != 0:
        yield caller.home
        return
    local, aside = caller.home / ".local", caller.home / ".local.aside"
    if aside.exists():  # tests that were killed have left it, and their poison
        shutil.rmtree(local, ignore_errors=True)
        aside.rename(local)
    if local.exists():
        local.rename(aside)
    packages = local / "lib" / "python3.11" / "site-packages"
    shutil.copytree(poison, packages)
    (packages / "usercustomize.py").write_text("raise SystemExit('a poisoned ~/.local got in')\n")
    give(local, caller.uid, caller.gid)
    control = ["/usr/bin/python3.11", "-c", "import numpy"]
    with caller.start(control, caller.home) as process:
        assert "a poisoned ~/.local got in" in process.communicate()[0]  # it is poison
    yield caller.home
    shutil.rmtree(local)
    if aside.exists():
        aside.rename(local)


@pytest.fixture
def short(playground: Path, data_dir: Path, caller: Caller) -> Iterator[Path]:
    """A workspace of the plain user's with the real MNIST, whose own train.yaml asks for a short run."""
    workspace = Path(tempfile.mkdtemp(dir=playground, prefix="workspace-"))
    shutil.copytree(data_dir, workspace / "data")
    text, replaced = re.subn(
        r"^  max_steps: null\b",
        f"  max_steps: {STEPS}",
        (ROOT / "workspace" / "train.yaml").read_text(),
        flags=re.MULTILINE,
    )
    assert replaced == 1
    (workspace / "train.yaml").write_text(text)
    if os.getuid() == 0:
        give(workspace, caller.uid, caller.gid)
    yield workspace
    shutil.rmtree(workspace)


@pytest.fixture(scope="session")
def on_host(data_dir: Path, poisoned: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The fingerprint that `./run.sh FRAMEWORK` prints on the bare host, poisoned as well."""

    def fingerprint(framework: str) -> str:
        with alone(f"host-{framework}") as result:
            if not result.exists():
                workspace = tmp_path_factory.mktemp(framework)
                (workspace / "data").symlink_to(data_dir)
                done = run_sh(framework, f"params.max_steps={STEPS}", workspace=workspace, env=dict(poisoned))
                assert done.returncode == 0, done.stderr
                result.write_text(fingerprint_of(done.stdout))
            return result.read_text()

    return fingerprint


@pytest.fixture(scope="session")
def docker() -> str:
    """The Docker client, where its engine answers."""
    try:
        done = subprocess.run(["docker", "info"], capture_output=True, text=True, timeout=HANG, check=False)
    except FileNotFoundError:
        pytest.skip("Docker is not installed")
    if done.returncode != 0:
        pytest.skip(f"no Docker engine answers: {done.stderr.strip().splitlines()[-1]}")
    return "docker"


@pytest.fixture(scope="session")
def apptainer(caller: Caller) -> str:
    """Apptainer, where a plain user can run it."""
    if not shutil.which("singularity"):
        pytest.skip("Apptainer is not installed")
    with caller.start(["singularity", "--version"], Path("/")) as process:
        output = process.communicate()[0]
    if process.returncode != 0:
        pytest.skip(f"Apptainer does not run: {output.strip()}")
    return "singularity"


@pytest.fixture(scope="session")
def source(playground: Path, caller: Caller) -> Path:
    """A copy of all that images and cubes are made from, the plain user's own, as after `git clone`."""
    copy = playground / "repro"
    copy.mkdir()
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for pattern in [*allowed, ".dockerignore", "Dockerfile", "Makefile", "Singularity.recipe", "mlcube.yaml"]:
        for path in ROOT.glob(pattern):
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(path, target)
    cube = copy / "mlcube.yaml"
    cube.write_text(cube.read_text().replace("repro:0.1.0", IMAGE))
    if os.getuid() == 0:
        give(copy, caller.uid, caller.gid)
    return copy


@pytest.fixture(scope="session")
def image(docker: str, source: Path) -> str:
    """The Docker image with all three frameworks; a second process of pytest finds it in the build's cache."""
    command = ["make", "image", f"IMAGE={IMAGE}", "ACCELERATOR=cpu", f"COMMIT={COMMIT}"]
    with alone("image"):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return IMAGE


@pytest.fixture(scope="session")
def sif(apptainer: str, source: Path, caller: Caller, playground: Path) -> Path:
    """The Singularity image with all three frameworks, built by a plain user from the recipe.

    From Docker's copy of the base image where there is one, so that no registry need be reached.
    """
    command = ["make", "sif", "ACCELERATOR=cpu", f"COMMIT={COMMIT}"]
    archive = playground / "base.tar"
    with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
        subprocess.run(["docker", "save", BASE, "--output", archive], capture_output=True, check=True)
        archive.chmod(0o644)
        command.append(f"SIF_BASE=--build-arg BOOTSTRAP=docker-archive --build-arg FROM={archive}")
    caller.run(command, source, env={"APPTAINER_TMPDIR": str(playground)}, timeout=HANG)
    return source / "repro.sif"


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the locked versions of what builds it."""
    target = tmp_path_factory.mktemp("wheel")
    succeed(UV, "build", "--quiet", "--wheel", *CONSTRAINTS, "--out-dir", target, sources)
    (built,) = target.glob("*.whl")
    return built
