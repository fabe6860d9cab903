"""A command of the host inside an image.

The words that run it there, for the question `container`.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.containers.command_line import APPTAINER, DIALECTS, Addition, Mount, find, with_added
from repro.errors import UsageError


@dataclass(frozen=True)
class Place:
    """The place in a container where a command of the host runs: the same folders and names, the same user."""

    folder: Path
    """The current one."""
    run: Path
    """The run's own."""
    user: tuple[int, int]
    """The numbers of user and group."""
    variables: Mapping[str, str]
    """Variables of the host that decide bits."""
    gpus: bool = False


def runtime(image: str) -> str:
    """The program that runs an image: Apptainer a file of its own, Docker what has a name. UsageError without it."""
    names = ("apptainer", "singularity") if image.endswith(".sif") else ("docker", "podman")
    program = next((name for name in names if shutil.which(name)), None)
    if program is None:
        raise UsageError(f"verify: --image {image}: neither {names[0]} nor {names[1]} is installed")
    if image.endswith(".sif") and not Path(image).is_file():
        raise UsageError(f"verify: --image {image}: there is no such file")
    return program


def in_image(words: Sequence[str], image: str, place: Place, runtime: str) -> list[str]:
    """The command in the image, without a network. Its program is the image's: `python` by its name alone."""
    folders = [place.folder] + ([] if place.run.is_relative_to(place.folder) else [place.run])
    same = Addition(tuple(Mount(str(folder), str(folder)) for folder in folders), place.variables)
    if DIALECTS[Path(runtime).name].kind == APPTAINER:
        gpus = ["--nv"] * place.gpus
        start = [
            runtime,
            "exec",
            "--containall",
            "--net",
            "--network=none",
            *gpus,
            f"--pwd={place.folder}",
            image,
            *words,
        ]
    else:
        uid, gid = place.user
        home = ["--env=HOME=/tmp", "--env=USER=repro", "--env=LOGNAME=repro"]  # the number may have no name inside
        gpus = ["--gpus=all"] * place.gpus
        start = [
            runtime,
            "run",
            "--rm",
            "--init",
            "--network=none",
            f"--user={uid}:{gid}",
            "--shm-size=1g",
            "--security-opt=no-new-privileges",
            *gpus,
            *home,
            f"--workdir={place.folder}",
            f"--entrypoint={words[0]}",
            image,
            *words[1:],
        ]
    container = find(start)
    assert container is not None
    return with_added(container, [same], {})


def program(word: str, folder: Path) -> str:
    """The first word of a command as an image knows it: without its folder, if that is not in the one that is mounted.

    Nor is a virtual environment of any use inside, whose Python stands on the host's.
    """
    path = folder / word
    if "/" not in word or (path.is_relative_to(folder) and not (path.parent.parent / "pyvenv.cfg").exists()):
        return word
    return path.name


def moved(words: Sequence[str], image: str, place: Place, runtime: str) -> list[str]:
    """The words that run a command of the host in an image; its Python is the image's, by its name there."""
    name = program(words[0], place.folder)
    if name.startswith("python"):
        name = _python(name, image, runtime)
    return in_image([name, *words[1:]], image, place, runtime)


def _python(name: str, image: str, runtime: str) -> str:
    """The first that the image has of this name, python3 and python; the name itself where it has none, or no shell."""
    code = f"for name in {name} python3 python; do command -v $name && break; done"
    if DIALECTS[Path(runtime).name].kind == APPTAINER:
        words = [runtime, "exec", "--containall", image, "sh", "-c", code]
    else:
        words = [runtime, "run", "--rm", "--network=none", "--entrypoint=sh", image, "-c", code]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else name
