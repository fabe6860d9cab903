"""The options before `--`, and the command of one's own after it."""

import argparse
import shlex
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from repro.containers import mlcube
from repro.errors import UsageError

RECORDS = Path("repro-records")


class Options(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, as everywhere."""

    def __init__(self, task: str, description: str) -> None:
        usage = f"repro {task} [OPTIONS] -- COMMAND...\n       repro {task} [OPTIONS] --mlcube=DIR --task=NAME"
        super().__init__(f"repro {task}", usage, description, allow_abbrev=False)
        self.task = task

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.task}: {message}; repro {self.task} --help lists the options")

    def add_outputs(self) -> None:
        """What both `record` and `verify` take."""
        self.add_argument("--output", action="append", default=[], metavar="GLOB", help="files that the command writes")
        self.add_argument("--keep", action="store_true", help="keep the arrays as well, to say by how much they differ")
        self.add_argument("--every", type=int, default=1, metavar="N", help="hash every N-th step (default: each)")

    def add_cube(self) -> None:
        """What names a task of an MLCube, in the place of a command."""
        self.add_argument("--mlcube", type=Path, metavar="DIR", help="run a task of this MLCube, not a command")
        self.add_argument("--task", dest="cube_task", metavar="NAME", help="the task of the MLCube")
        self.add_argument("--platform", choices=mlcube.PLATFORMS, help="what runs the MLCube (default: docker)")
        self.add_argument("--workspace", type=Path, metavar="DIR", help="of the MLCube (default: its own)")
        self.add_argument("parameters", nargs="*", metavar="KEY=VALUE", help="parameters of the MLCube's task")

    def cube_words(self, options: argparse.Namespace, parameters: list[str], apart: bool) -> list[str]:
        """The command of the MLCube's task. UsageError for a task or a parameter that it does not have."""
        for parameter in parameters:
            if "=" not in parameter:
                raise UsageError(f"{self.task}: {parameter!r}: with --mlcube write KEY=VALUE, for a task's parameter")
        given = dict(parameter.split("=", 1) for parameter in parameters)
        cube = mlcube.read(options.mlcube, options.workspace)
        return mlcube.words(cube, options.cube_task, options.platform or "docker", given, apart)

    def _check_cube(self, options: argparse.Namespace) -> None:
        if options.mlcube is None:
            for name, value in (("--task", options.cube_task), ("--platform", options.platform),
                                ("--workspace", options.workspace)):  # fmt: skip
                if value is not None:
                    self.error(f"{name} goes with --mlcube")
            if options.parameters:
                self.error(f"unrecognized arguments: {' '.join(options.parameters)}")
        elif options.cube_task is None:
            self.error("--mlcube needs --task, one of the MLCube's")

    def split(self, arguments: list[str], apart: bool = False) -> tuple[argparse.Namespace, list[str]]:
        """The options, and the command, which an MLCube's task may be.

        `apart`: what such a task puts out goes to a folder of each run's own. UsageError for what is wrong.
        """
        place = arguments.index("--") if "--" in arguments else len(arguments)
        own, command = arguments[:place], arguments[place + 1 :]
        for at in range(len(own) - 2, -1, -1):  # argparse takes no value that begins as an option does
            if own[at] in ("--seed-option", "--resume"):
                own[at : at + 2] = [f"{own[at]}={own[at + 1]}"]
        options = self.parse_args(own)
        self._check_cube(options)
        if options.mlcube is not None:
            command = self.cube_words(options, [*options.parameters, *command], apart)
        if not command:
            raise UsageError(f"{self.task}: no command; put it after --, as in: repro {self.task} -- python train.py")
        if options.every < 1:
            raise UsageError(f"{self.task}: --every {options.every}: must be 1 or more")
        return options, command


def words(option: str, text: str) -> list[str]:
    """The words of a command given as one text. UsageError where a quote is open, or there is none."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"verify: {option} {text!r}: {error}") from None
    if not found:
        raise UsageError(f"verify: {option} {text!r} is empty")
    return found


def place(task: str, to: Path | None) -> Path:
    """The folder that `verify --to` names, or a fresh one. UsageError where there is something in it."""
    if to is not None and to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"{task}: {to} is there already, and not empty; name another folder with --to")
    return (to or fresh(f"{task}-")).absolute()


def fresh(prefix: str = "") -> Path:
    """A folder for what is recorded now."""
    return RECORDS / f"{prefix}{datetime.now().strftime('%Y-%m-%d_%H-%M-%S-%f')}"
