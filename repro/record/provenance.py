"""Facts that can decide a record's bits.

As far as they show from outside: versions, machine, threads, variables, scripts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from repro.machine import facts as machine
from repro.machine import variables as environment
from repro.record.lines import Process

LARGEST_SCRIPT = 16 << 20  # bytes; what is larger is data, or a program
PROGRAM = b"\x7fELF"


def facts(variables: Mapping[str, str], processes: Sequence[Process]) -> dict[str, Any]:
    """The facts of a run that is over; versions and threads are those that its own processes reported.

    The threads are those of the first one that trained: a launcher such as torchrun has others.
    """
    versions: dict[str, str] = {}
    for process in processes:
        python = {"python": process.about.python} if process.about.python else {}
        versions |= python | process.about.frameworks
    trained_first = sorted(processes, key=lambda process: not process.steps)
    threads = [process.about.threads for process in trained_first if process.about.threads]
    return {
        "versions": versions,
        **machine.hardware(),
        "threads": threads[0] if threads else None,
        "environment": environment.deciding(variables),
        "container": machine.container() or _other_container(),
    }


def beforehand(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """The facts that the run itself could change: the commit, and the hashes of the command's own files."""
    return {"source": machine.commit(folder), "scripts": scripts(command, folder)}


def _other_container() -> dict[str, str | None] | None:
    return {"engine": "docker", "image": None} if Path("/.dockerenv").exists() else None


def scripts(command: Sequence[str], folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that a word of the command names, and of the module after `-m`; programs aside."""
    named = [(word, folder / word) for word in command]
    for option, module in pairwise(command):
        if option == "-m":
            path = Path(*module.split("."))
            named += [(f"{path}.py", folder / f"{path}.py"), (f"{path}/__main__.py", folder / path / "__main__.py")]
    result = {}
    for name, path in named:
        try:
            if path.is_file() and path.stat().st_size <= LARGEST_SCRIPT:
                content = path.read_bytes()
                if not content.startswith(PROGRAM):
                    result[name] = hashlib.sha256(content).hexdigest()
        except (OSError, ValueError):  # a word that cannot be a path, or may not be read
            continue
    return result
