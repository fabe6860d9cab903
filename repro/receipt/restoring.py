"""Files of a checkpoint, put where a command goes on from them.

Their names come from a stranger's record: nothing is written over, and nothing outside of the run's own folder and the
current one.
"""

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from repro.errors import UsageError
from repro.record.checkpoints import CHECKPOINTS, Checkpoint
from repro.text import RUN


@dataclass
class Place:
    """Where a segment is done again."""

    run: Path
    """The folder that `{run}` stands for."""
    folder: Path
    """The one that the command is started in."""
    new: list[Path] = field(default_factory=list)
    """What will lie in the folder of the command for the segment alone: files, or folders that hold them."""

    def path(self, name: str) -> Path:
        """The place of a file of a checkpoint. UsageError for one that is outside."""
        inside = PurePosixPath(name.removeprefix(f"{RUN}/"))
        base = self.run if name.startswith(f"{RUN}/") else self.folder
        outside = inside.is_absolute() or ".." in inside.parts or not inside.parts or name == RUN
        if outside or not (base / inside).parent.resolve().is_relative_to(base.resolve()):  # a link may lead elsewhere
            raise UsageError(
                f"audit: the checkpoint {name!r} lies neither in {RUN} nor in the folder of the command; ask its maker to record with {RUN}"
            )
        return base / inside

    def claim(self, names: Iterable[str]) -> None:
        """Has files of a segment cleared away at its end. UsageError where one of the user's is in the way."""
        for name in names:
            path = self.path(name)
            if path.exists() or path.is_symlink():
                raise UsageError(
                    f"audit: {path} already exists, where a file of the training is to be put; move it away, or audit from a fresh checkout"
                )
            if not name.startswith(f"{RUN}/"):
                self.new.append(_first_new(path, self.folder))

    def restore(self, record: Path, checkpoint: Checkpoint) -> None:
        """Copies the files of a checkpoint from a record; they must be claimed."""
        for name, file in checkpoint.files.items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(record / CHECKPOINTS / file.copy, path)

    def clear(self, to: Path) -> None:
        """Moves what is new in the folder of the command to another folder."""
        for path in dict.fromkeys(self.new):
            if path.exists():
                to.mkdir(parents=True, exist_ok=True)
                shutil.move(path, to / path.name)
        self.new.clear()


@contextlib.contextmanager
def cleared(place: Place, to: Path) -> Iterator[Place]:
    """A place that is cleared at the end, whatever happens."""
    try:
        yield place
    finally:
        place.clear(to)


def _first_new(path: Path, folder: Path) -> Path:
    """The path, or the outermost folder above it that is not there yet."""
    new = path
    for parent in path.parents:
        if parent == folder or parent.exists():
            break
        new = parent
    return new
