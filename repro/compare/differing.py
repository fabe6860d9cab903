"""Facts that differ between two records, for `compare --bisect`: those that a run can set, and the others."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from repro.compare import environments, settable
from repro.compare.commits import Repository
from repro.compare.facts import causes
from repro.compare.rerun_command import Rerun
from repro.compare.settable import COMMIT, PACKAGE, VARIABLE, Fact
from repro.errors import ReproError, UsageError
from repro.record import provenance
from repro.record.record import Record

ASKED = "compare: --bisect"
NUMBER = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
VERSION = re.compile(r"\w[\w.+!-]*")
"""A version that neither git nor uv could take for an option, a file or an address: a record may come from anybody."""


@dataclass
class Differing:
    """The facts that differ between two records. Nothing that they name is run before find()."""

    a: Record
    b: Record
    scratch: Path
    facts: list[Fact] = field(default_factory=list)
    not_set: list[str] = field(default_factory=list)
    """The names of facts that a run cannot set."""
    repository: Repository | None = None
    installed: dict[str, dict[str, str]] = field(default_factory=dict)
    """The installed packages, by Python interpreter."""
    pins: dict[str, str] | None = None
    """The packages to run A's command with; None if they stay as they are."""

    def __post_init__(self) -> None:
        """Raises UsageError if a command cannot be run again."""
        ours, theirs = (_text(one, "source", "commit") for one in (self.a, self.b))
        known = all(NUMBER.fullmatch(commit) for commit in (ours, theirs))
        self.commits = (ours, theirs) if known and ours != theirs else None
        names = ((self.a, "A"), (self.b, "B"))
        self.reruns = [Rerun(one, name, ASKED, as_it_is=self.commits is None) for one, name in names]
        self.words = settable.words(self.a.content.command, self.b.content.command)

    def find(self) -> None:
        """Looks for the facts. UsageError where the files of a command are not there as they were."""
        self._find_commit()
        ours, theirs = self.reruns
        self.facts += [*self.words.facts, *settable.of_variables(self.a, self.b)]
        self.facts += settable.of_numerics(ours.portable, theirs.portable)
        self._find_packages()
        recorded = {VARIABLE: "environment", PACKAGE: "versions"}
        settled = {f"{recorded[fact.kind]}.{fact.name}" for fact in self.facts if fact.kind in recorded}
        without_uv = "" if environments.available() else " (uv is not installed)"
        self.not_set += [
            f"{cause.fact}{without_uv if cause.fact.startswith('versions.') else ''}"
            for cause in causes(self.a.facts, self.b.facts)
            if cause.fact not in settled and not cause.fact.startswith(("source.", "scripts.", "portable_numerics"))
        ]

    def _find_commit(self) -> None:
        if self.commits is None:
            return
        try:
            self.repository = Repository(self.reruns[0].folder, self.scratch)
            for one, commit in zip((self.a, self.b), self.commits, strict=True):
                self._check_scripts(one, commit)
            self.facts.append(Fact(COMMIT, "", *self.commits))
        except (ReproError, OSError, ValueError) as error:
            self.not_set.append(f"source.commit ({str(error).removeprefix(f'{ASKED}: ')})")
            self.close()
            for rerun in self.reruns:
                rerun.check_scripts()

    def close(self) -> None:
        """Removes the work trees."""
        if self.repository:
            self.repository.remove()
            self.repository = None

    def _check_scripts(self, one: Record, commit: str) -> None:
        """Raises ReproError if a file of the command is not, at its commit, what was recorded."""
        assert self.repository
        place = self.repository.place(commit)
        now = provenance.scripts([self.repository.moved(word, place) for word in one.content.command], place)
        for name, code in one.facts["scripts"].items():
            if now.get(self.repository.moved(name, place)) != code:
                raise ReproError(f"{ASKED}: {name}, as it was recorded, is not the one of commit {commit[:12]}")

    def _find_packages(self) -> None:
        """Packages in other versions, as recorded, or as they are installed for the Pythons of the two commands."""
        names = (self.a.facts.get("versions") or {}).keys() & (self.b.facts.get("versions") or {}).keys()
        versions = [{name: _text(one, "versions", name) for name in names - {"python"}} for one in (self.a, self.b)]
        differing = [name for name, version in versions[0].items() if version != versions[1][name]]
        pythons = [environments.python_of(one.content.command, Path(one.content.folder)) for one in (self.a, self.b)]
        if not all(pythons) or not (differing or pythons[0] != pythons[1]) or not environments.available():
            return
        self.installed = {python: environments.installed(python) for python in {*pythons} if python}
        sides = [dict(self.installed[python or ""]) for python in pythons]
        if pythons[0] == pythons[1]:
            for pins, recorded in zip(sides, versions, strict=True):
                known = [name for name in differing if name in pins and VERSION.fullmatch(recorded[name])]
                pins |= {name: environments.pin(name, recorded[name]) for name in known}
        self.pins = sides[0]
        other = [name for name in sorted(sides[0] | sides[1]) if sides[0].get(name) != sides[1].get(name)]
        self.facts += [Fact(PACKAGE, name, sides[0].get(name), sides[1].get(name)) for name in other]


def _text(record: Record, fact: str, name: str) -> str:
    """A text among a record's facts; empty where it is none: a record may come from anybody."""
    value = record.facts.get(fact)
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def check_asked(a: Record, b: Record) -> None:
    """Raises UsageError if the files of two commands differ, and no commit can have them."""
    ours, theirs = (one.facts.get("scripts") or {} for one in (a, b))
    other = next((name for name in ours if name in theirs and ours[name] != theirs[name]), None)
    if other and _text(a, "source", "commit") == _text(b, "source", "commit"):
        raise UsageError(
            f"{ASKED}: {other} differs between the records, and no commit has both; commit what you change, and record it again"
        )
