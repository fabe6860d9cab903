"""Commits of the repository that a command was run in, each checked out beside it.

A work tree has what is committed. What git does not know, as data, is linked from the folder that the command was run in.
"""

import contextlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from repro.errors import ReproError
from repro.text import printable


@dataclass
class Repository:
    """A repository, and work trees of it below a folder."""

    folder: Path
    """The one that the command was run in, somewhere in it."""
    scratch: Path
    trees: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ReproError if there is no repository that git trusts."""
        self.top = Path(self._git("rev-parse", "--show-toplevel")).resolve()
        self.below = self.folder.resolve().relative_to(self.top)

    def place(self, commit: str) -> Path:
        """The folder of the command in a work tree of a commit. ReproError where the repository has no such commit."""
        if commit not in self.trees:
            tree = self.scratch / commit[:12]
            self._git("worktree", "add", "--detach", "--quiet", str(tree), commit)
            self.trees[commit] = tree
            self._link(tree)
        return self.trees[commit] / self.below

    def moved(self, word: str, place: Path) -> str:
        """A word of the command, in a work tree: a file of the repository is that of the commit."""
        old, new = str(self.folder), str(place)
        return new + word[len(old) :] if word == old or word.startswith(f"{old}/") else word

    def between(self, old: str, new: str) -> list[str]:
        """The commits after one, up to and with another; none where the first is no ancestor of the other."""
        try:
            self._git("merge-base", "--is-ancestor", old, new)
        except ReproError:
            return []
        return self._git("rev-list", "--reverse", "--first-parent", f"{old}..{new}").split()

    def title(self, commit: str) -> str:
        """The commit's number and its title."""
        title: str = printable(self._git("log", "-1", "--format=%h %s", commit))
        return title

    def remove(self) -> None:
        """Removes the work trees."""
        for tree in self.trees.values():
            with contextlib.suppress(ReproError):
                self._git("worktree", "remove", "--force", str(tree))

    def _link(self, tree: Path) -> None:
        """Links what only the folder of the command has."""
        place = tree / self.below
        if place.is_dir():
            for path in self.folder.iterdir():
                if path.name != ".git" and not (place / path.name).exists():
                    (place / path.name).symlink_to(path)

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), "-c", "core.hooksPath=/dev/null", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            why = printable((done.stderr.strip().splitlines() or [f"git {words[0]} failed"])[-1])
            raise ReproError(f"compare: --bisect: {self.folder}: {why}")
        return done.stdout.strip()
