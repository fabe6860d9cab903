"""What surrounds a command: variables, mounts, folders.

A change as a process gets it, or a container, which takes nothing over from the process that starts it.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from repro.containers import command_line
from repro.files import current_folder
from repro.machine import variables as environment
from repro.record.injection import PATH, joined, unobserved
from repro.verify.questions import Change

LISTINGS = Path(__file__).parent / "listings"
LOG = "REPRO_LISTINGS"
FAKETIME = "faketime"
REAL_STAT = (("NO_FAKE_STAT", "1"),)
"""Files keep their times: Python would compile its modules anew."""


def has_faketime() -> bool:
    """Whether the program that gives processes another clock is installed."""
    return shutil.which(FAKETIME) is not None


def variables(changed: Sequence[tuple[str, str]], listings: Path | None) -> dict[str, str]:
    """Those of a process; `listings`: the file that gets the folders whose order is reversed."""
    found = unobserved(os.environ)
    for name, value in changed:
        own = found.get(name) if name in command_line.JOINED else None
        found[name] = f"{own}{command_line.JOINED[name]}{value}" if own else value
    if listings is None:
        return found
    # behind the observer, which hands on to the next of its name
    return found | {PATH: joined(str(LISTINGS), found.get(PATH)), LOG: str(listings)}


def inside(change: Change, listings: Path | None) -> command_line.Addition:
    """What a container gets."""
    cores = None if change.cores is None else sorted(os.sched_getaffinity(0))[: change.cores]
    added = command_line.Addition((), dict(change.environment), cores=cores, terminal=False)
    if listings is None:
        return added
    listings.touch()
    listings.chmod(0o666)  # for whoever runs inside; only we can enter the folder
    reversing = command_line.reversing(LISTINGS, listings)
    return replace(added, mounts=reversing.mounts, variables={**added.variables, **reversing.variables})


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
