"""The container command of an MLCube's task.

It is the `docker run`, or `singularity run`, that MLCube itself would call.
It is made here, from mlcube.yaml, because what observes has to be put among its words. The rules are those of the
runners of MLCube 0.0.9, which hand one text to a shell: so a $(...) in an option is worked out by a shell here, too.
Two things differ. A path may hold spaces. And what a task puts out goes, where it is asked for, to a folder of each
run's own.
"""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import UsageError
from repro.files import read_yaml
from repro.text import RUN

FILE = "mlcube.yaml"
PLATFORMS = ("docker", "singularity")
KINDS, UNKNOWN, SHARED = ("file", "directory"), "unknown", ("ro", "rw")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a task, which is always a file or a folder."""

    name: str
    path: str
    """A path on the host, absolute; it may begin with `{run}`."""
    kind: str
    shared: str | None = None
    """`ro` or `rw`, if the cube says so."""

    @property
    def folder(self) -> str:
        """The folder to mount."""
        return self.path if self.kind == "directory" else os.path.dirname(self.path)


@dataclass(frozen=True)
class Cube:
    """An mlcube.yaml that was read, and the place that its paths are in."""

    path: Path
    content: Mapping[str, Any]
    """The file's content with all ${...} replaced."""
    workspace: str

    def __post_init__(self) -> None:
        _mapping(self, self.content.get("tasks"), "tasks")

    def error(self, text: str) -> UsageError:
        return UsageError(f"mlcube: {self.path}: {text}")


def read(path: Path, workspace: Path | None = None) -> Cube:
    """The cube in a folder, or of a file. UsageError where there is none, or it is not one."""
    from omegaconf import OmegaConf  # here: it comes with the extra [trainers], and only a cube needs it
    from omegaconf.errors import OmegaConfBaseException

    file = (path / FILE if path.is_dir() else path).absolute()
    place = str(workspace.absolute()) if workspace else "${runtime.root}/workspace"
    try:
        result = read_yaml(file)
    except OSError as error:
        raise UsageError(f"mlcube: {file}: {error.strerror}; --mlcube names the folder of a {FILE}") from None
    except ValueError as error:
        raise UsageError(f"mlcube: {file} is not YAML: {error}") from None
    if not isinstance(result, dict):
        raise UsageError(f"mlcube: {file} is not an MLCube: it must hold a mapping with `tasks`")
    runtime = {"runtime": {"root": str(file.parent), "workspace": place}, "workspace": place}
    try:
        content: Any = OmegaConf.to_container(OmegaConf.merge(OmegaConf.create(result), runtime), resolve=True)
    except (OmegaConfBaseException, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"mlcube: {file}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None
    if not isinstance(content["workspace"], str):
        raise UsageError(f"mlcube: {file}: workspace must be a path")
    return Cube(file, content, content["workspace"])


def words(
    cube: Cube, task: str, platform: str, given: Mapping[str, str] | None = None, apart: bool = False
) -> list[str]:
    """The words of a task's command; `given` are the values of parameters that are not to be the cube's own.

    `apart`: what the task puts out goes to `{run}`, under the names that it has in the workspace. Folders are made as
    MLCube makes them. UsageError for all that is wrong with the cube, or with what is asked of it.
    """
    inputs, outputs = _parameters(cube, task, dict(given or {}), apart)
    for parameter in [*inputs, *outputs]:
        if not parameter.folder.startswith(RUN):
            os.makedirs(parameter.folder, exist_ok=True)
    called = _docker if platform == "docker" else _singularity
    return _expanded(cube, " ".join(called(cube, task, *_inside([*inputs, *outputs]))))


# --- parameters ------------------------------------------------------------------------------------------------------


def _mapping(cube: Cube, value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict | None):
        raise cube.error(f"{name} must be a mapping")
    if name == "tasks" and not value:
        raise cube.error("it has no tasks")
    return {str(key): inner for key, inner in (value or {}).items()}


def _task(cube: Cube, task: str) -> dict[str, Any]:
    tasks = _mapping(cube, cube.content.get("tasks"), "tasks")
    if task not in tasks:
        raise cube.error(f"it has no task {task!r}; --task must be one of {', '.join(tasks)}")
    return _mapping(cube, tasks[task], f"tasks.{task}")


def _parameters(cube: Cube, task: str, given: dict[str, str], apart: bool) -> tuple[list[Parameter], list[Parameter]]:
    """The inputs and the outputs."""
    both = _mapping(cube, _task(cube, task).get("parameters"), f"tasks.{task}.parameters")
    named = {io: _mapping(cube, both.get(io), f"tasks.{task}.parameters.{io}") for io in ("inputs", "outputs")}
    unknown = [name for name in given if name not in named["inputs"] | named["outputs"]]
    if unknown:
        has = ", ".join(named["inputs"] | named["outputs"]) or "none"
        raise cube.error(f"task {task!r} has no parameter {unknown[0]!r}; its parameters: {has}")
    inputs = [_parameter(cube, name, value, given.get(name)) for name, value in named["inputs"].items()]
    outputs = [_parameter(cube, name, value, given.get(name), True, apart) for name, value in named["outputs"].items()]
    return inputs, outputs


def _parameter(
    cube: Cube, name: str, said: Any, given: str | None, output: bool = False, apart: bool = False
) -> Parameter:
    """A parameter as MLCube reads it. A text is the default; without one, the name is; a / at its end makes it a folder."""
    entry = {"default": said} if isinstance(said, str) else _mapping(cube, said, f"parameter {name!r}")
    default = entry.get("default", name)
    kind, shared = entry.get("type") or UNKNOWN, entry.get("opts")
    value = default if given is None else given
    if not isinstance(value, str):
        raise cube.error(f"the default of parameter {name!r} is {value!r}; it must be a path")
    if kind == UNKNOWN and "/" in (str(default)[-1:], value[-1:]):
        kind = "directory"
    path = _host_path(cube, value)
    if kind == UNKNOWN and not output:
        kind = "directory" if os.path.isdir(path) else "file" if os.path.isfile(path) else UNKNOWN
    if kind not in KINDS:
        raise cube.error(f"parameter {name!r} is of type {kind!r}, and {path} does not exist: give it a type")
    if shared is not None and shared not in SHARED:
        raise cube.error(f"parameter {name!r} has opts {shared!r}; they must be ro or rw")
    if output and apart and given is None:
        path = _apart(cube, path, name)
    return Parameter(name, path, kind, shared)


def _host_path(cube: Cube, value: str) -> str:
    path = Path(os.path.expandvars(os.path.expanduser(value)))
    return str(path if value.startswith(RUN) else Path(cube.workspace, path))


def _apart(cube: Cube, path: str, name: str) -> str:
    """The place of an output in the run's own folder: where it is in the workspace, or else under its name."""
    below = os.path.relpath(path, cube.workspace)
    return f"{RUN}/{name if below.startswith('..') else below}".removesuffix("/.")


def _inside(parameters: Sequence[Parameter]) -> tuple[dict[str, str], list[str]]:
    """The place of each folder in the container, with its mount options, and the arguments that name these places."""
    places: dict[str, str] = {}
    shared: dict[str, str] = {}
    arguments = []
    for parameter in parameters:
        folder = parameter.folder
        place = places.setdefault(folder, f"/mlcube_io{len(places)}")
        name = "" if parameter.kind == "directory" else f"/{os.path.basename(parameter.path)}"
        arguments.append(f"--{parameter.name}={place}{name}")
        if parameter.shared:
            shared[folder] = "rw" if shared.get(folder, parameter.shared) != parameter.shared else parameter.shared
    return {
        folder: f"{place}:{shared[folder]}" if folder in shared else place for folder, place in places.items()
    }, arguments


# --- what the runners call -------------------------------------------------------------------------------------------


def _docker(cube: Cube, task: str, places: Mapping[str, str], arguments: list[str]) -> Iterator[str]:
    section = _mapping(cube, cube.content.get("docker"), "docker")
    if not section.get("image"):
        raise cube.error("it names no image for Docker: docker.image is missing")
    platform = _mapping(cube, cube.content.get("platform"), "platform")
    yield str(section.get("docker") or "docker")
    yield "run"
    yield str(section.get("gpu_args" if platform.get("accelerator_count") else "cpu_args") or "")
    yield from _more(section)
    entry = shlex.split(str(_task(cube, task).get("entrypoint") or ""))
    if entry:
        yield f"--entrypoint={entry[0]}"
    for name, value in _mapping(cube, section.get("env_args"), "docker.env_args").items():
        yield f"-e {name}={value}"
    for folder, place in places.items():
        yield f"--volume {shlex.quote(f'{folder}:{place}')}"
    yield str(section["image"])
    if len(entry) == 1:
        return  # such an entry point gets no arguments from MLCube
    yield from entry[1:] if entry else [task]
    yield from map(shlex.quote, arguments)


def _singularity(cube: Cube, task: str, places: Mapping[str, str], arguments: list[str]) -> Iterator[str]:
    section = _mapping(cube, cube.content.get("singularity"), "singularity")
    image = str(section.get("image") or "")
    if not image:
        other = _mapping(cube, cube.content.get("docker"), "docker").get("image")
        if not other:
            raise cube.error("it names no image for Singularity: neither singularity.image nor docker.image is there")
        image = "".join(letter for letter in str(other) if letter.isalnum()) + ".sif"
    path = os.path.join(str(section.get("image_dir") or f"{cube.workspace}/.image"), image)
    if not os.path.exists(path):
        raise cube.error(
            f"its image {path} does not exist; make it: mlcube configure --mlcube={shlex.quote(str(cube.path.parent))} "
            "--platform=singularity"
        )
    entry = str(_task(cube, task).get("entrypoint") or "")
    yield str(section.get("singularity") or "singularity")
    yield "exec" if entry else "run"
    yield str(section.get("run_args") or "")
    yield from _more(section)
    for folder, place in places.items():
        yield f"--bind {shlex.quote(f'{folder}:{place}')}"
    yield shlex.quote(path)
    yield entry or task
    yield from map(shlex.quote, arguments)


def _more(section: Mapping[str, Any]) -> Iterator[str]:
    """Options that a cube gives as keys of its own: `--network: none`."""
    return (f"{name}={value}" for name, value in section.items() if name.startswith("--") and value is not None)


def _expanded(cube: Cube, text: str) -> list[str]:
    """The words that a shell makes of a text, as MLCube has one do it. UsageError where it cannot."""
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {text}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise cube.error(f"a shell cannot read its options: {(done.stderr.strip().splitlines() or [text])[-1]}")
    return done.stdout.split("\0")[:-1]
