"""Copies of a run's folder as it was when the run was stopped.

Further runs go on from them, with a fault each.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STOPPED, FIRST, RESTORED = "stopped", "first", "restored"
"""Folders of a trial: the copy, the first values of the stopped process, and the digests of the resumed one's."""
VALUES, BATCHES, SEVERAL = "values.json", "batches.json", "several"
"""Files in them: see repro/plant/values.py and loaders.py; SEVERAL says that several processes train."""
TOO_LARGE = "too-large"
LARGEST = 8 << 30
"""The most bytes of a folder that is copied."""


def keep(run: Path, trial: Path) -> None:
    """Copies the folder of a run that was just stopped; where that cannot be done, an empty file says so."""
    size = sum(path.lstat().st_size for path in run.rglob("*") if not path.is_dir())
    if size > min(LARGEST, shutil.disk_usage(trial).free // 4):
        (trial / TOO_LARGE).touch()
        return
    try:
        shutil.copytree(run, trial / STOPPED, symlinks=True)
    except (OSError, shutil.Error):
        shutil.rmtree(trial / STOPPED, ignore_errors=True)


def put_back(trial: Path, run: Path) -> None:
    """Fills the folder of a run with the copy."""
    shutil.copytree(trial / STOPPED, run, symlinks=True, dirs_exist_ok=True)


def forget(trial: Path) -> None:
    """Removes what only further runs need."""
    for name in (STOPPED, FIRST, RESTORED):
        shutil.rmtree(trial / name, ignore_errors=True)


def variables(trial: Path, number: int) -> Sequence[tuple[str, str]]:
    """The variables of the process that is stopped, which saves its first values, or of the resumed one."""
    task = f"save={trial / FIRST}" if number == 0 else f"describe={trial / RESTORED}"
    return (("REPRO_CONTROLS", task),)


def planting(trial: Path, fault: str) -> Sequence[tuple[str, str]]:
    """The variables of a process in which a part is put back; none where the fault is no part."""
    return (("REPRO_CONTROLS", f"plant={trial / FIRST}"), ("REPRO_PLANT", fault)) if fault else ()


def digests(folder: Path) -> dict[str, dict[str, str]]:
    """The digests of each part by moment, as a process of the command wrote them; empty where it wrote none."""
    try:
        moments: Any = json.loads((folder / VALUES).read_bytes())
        parts: dict[str, dict[str, str]] = {}
        for moment, described in moments.items():
            for part, one in described.items():
                parts.setdefault(str(part), {})[str(moment)] = str(one["digest"])
        return parts
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}
