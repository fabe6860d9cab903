"""Python environments with chosen versions of packages, made by uv.

An environment is what is installed for a command, with some packages in another version. No dependency is resolved, and
where uv gets packages from is the user's own setting.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.errors import ReproError

Pins = Mapping[str, str]
"""The line that names the version or the origin of each package."""


def available() -> bool:
    """True if uv is installed."""
    return shutil.which("uv") is not None


def python_of(command: Sequence[str], folder: Path) -> str | None:
    """The Python that a command starts with; None where its first word is none."""
    path = shutil.which(command[0] if os.sep not in command[0] else str(folder / command[0]))
    return path if path and Path(command[0]).name.startswith("python") else None


def installed(python: str) -> dict[str, str]:
    """The packages installed for a Python interpreter, by name."""
    lines = _uv("pip", "freeze", "--python", python).splitlines()
    return {_name(line): line for line in lines if line and not line.startswith("#")}


def pin(package: str, version: str) -> str:
    """The line for a version of a package."""
    return f"{package}=={version}"


def _name(line: str) -> str:
    return line.partition("==")[0].partition(" @ ")[0].strip().lower().replace("_", "-")


@dataclass
class Environments:
    """Environments that were made below a folder."""

    scratch: Path
    made: dict[tuple[str, ...], str] = field(default_factory=dict)

    def python(self, base: str, pins: Pins) -> str:
        """A Python like `base` with these packages. ReproError where uv cannot make it."""
        key = (base, *sorted(pins.values()))
        if key not in self.made:
            folder = self.scratch / f"environment-{len(self.made) + 1}"
            _uv("venv", "--quiet", "--python", base, str(folder))
            listed = folder / "requirements.txt"
            listed.write_text("".join(f"{line}\n" for line in sorted(pins.values())))
            python = str(folder / "bin" / "python")
            _uv("pip", "install", "--quiet", "--no-deps", "--python", python, "--requirement", str(listed))
            self.made[key] = python
        return self.made[key]


def _uv(*words: str) -> str:
    variables = os.environ | {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
    done = subprocess.run(["uv", *words], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(re.sub("[^ -~]", " ", done.stderr).split())  # without the lines and signs that uv draws
        raise ReproError(f"compare: --bisect: uv {words[0]}: {said[:300]}")
    return done.stdout
