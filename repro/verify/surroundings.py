"""Surroundings of a command: variables, mounts, folders.

A change as a process gets it, or a container, which takes nothing over from the process that starts it.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from repro.containers import command_line
from repro.files import current_folder
from repro.machine import variables as environment
from repro.record.injection import unobserved
from repro.verify.questions import Change

FAKETIME = "faketime"
REAL_STAT = (("NO_FAKE_STAT", "1"),)
"""Files keep their times: Python would compile its modules anew."""


def has_faketime() -> bool:
    """True if the program is installed that gives processes another clock."""
    return shutil.which(FAKETIME) is not None


def variables(changed: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The variables of a process."""
    own = unobserved(os.environ)
    joined = command_line.JOINED
    changes = {
        name: f"{own[name]}{joined[name]}{value}" if name in joined and own.get(name) else value
        for name, value in changed
    }
    return own | changes


def inside(change: Change) -> command_line.Addition:
    """The additions of a container."""
    cores = None if change.cores is None else sorted(os.sched_getaffinity(0))[: change.cores]
    return command_line.Addition((), dict(change.environment), cores=cores, terminal=False)


def places(words: Sequence[str]) -> list[Path]:
    """The folders in which files of the command's are looked for: the current one, and those that a container gets."""
    container = command_line.find(words)
    mounted = [Path(mount.source) for mount in command_line.mounts(container)] if container else []
    return [current_folder(), *(path for path in mounted if path.is_dir())]


def deciding() -> dict[str, str]:
    """The variables of this process that can change bits, without those that name folders of the host."""
    variables = environment.deciding(unobserved(os.environ))
    return {
        name: value for name, value in variables.items() if not name.startswith("PYTHON") or name == "PYTHONHASHSEED"
    }
