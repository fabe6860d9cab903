"""Fixtures of all tests, and their groups."""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest

from repro import __main__
from repro.errors import ReproError
from repro.machine import gpu
from repro.trainers.loop import config, data
from support.runs import HANG, ROOT, Run, alone, needs, run_sh

# The groups of tests that take longest start first, so that all processes of pytest end at about the same time.
LONGEST = (
    "apptainer",
    "docker",
    "portable/test_operations.py",
    "ports",
    "trainers/test_portable.py",
    "commands/test_verify_command.py",
    "commands/test_verify_resuming.py",
    "test_pytest_plugin.py",
    "observe/test_keras.py",
)


@pytest.hookimpl(tryfirst=True)  # xdist's own hook reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file stay together unless marked otherwise; tests of the GPU are skipped where there is none."""
    for item in items:
        if not item.get_closest_marker("xdist_group") and not item.get_closest_marker("spread"):
            item.add_marker(pytest.mark.xdist_group(file_of(item)))
        if item.get_closest_marker("gpu") and not gpu.count():
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this machine"))
    items.sort(key=place)


def file_of(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").as_posix()


def place(item: pytest.Item) -> int:
    """The place of a test's group, or of its file, in LONGEST."""
    mark = item.get_closest_marker("xdist_group")
    group = mark.args[0] if mark else file_of(item)
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Makes a report of characters that xdist can send: the name of a file may be no UTF-8."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


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
    """Lets SIGINT and SIGHUP reach what a test starts: background jobs of a shell, and what nohup starts, ignore them."""
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = {
        number: signal.signal(number, signal.default_int_handler) for number in numbers
    }  # the default's again after exec
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """The entrypoint, called as a user calls it."""

    def call(
        task: str,
        *overrides: str,
        workspace: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = HANG,
    ) -> subprocess.CompletedProcess[str]:
        if task in ("pytorch", "tensorflow", "jax"):
            needs(task)
        folder = workspace or request.getfixturevalue("workspace")
        return run_sh(task, *overrides, workspace=folder, env=env, timeout=timeout)

    return call


@pytest.fixture
def run_here(workspace: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """The same in this process: for what is refused before a framework is imported."""

    def call(
        task: str,
        *overrides: str,
        workspace: Path | None = workspace,
        env: Mapping[str, str | None] | None = None,
        timeout: float = HANG,
    ) -> subprocess.CompletedProcess[str]:
        words = [task, f"--workspace={workspace}", *overrides]
        changed = {name: value for name, value in (os.environ | (env or {})).items() if value is not None}
        with mock.patch.dict(os.environ, changed):
            code = __main__.main(words)
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    return call
