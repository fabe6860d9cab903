"""Code loaded into a command's processes: the observer, portable numerics, or both.

PYTHONPATH makes Python load repro/inject/site when it starts; other variables say what to do.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.containers.command_line import INSIDE, PACKAGE, Addition, Mount
from repro.record.checkpoints import CHECKPOINTS
from repro.record.lines import STEPS
from repro.record.record import KEPT
from repro.structs import Flaw, converted, shortened

SITE = Path(__file__).parents[1] / "inject" / "site"
PATH = "PYTHONPATH"
FOLDER, EVERY, KEEP, NARROW = "REPRO_OBSERVE", "REPRO_OBSERVE_EVERY", "REPRO_OBSERVE_KEEP", "REPRO_OBSERVE_NARROW"
HOLD, COPIED, MODULES = "REPRO_OBSERVE_HOLD", "REPRO_OBSERVE_CHECKPOINTS", "REPRO_OBSERVE_MODULES"
OBSERVING = (FOLDER, EVERY, KEEP, NARROW, HOLD, COPIED, MODULES, PATH)
PORTABLE, ALLOW, PRECISION = "REPRO_PORTABLE", "REPRO_PORTABLE_ALLOW", "REPRO_PORTABLE_PRECISION"
ELASTIC = "REPRO_PORTABLE_ELASTIC"
REPORTS = "portable"
"""The folder, in that of a run, of what its processes computed with portable numerics."""
PRECISIONS = ("high", "highest")
OPERATION = re.compile(r"[A-Za-z_][\w.:]*")
"""The name of an operation that is run natively."""


@dataclass(frozen=True)
class Portable:
    """Options of portable numerics."""

    allow: tuple[str, ...] = ()
    """Operations that are run natively."""
    precision: str = PRECISIONS[0]
    elastic: bool = False
    """True if gradients are exact sums over samples."""

    @property
    def words(self) -> list[str]:
        """The words to type before a command that is run so."""
        precision = [] if self.precision == PRECISIONS[0] else [f"--precision={self.precision}"]
        elastic = ["--elastic"] if self.elastic else []
        return ["repro", "portable", *(f"--allow={name}" for name in self.allow), *precision, *elastic, "--"]

    def as_fact(self) -> dict[str, str | None]:
        """The options as record.json has them."""
        fact = {"precision": self.precision, "allow": ",".join(self.allow) or None}
        return fact | ({"elastic": "yes"} if self.elastic else {})

    @classmethod
    def around(cls, variables: Mapping[str, str]) -> "Portable | None":
        """The options of a `repro portable` around this process."""
        allow = tuple(filter(None, variables.get(ALLOW, "").split(",")))
        given = allow, variables.get(PRECISION, PRECISIONS[0]), bool(variables.get(ELASTIC))
        return cls(*given) if variables.get(PORTABLE) else None

    @classmethod
    def from_fact(cls, fact: Any) -> "Portable | None":
        """The options that a record holds; None without. Flaw where they are none: a record may come from anybody."""
        if fact is None:
            return None
        variables = converted(fact, dict[str, str | None])
        allow, precision = tuple(filter(None, (variables.get("allow") or "").split(","))), variables.get("precision")
        if precision not in PRECISIONS or not all(map(OPERATION.fullmatch, allow)):
            raise Flaw(f"options of portable numerics are {shortened(fact)}")
        return cls(allow, precision, variables.get("elastic") is not None)


@dataclass(frozen=True)
class Injection:
    """Options of the injected code."""

    observed: bool = True
    every: int = 1
    keep: bool = False
    narrow: int | None = None
    """The number of the step whose operations are recorded."""
    portable: Portable | None = None
    hold: int | None = None
    """The number of steps after which processes wait before each backward pass."""
    checkpoints: tuple[str, ...] = ()
    """Patterns of files that are copied whenever they change."""
    modules: tuple[int, ...] = ()
    """The numbers of the steps of which each call of a module is recorded; `keep` goes with it."""

    @property
    def folders(self) -> list[str]:
        """The names of the folders, in that of a run, that processes write into."""
        more = [*([KEPT] if self.keep else []), *([CHECKPOINTS] if self.checkpoints else [])]
        observing = [STEPS, *more] if self.observed else []
        return [*observing, *([REPORTS] if self.portable else [])]

    def variables(self, folder: str) -> dict[str, str]:
        """The variables that ask for it; `folder` is that of the run, as the processes know it."""
        variables: dict[str, str] = {}
        if self.observed:
            variables |= {FOLDER: folder, EVERY: str(self.every)} | ({KEEP: "1"} if self.keep else {})
            variables |= {NARROW: str(self.narrow)} if self.narrow is not None else {}
            variables |= {HOLD: str(self.hold)} if self.hold is not None else {}
            variables |= {COPIED: json.dumps(self.checkpoints)} if self.checkpoints else {}
            variables |= {MODULES: ",".join(map(str, self.modules))} if self.modules else {}
        if self.portable:
            variables |= {PORTABLE: f"{folder}/{REPORTS}", PRECISION: self.portable.precision}
            variables |= {ALLOW: ",".join(self.portable.allow)} if self.portable.allow else {}
            variables |= {ELASTIC: "1"} if self.portable.elastic else {}
        return variables

    def environment(self, variables: Mapping[str, str], folder: Path) -> dict[str, str]:
        """The variables of a process of the host, with ours; what they ask for already stays."""
        environment = {**variables, **self.variables(str(folder))}
        if FOLDER in environment or PORTABLE in environment:
            environment[PATH] = joined(str(SITE), *_other_folders(variables))
        return environment

    def addition(self, folder: Path) -> Addition:
        """Additions to a container: the package, read-only, and the folders to write into."""
        if not self.folders:
            return Addition()
        mounts = [Mount(str(folder / name), f"{INSIDE}/{name}") for name in self.folders]
        variables = {PATH: f"{PACKAGE}/inject/site"} | self.variables(INSIDE)
        return Addition((Mount(str(SITE.parents[1]), PACKAGE, False), *mounts), variables)


def joined(first: str, *others: str | None) -> str:
    """Folders as in PYTHONPATH. An empty one would be the folder that Python is started in."""
    return os.pathsep.join([first, *(other for other in others if other)])


def unobserved(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without those of an observer around this process."""
    kept = {name: value for name, value in variables.items() if name not in OBSERVING}
    folders = _other_folders(variables)
    return kept | ({PATH: os.pathsep.join(folders)} if any(folders) else {})


def _other_folders(variables: Mapping[str, str]) -> list[str]:
    return [folder for folder in variables.get(PATH, "").split(os.pathsep) if folder != str(SITE)]
