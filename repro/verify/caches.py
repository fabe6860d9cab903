"""Caches that a run finds empty, or as such a run left them.

Libraries keep them where variables say. What else the command's own processes left outside of their folder, as in the
current one, may be a cache, too: it is put aside for the run, and then put back.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from repro.text import escaped, slug
from repro.verify.questions import Change

EMPTIED = Change("caches emptied", caches="emptied")
LEFT = Change("caches as that run left them", caches="left")

CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "HF_HOME": "huggingface",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "NUMBA_CACHE_DIR": "numba",
    "CUDA_CACHE_PATH": "cuda",
    "PYTHONPYCACHEPREFIX": "pycache",
}
"""Folders of caches, by the variable that names them."""
WHERE_SET = ("JAX_COMPILATION_CACHE_DIR", "HF_DATASETS_CACHE")
"""Others, which would switch a cache on where they are not set."""
DOWNLOADS = {
    "xdg/torch": "~/.cache/torch",
    "xdg/huggingface/hub": "~/.cache/huggingface/hub",
    "huggingface/hub": "~/.cache/huggingface/hub",
    "huggingface/token": "~/.cache/huggingface/token",
}
"""What is no cache, but what was downloaded; it stays, by a link."""
SYSTEM = ("/proc/", "/dev/", "/sys/")
MOST = 200
"""Files of one run that are put aside."""


def folder(trial: Path, change: Change) -> Path:
    """The folder of the caches of a run, which lies in that of the run that empties them."""
    return trial.with_name(slug(EMPTIED.label)) / "caches" if change.caches == "left" else trial / "caches"


def outside(names: Collection[str], own: Path) -> set[str]:
    """Of the files that processes wrote, those that are still there, and no run's own: below no folder `own`."""
    return {
        name
        for name in names
        if os.path.isfile(name) and not name.endswith(".pyc") and not name.startswith(SYSTEM)
        if not Path(name).is_relative_to(own)
    }


def variables(caches: Path, own: Mapping[str, str]) -> dict[str, str]:
    """The variables that name caches; downloads are linked to there. `own`: the command's own environment."""
    home = Path(own.get("HOME", "~")).expanduser()
    for name, place in DOWNLOADS.items():
        usual, link = home / place.removeprefix("~/"), caches / name
        if "HF_HOME" in own and name.startswith("huggingface/"):
            usual = Path(own["HF_HOME"], Path(name).name)
        if "XDG_CACHE_HOME" in own and name.startswith("xdg/"):
            usual = Path(own["XDG_CACHE_HOME"], name.removeprefix("xdg/"))
        link.parent.mkdir(parents=True, exist_ok=True)
        if usual.exists() and not link.is_symlink():
            link.symlink_to(usual)
    named = {name: str(caches / place) for name, place in CACHES.items()}
    return named | {name: str(caches / name.lower()) for name in WHERE_SET if name in own}


@contextlib.contextmanager
def aside(files: Collection[str], kept: Path, change: Change, folders: Collection[str] = ()) -> Iterator[None]:
    """Puts files aside while active, into `kept`, and what is at their places then into the caches of the run.

    With caches as a run left them, what that one left is there again. `folders` were there before the first run: others
    below them are gone with their last file, as a program may look whether one exists.
    """
    if change.caches == "kept":
        yield
        return
    places = {name: _short(name) for name in sorted(files)[:MOST]}
    own, left = kept / "aside", folder(kept, change) / "files"
    for each in (own, left):
        each.mkdir(parents=True, exist_ok=True)
    try:
        for name, short in places.items():
            _move(Path(name), own / short)
            _remove_empty(Path(name).parent, {*folders})
        for name, short in places.items():
            if change.caches == "left" and (left / short).is_file():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(left / short, name)
        yield
    finally:
        for name, short in places.items():
            if change.caches == "emptied":
                _move(Path(name), left / short)
            _move(own / short, Path(name))


def _short(name: str) -> str:
    """A name of its own for a file that is put aside."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]


def _move(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(source, target)


def _remove_empty(folder: Path, kept: set[str]) -> None:
    """Removes a folder, and those around it, as long as they are empty, below one of `kept`, and none of these."""
    with contextlib.suppress(OSError):
        while str(folder) not in kept and kept.intersection(map(str, folder.parents)):
            folder.rmdir()
            folder = folder.parent


def found(files: Collection[str], kept: Path) -> list[str]:
    """The files that a run with emptied caches left, by the names that people know them by."""
    caches = folder(kept, EMPTIED)
    own = [os.path.relpath(name) for name in sorted(files) if (caches / "files" / _short(name)).exists()]
    for path in sorted(caches.rglob("*")):
        inside = path.relative_to(caches)
        if path.is_file() and not path.is_symlink() and inside.parts[0] not in ("files", "pycache"):
            own.append(str(inside))
    return [escaped(name) for name in own]
