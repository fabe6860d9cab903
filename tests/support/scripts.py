"""A copy of the root with its scripts; its environment's Python is a stand-in that shows what it is given."""

import os
import shutil
import subprocess
from pathlib import Path

from support.runs import HANG, ROOT

STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" >"$0.arguments"
env --null >"$0.environment"
"""


def copy_of_root(folder: Path) -> Path:
    """Both scripts, the package, and a PyTorch environment that only shows what it is given."""
    root = folder / "a root"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "run.sh", root)
    (root / "repro").symlink_to(ROOT / "repro")
    shutil.copy(ROOT / "requirements" / "install.sh", root / "requirements")
    environment = root / ".venv" / "pytorch"
    (environment / "bin").mkdir(parents=True)
    (environment / "installed").touch()
    python = environment / "bin" / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    (root / "work space").mkdir()
    return root


def call(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    minimal = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    return subprocess.run(command, env=minimal | env, capture_output=True, text=True, timeout=HANG, check=False)


def run_sh(root: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return call([str(root / "run.sh"), *arguments], **env)


def assert_one_line(done: subprocess.CompletedProcess[str], exit_code: int, *parts: str) -> None:
    assert done.returncode == exit_code, done
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr
