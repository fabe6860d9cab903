"""Shared utilities: the entrypoint `run.sh` as a user calls it, a framework's Python, and places for one at a time."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from repro.machine.variables import DECIDING

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "programs"
HANG = 1800
"""Seconds after which a process hangs: many times what the longest takes on a slow machine that others keep busy."""
if "PYTEST_XDIST_WORKER" in os.environ:  # its environment is that of the process that started it: all share these
    SHARED = Path(os.environ["XDG_CACHE_HOME"])
else:
    CACHE = tempfile.TemporaryDirectory(prefix="repro-tests-")
    SHARED = Path(CACHE.name)
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):  # the user's own stay as they are, and decide nothing
        os.environ[variable] = CACHE.name


@contextlib.contextmanager
def alone(name: str) -> Iterator[Path]:
    """A place that all processes of this pytest share, for one of them at a time; the others wait."""
    with (SHARED / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield SHARED / name


def some(values: Iterable[Any], *quick: Any, deep: Iterable[Any] = ()) -> list[Any]:
    """Values of a parameter: `make test` runs the quick ones, `make test-portable` the deep ones, `make test-all` all."""
    marks: dict[Any, list[pytest.MarkDecorator]] = {value: [] for value in quick} | {
        value: [pytest.mark.deep] for value in deep
    }
    return [pytest.param(value, marks=marks.get(value, [pytest.mark.slow])) for value in values]


class Run(Protocol):
    """Calls `./run.sh TASK --workspace=WORKSPACE OVERRIDES`; skips the test where the task's environment is missing.

    `workspace` is the fixture's unless given, `env` is added to the environment, a value of None is taken out of it.
    """

    def __call__(
        self,
        task: str,
        *overrides: str,
        workspace: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = HANG,
    ) -> subprocess.CompletedProcess[str]: ...


def run_sh(
    task: str, *overrides: str, workspace: Path, env: Mapping[str, str | None] | None = None, timeout: float = HANG
) -> subprocess.CompletedProcess[str]:
    """`./run.sh TASK --workspace=WORKSPACE OVERRIDES`, to its end."""
    changed = {name: value for name, value in (os.environ | (env or {})).items() if value is not None}
    command = [str(ROOT / "run.sh"), task, f"--workspace={workspace}", *overrides]
    return subprocess.run(
        command, env=changed, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def python(framework: str, code: str, *arguments: str) -> str:
    """Runs code under a framework's Python; returns what it prints."""
    return _printed(framework, "-c", code, *arguments)


def program(framework: str, name: str, *arguments: str) -> str:
    """Runs tests/programs/NAME.py under a framework's Python; returns what it prints."""
    return _printed(framework, "-P", str(PROGRAMS / f"{name}.py"), *arguments)


def _printed(framework: str, *words: str) -> str:
    interpreter = ROOT / ".venv" / framework / "bin" / "python"
    if not interpreter.exists():
        pytest.skip(f"no environment .venv/{framework}; make it with: requirements/install.sh {framework}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(DECIDING)}
    command, path = [str(interpreter), "-s", *words], {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, cwd=ROOT, env=clean | path, capture_output=True, text=True, timeout=HANG, check=True)
    return done.stdout


def planted(framework: str, plant: str) -> dict[str, str]:
    """The environment in which a training is not what it should be: tests/programs/plant.py."""
    # Words, in which a path of the root might have spaces; programs are called from there.
    return {"REPRO_PYTHON": f".venv/{framework}/bin/python tests/programs/plant.py", "PLANT": plant}


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
