"""What the tests share: the real MNIST, a fresh workspace, and the entrypoint `run.sh` as a user calls it."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from xdist.scheduler import LoadScopeScheduling

from repro.errors import ReproError
from repro.run import config, data, environment, gpu

ROOT = Path(__file__).parent.parent
SECONDS = 300  # for one call of run.sh, many times what it takes on 2 cores
if "PYTEST_XDIST_WORKER" in os.environ:  # its environment is that of the process that started it: all share these
    SHARED = Path(os.environ["XDG_CACHE_HOME"])
else:
    CACHE = tempfile.TemporaryDirectory(prefix="repro-tests-")
    SHARED = Path(CACHE.name)
    os.environ["XDG_CACHE_HOME"] = CACHE.name  # the user's own stays as it is, and decides nothing


@contextlib.contextmanager
def alone(name: str) -> Iterator[Path]:
    """A place that all processes of this pytest share, for one of them at a time; the others wait."""
    with (SHARED / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield SHARED / name


def some(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Values of a parameter: `make test` runs the quick ones, `make test-all` the others, too."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


# Side by side, tests of one file stay together, as they share what takes long to make. Those that open ports, or use
# the engines, must not run beside one another. Of a few files that take long, each test runs where there is room.
TOGETHER = {"test_ranks": "ports", "test_ranks_of_trainers": "ports", "test_launch": "ports", "containers": "engines"}
SPREAD = ("test_trainers", "test_inspect", "test_verify", "test_bad_input", "test_benchmark", "test_sweep",
          "test_examples")  # fmt: skip


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Hands out tests by these groups."""

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.split("::")[0])
            group = TOGETHER.get(file.stem) or TOGETHER.get(file.parent.name) or str(file)
            return nodeid if file.stem in SPREAD else group

    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the GPU are skipped where there is none."""
    if not gpu.count():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this machine"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which tests used the GPU; a skipped one did not."""
    ran = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    used = [report.nodeid for report in ran if report.when == "call" and "gpu" in report.keywords]
    if gpu.count():
        terminalreporter.write_line(f"{len(used)} tests used the GPU ({gpu.described()[0]['model']}):")
        for name in used:
            terminalreporter.write_line(f"  {name}")


class Run(Protocol):
    """Calls `./run.sh TASK --workspace=WORKSPACE OVERRIDES`; skips the test where the task's environment is missing.

    `workspace` is the fixture's unless given, `env` is added to the environment, a value of None is taken out of it.
    """

    def __call__(
        self, task: str, *overrides: str, workspace: Path | None = None, env: dict[str, str | None] | None = None,
        timeout: float = SECONDS,
    ) -> subprocess.CompletedProcess[str]: ...  # fmt: skip


def run_sh(
    task: str, *overrides: str, workspace: Path, env: dict[str, str | None] | None = None, timeout: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """`./run.sh TASK --workspace=WORKSPACE OVERRIDES`, to its end."""
    changed = {name: value for name, value in (os.environ | (env or {})).items() if value is not None}
    command = [str(ROOT / "run.sh"), task, f"--workspace={workspace}", *overrides]
    return subprocess.run(
        command, env=changed, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def python(framework: str, code: str, *arguments: str) -> str:
    """What this code prints under a framework's Python."""
    interpreter = ROOT / ".venv" / framework / "bin" / "python"
    if not interpreter.exists():
        pytest.skip(f"no environment .venv/{framework}; make it with: requirements/install.sh {framework}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(environment.DECIDING)}
    command = [str(interpreter), "-s", "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@pytest.fixture(scope="session")
def data_dir(pytestconfig: pytest.Config) -> Path:
    """A folder with the real MNIST: the repository's, where it is there, or one that `download` fills once."""
    with alone("data"):
        return found_or_downloaded(pytestconfig.rootpath / ".pytest_cache" / "workspace")


def found_or_downloaded(cache: Path) -> Path:
    for folder in (ROOT / "workspace" / "data", cache / "data"):
        try:
            data.load(config.Data(), folder)
        except ReproError:
            continue
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    done = run_sh("download", workspace=cache)
    if (
        "no source has" in done.stderr and "wrong SHA-256" not in done.stderr
    ) or "no complete environment" in done.stderr:
        pytest.skip(f"no MNIST: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return cache / "data"


@pytest.fixture
def workspace(tmp_path: Path, data_dir: Path) -> Path:
    """A fresh folder that holds `train.yaml` and, through a symbolic link, the real MNIST."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    shutil.copy(ROOT / "workspace" / "train.yaml", folder)
    (folder / "data").symlink_to(data_dir)
    return folder


CUT = "params.batch_size_train=384"  # by each thread of JAX' and TensorFlow's, into parts of its own


def fingerprint(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("fingerprint sha256:")
    return last


def needs(task: str) -> None:
    """Skips the test where the environment of a framework is missing."""
    if not (ROOT / ".venv" / task / "installed").exists():
        pytest.skip(f"no environment .venv/{task}; make it with: requirements/install.sh {task}")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets SIGINT reach what a test starts: a shell starts its background jobs, and so all below them, to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler is the default's again after exec
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """The entrypoint, called as a user calls it."""

    def call(
        task: str, *overrides: str, workspace: Path | None = None, env: dict[str, str | None] | None = None,
        timeout: float = SECONDS,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        if task in ("pytorch", "tensorflow", "jax"):
            needs(task)
        folder = workspace or request.getfixturevalue("workspace")
        return run_sh(task, *overrides, workspace=folder, env=env, timeout=timeout)

    return call
