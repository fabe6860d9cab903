"""Container runtimes: facts, mounts, end of containers.

They are asked what a command would get from them. Only containers that we started are ended.
"""

import functools
import json
import os
import signal
import stat
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.containers.command_line import APPTAINER, LABEL, Addition, Container, mounts, outside, with_added
from repro.errors import UsageError

AS_ROOT = ("sudo", "doas", "env")  # commands through which queries must reach a container runtime, too
PATIENCE = 120.0  # seconds for a container runtime to answer
SIF = (32, b"SIF_MAGIC\0", 48)  # in Apptainer's files: the offset of this text, and that of the image's ID of 16 bytes
OPEN, OURS = 0o777, 0o700


@dataclass
class ContainerRuntime:
    """The container that a command starts: its facts, and the way to end it."""

    container: Container
    environment: Mapping[str, str]
    """The environment of the command."""
    label: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The label of the containers that this runtime starts."""
    _rights: dict[Path, int] = field(default_factory=dict)
    """The rights that folders had before they were opened."""

    def __post_init__(self) -> None:
        if self.container.has("detach"):
            raise UsageError(
                "the container would go on in the background when the command has ended, too early to look at what it "
                "did; leave --detach out"
            )

    def words(self, additions: Sequence[Addition]) -> list[str]:
        """The command's words, with what a run gets beside."""
        return with_added(self.container, [*additions, Addition(label=self.label)], self.variables)

    @property
    def _program(self) -> list[str]:
        """The engine as the command calls it, with its general options."""
        words, place = self.container.words, self.container.program
        before = words[:place] if Path(words[0]).name in AS_ROOT else ()
        general = words[place : self.container.action]
        return [*before, *(general[:-1] if general[-1] == "container" else general)]

    def ask(self, *words: str) -> str | None:
        """Runs a command of the runtime; returns its output, None if it fails."""
        try:
            done = subprocess.run(
                [*self._program, *words],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    # --- what it is -------------------------------------------------------------------------------------------------

    @functools.cached_property
    def image(self) -> dict[str, Any]:
        """Docker's description of the image, which is pulled if `run` would pull it; empty if unknown."""
        details = self._inspected()
        if details is None and self.container.values("pull")[-1:] != ["never"]:
            self.ask("pull", self.container.image)
            details = self._inspected()
        return details or {}

    def _inspected(self) -> dict[str, Any] | None:
        said = self.ask("image", "inspect", self.container.image)
        try:
            (details,) = json.loads(said or "")
        except ValueError:
            return None
        return details if isinstance(details, dict) else None

    @functools.cached_property
    def variables(self) -> dict[str, str]:
        """The environment inside, without what we add, as far as it can be known."""
        container = self.container
        if container.kind == APPTAINER:
            words = [*container.words[container.action + 1 : container.place], container.image]
            said = self.ask("exec", *words, "cat", "/proc/self/environ")
            return _pairs((said or "").split("\0"), {})
        variables = _pairs((self.image.get("Config") or {}).get("Env") or [], {})
        for path in container.values("env-file"):
            try:
                lines = Path(path).read_text(errors="replace").splitlines()
            except OSError:
                continue  # the runtime will say so
            variables |= _pairs(
                [line.lstrip() for line in lines if not line.lstrip().startswith("#")], self.environment
            )
        return variables | _pairs(container.values("env"), self.environment)

    @property
    def facts(self) -> dict[str, Any]:
        """The identity of the container: runtime, name of the image, ID of its content."""
        name, image = Path(self.container.words[self.container.program]).name, self.container.image
        if self.container.kind == APPTAINER:
            return {"engine": "apptainer", "name": image, "image": sif_number(Path(image))}
        digests = self.image.get("RepoDigests") or [None]
        return {"engine": name, "name": image, "image": self.image.get("Id"), "digest": digests[0]}

    def scripts(self) -> list[str]:
        """The paths of the host that words of the command inside name, where these name another one."""
        paths = {word: outside(self.container, word) for word in self.container.inner}
        return [path for word, path in paths.items() if path not in (word, os.path.abspath(word))]

    # --- how it ends ------------------------------------------------------------------------------------------------

    def _ours(self, *options: str) -> list[str]:
        return (self.ask("ps", "--quiet", "--no-trunc", f"--filter=label={LABEL}={self.label}", *options) or "").split()

    def end(self, number: signal.Signals, seconds: float) -> None:
        """Sends a signal to the first process of each container that we started, and sees to it that they end.

        It is not sent to the runtime's client alone, whose end would not be theirs. A first process that has no handler
        for SIGTERM never gets it, as the kernel has it, so that waiting would be in vain.
        """
        if self.container.kind == APPTAINER:
            return  # its processes are ours
        ours = self._ours()
        if number != signal.SIGKILL:
            heeding = [one for one in ours if self._heeds(one, number)]
            if heeding:
                self.ask("kill", f"--signal={number.name}", *heeding)
            end = time.monotonic() + seconds
            while heeding and time.monotonic() < end and set(heeding) & set(self._ours()):
                time.sleep(0.1)
            ours = self._ours()
        if ours:
            self.ask("kill", *ours)
        created = self._ours("--filter=status=created", "--all")
        if created:  # the runtime's client is about to start them
            self.ask("rm", "--force", "--volumes", *created)

    def _heeds(self, one: str, number: signal.Signals) -> bool:
        """True if the first process of a container handles or blocks a signal, or if that cannot be seen."""
        try:
            process = int((self.ask("inspect", "--format={{.State.Pid}}", one) or "").strip())
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
            masks = int(status["SigCgt"], 16) | int(status["SigBlk"], 16)  # an init waits for those that it blocks
        except (OSError, ValueError, KeyError):
            return True
        return bool(masks >> (number - 1) & 1)

    def remove(self) -> None:
        """Removes what our containers leave behind, so that the next one of the same name can be started."""
        left = self._ours("--all") if self.container.kind != APPTAINER else []
        if left:
            self.ask("rm", "--force", "--volumes", *left)

    # --- folders that a user inside can write into ------------------------------------------------------------------

    def prepare(self, folders: Sequence[Path], run: Path | None) -> None:
        """Lets any user inside write into these folders, and nobody on the host reach them but us.

        Who runs inside may be of any number: the image's own, or one that the runtime maps. It gets a folder by its
        mount, not by its path, so that what is above need not be open. Folders of the run's own that are mounted are
        made: Docker would make them as root, and Apptainer fail.
        """
        below = {Path(mount.source) for mount in mounts(self.container)}
        own = [path for path in below if run and path.is_relative_to(run) and not path.exists()]
        for folder in [*folders, *own]:
            folder.mkdir(parents=True, exist_ok=True)
        if self.container.kind == APPTAINER:
            return  # the user inside is the one outside
        self._rights = {path: path.stat().st_mode for folder in folders for path in (folder, folder.parent)}
        for folder in [*folders, *own]:
            folder.chmod(OPEN)
        for folder in folders:
            folder.parent.chmod(OURS)

    def settle(self) -> None:
        """Gives these folders, and those that they are in, the rights that they had."""
        for path, mode in self._rights.items():
            path.chmod(stat.S_IMODE(mode))
        self._rights = {}


def _pairs(texts: Iterable[str], host: Mapping[str, str]) -> dict[str, str]:
    """NAME=VALUE, and NAME alone for the host's value."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name and (equals or name in host):
            pairs[name] = value if equals else host[name]
    return pairs


def sif_number(path: Path) -> str | None:
    """The number that an image of Apptainer's was given when it was built; None if it is no such file."""
    place, magic, number = SIF
    try:
        with open(path, "rb") as file:
            head = file.read(number + 16)
    except OSError:
        return None
    return f"sif:{uuid.UUID(bytes=head[number:])}" if head[place:].startswith(magic) and len(head) == 64 else None
