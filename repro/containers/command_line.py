"""Commands that start a container.

Where the image is among their words, and what is put before it. Words in, words out: runtimes.py asks the container
runtimes, and ends what runs in them.
"""

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

DOCKER, APPTAINER = "docker", "apptainer"
LABEL = "repro.run"
"""Marks a container that we started, to find it again whatever the user calls it."""
PACKAGE, INSIDE = "/repro-package", "/repro-record"
"""The paths of our package and of a run's folder in a container."""
JOINED = {"PYTHONPATH": ":", "XLA_FLAGS": " ", "GLIBC_TUNABLES": ":"}
"""Variables to which ours is added; it takes the place of any other."""


@dataclass(frozen=True)
class Dialect:
    """The rules by which a container runtime reads its command line."""

    kind: str
    actions: tuple[tuple[str, ...], ...]
    flags: frozenset[str]
    """Options that take no value; every other takes one."""
    letters: Mapping[str, str]
    """The long names of those letters that matter, and of all flags."""
    general: frozenset[str]
    """Options before the action that take a value."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


LIKE_DOCKER = Dialect(
    DOCKER,
    (("run",), ("container", "run")),
    _names(
        "detach disable-content-trust env-host help http-proxy init interactive no-healthcheck no-hostname no-hosts "
        "oom-kill-disable passwd privileged publish-all quiet read-only read-only-tmpfs replace rm rmi rootfs "
        "sig-proxy tls-verify tty unsetenv-all use-api-socket"
    ),
    {
        "d": "detach",
        "e": "env",
        "i": "interactive",
        "P": "publish-all",
        "q": "quiet",
        "t": "tty",
        "u": "user",
        "v": "volume",
        "w": "workdir",
    },
    _names(
        "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey --cgroup-manager --conmon "
        "--connection --events-backend --hooks-dir --identity --imagestore --module --namespace --network-cmd-path "
        "--network-config-dir --out --root --runroot --runtime --runtime-flag --ssh --storage-driver --storage-opt "
        "--tmpdir --url --volumepath"
    ),
)
LIKE_APPTAINER = Dialect(
    APPTAINER,
    (("run",), ("exec",)),
    _names(
        "allow-setuid cleanenv compat contain containall disable-cache docker-login fakeroot help "
        "ignore-fakeroot-command ignore-subuid ignore-userns ipc keep-privs net no-compat no-eval no-home no-https "
        "no-init no-oci no-pid no-privs no-tmp-sandbox no-umask nohttps nv nvccli oci oom-kill-disable passphrase pid "
        "rocm sharens tmp-sandbox underlay unsquash userns uts vm-err writable writable-tmpfs"
    ),
    {
        "e": "cleanenv",
        "c": "contain",
        "C": "containall",
        "f": "fakeroot",
        "h": "help",
        "i": "ipc",
        "n": "net",
        "p": "pid",
        "u": "userns",
        "w": "writable",
        "B": "bind",
    },
    _names("-c --config"),
)
DIALECTS = {
    "docker": LIKE_DOCKER,
    "podman": LIKE_DOCKER,
    "nvidia-docker": LIKE_DOCKER,
    "apptainer": LIKE_APPTAINER,
    "singularity": LIKE_APPTAINER,
}
BEFORE = _names("env sudo doas nice ionice time timeout numactl taskset stdbuf srun mpirun mpiexec")
"""Programs that run the command that follows them."""


@dataclass(frozen=True)
class Container:
    """A command that starts one."""

    words: tuple[str, ...]
    program: int
    """The place of the runtime's name."""
    action: int
    """The place of `run` or `exec`."""
    options: tuple[tuple[str, str | None], ...]
    """Options by their long names, or by a letter where that matters, in their order."""
    place: int
    """The place where options are inserted: of an option given twice, the last counts."""
    image_at: int

    @property
    def kind(self) -> str:
        return DIALECTS[Path(self.words[self.program]).name].kind

    @property
    def image(self) -> str:
        return self.words[self.image_at]

    @property
    def inner(self) -> tuple[str, ...]:
        """The command inside, or what is handed to the image's own."""
        return self.words[self.image_at + 1 :]

    def values(self, name: str) -> list[str]:
        return [value for option, value in self.options if option == name and value is not None]

    def has(self, name: str) -> bool:
        """True if a flag is set."""
        given = [value for option, value in self.options if option == name]
        return bool(given) and given[-1] not in ("false", "0")


def find(words: Sequence[str]) -> Container | None:
    """The container that a command starts itself; None where it starts none, or it cannot be read."""
    for place, word in enumerate(words):
        dialect = DIALECTS.get(Path(word).name)
        if dialect is not None:
            return _read(tuple(words), place, dialect)
        if place == 0 and Path(word).name not in BEFORE:
            return None
    return None


def _read(words: tuple[str, ...], program: int, dialect: Dialect) -> Container | None:
    place = program + 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in dialect.general else 1
    action = next((one for one in dialect.actions if words[place : place + len(one)] == one), None)
    if action is None:
        return None
    place += len(action)
    options, end = _options(words, place, dialect)
    image_at = end + (words[end : end + 1] == ("--",))
    return Container(words, program, place - 1, options, end, image_at) if image_at < len(words) else None


def _options(words: tuple[str, ...], place: int, dialect: Dialect) -> tuple[tuple[tuple[str, str | None], ...], int]:
    """The options from a place on, and where they end."""
    options: list[tuple[str, str | None]] = []
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
        word, place = words[place], place + 1
        for name, value in _long(word[2:]) if word.startswith("--") else _letters(word[1:], dialect):
            if value is None and name not in dialect.flags:
                value, place = "".join(words[place : place + 1]), place + 1
            options.append((name, value))
    return tuple(options), place


def _long(text: str) -> list[tuple[str, str | None]]:
    name, equals, value = text.partition("=")
    return [(name, value if equals else None)]


def _letters(text: str, dialect: Dialect) -> Iterator[tuple[str, str | None]]:
    """`-it`, `-v/a:/b`, `-e=A=B`: flags in one word, and at its end an option whose value may follow at once."""
    for place, letter in enumerate(text):
        name, rest = dialect.letters.get(letter, letter), text[place + 1 :]
        if name in dialect.flags and not rest.startswith("="):
            yield name, None
        else:
            yield name, rest.removeprefix("=") if rest else None
            return


# --- what is mounted -------------------------------------------------------------------------------------------------


class Mount(NamedTuple):
    """A folder or file of the host, and where it is inside."""

    source: str
    target: str
    writable: bool = True


def mounts(container: Container) -> list[Mount]:
    """The mounts that the user asks for, except named volumes."""
    texts = [text for text in container.values("volume") if ":" in text]
    texts += [text for value in container.values("bind") for text in value.split(",")]
    result = [Mount(parts[0], (parts + parts)[1]) for parts in (text.split(":") for text in texts)]
    for value in container.values("mount"):
        pairs = dict(part.partition("=")[::2] for part in next(csv.reader([value]), []))
        source = pairs.get("source", pairs.get("src", ""))
        target = next((pairs[name] for name in ("target", "destination", "dst") if name in pairs), source)
        result.append(Mount(source, target))
    return [mount for mount in result if mount.source.startswith("/")]


def outside(container: Container, word: str) -> str:
    """A path inside as the host knows it, where it is in a folder that is mounted; else the word itself."""
    inside = os.path.normpath(os.path.join("/", *container.values("workdir")[-1:], *container.values("pwd")[-1:], word))
    for source, target, _ in sorted(mounts(container), key=lambda mount: -len(mount.target)):
        if inside == target or inside.startswith(target.rstrip("/") + "/"):
            return os.path.normpath(source + "/" + inside[len(target) :])
    return word


def inside(container: Container, path: str) -> str:
    """A path of the host as it is known inside, where it is in a folder that is mounted; else the path itself."""
    for source, target, _ in sorted(mounts(container), key=lambda mount: -len(mount.source)):
        if path == source or path.startswith(source.rstrip("/") + "/"):
            return os.path.normpath(target + "/" + path[len(source) :])
    return path


# --- what we add -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Addition:
    """Additions to the container that the user asks for."""

    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
    cores: Sequence[int] | None = None
    """The cores that it may use; Apptainer's are those of the process that starts it."""
    terminal: bool = True
    """False if nobody is there to type."""


def with_added(container: Container, additions: Sequence[Addition], own: Mapping[str, str]) -> list[str]:
    """The command's words with what is added; `own` are the variables inside without us, as far as they are known."""
    write = _for_apptainer if container.kind == APPTAINER else _for_docker
    options = [word for addition in additions for word in write(container, addition)]
    for name, value in joined(additions, own).items():
        text = f"{name}={value}"
        # Apptainer splits at commas if there is more than one `=`, and only then.
        options += ["--env", _field(text) if container.kind == APPTAINER and "=" in value else text]
    return [*container.words[: container.place], *options, *container.words[container.place :]]


def joined(additions: Sequence[Addition], own: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set. PYTHONPATH begins with ours, the first first; the others end with ours."""
    variables: dict[str, str] = {}
    for addition in additions:
        for name, value in addition.variables.items():
            variables[name] = (
                f"{variables[name]}{JOINED[name]}{value}" if name in JOINED and name in variables else value
            )
    for name in JOINED.keys() & variables.keys() & {name for name, value in own.items() if value}:
        parts = (variables[name], own[name]) if name == "PYTHONPATH" else (own[name], variables[name])
        variables[name] = JOINED[name].join(parts)
    return variables


def _for_docker(container: Container, addition: Addition) -> Iterator[str]:
    for source, target, writable in addition.mounts:
        yield "--mount"
        yield ",".join(["type=bind", _field(f"source={source}"), _field(f"target={target}")]) + (
            "" if writable else ",readonly"
        )
    if addition.label is not None:
        yield f"--label={LABEL}={addition.label}"
    if addition.cores is not None:
        yield f"--cpuset-cpus={','.join(map(str, addition.cores))}"
    if not addition.terminal and container.has("tty"):
        yield "--tty=false"


def _for_apptainer(_container: Container, addition: Addition) -> Iterator[str]:
    for source, target, writable in addition.mounts:
        if re.search("[,:\\\\]", source):  # they have a meaning in --bind
            yield "--mount"
            yield f"type=bind,{_field(f'source={source}')},{_field(f'destination={target}')}" + ",ro" * (not writable)
        else:
            yield "--bind"
            yield f"{source}:{target}" + ":ro" * (not writable)


def _field(text: str) -> str:
    """A field of a line of comma-separated values, as both container runtimes read them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([text])
    return line.getvalue()
