"""Fixtures: the real MNIST, a fresh workspace, and the entrypoint `run.sh`; which tests stay together."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from repro.errors import ReproError
from repro.run import config, data, gpu
from support.runs import ROOT, SECONDS, Run, alone, needs, run_sh

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
