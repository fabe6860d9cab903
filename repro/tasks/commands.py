"""The options before `--`, and the command of one's own after it."""

import argparse
import shlex
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from repro.errors import UsageError

RECORDS = Path("repro-records")


class Options(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, as everywhere."""

    def __init__(self, task: str, description: str) -> None:
        super().__init__(f"repro {task}", f"repro {task} [OPTIONS] -- COMMAND...", description, allow_abbrev=False)
        self.task = task

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.task}: {message}; repro {self.task} --help lists the options")

    def add_outputs(self) -> None:
        """What both `record` and `verify` take."""
        self.add_argument("--output", action="append", default=[], metavar="GLOB", help="files that the command writes")
        self.add_argument("--every", type=int, default=1, metavar="N", help="hash every N-th step (default: each)")

    def split(self, arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
        """The options, and the command. UsageError for what is wrong with either."""
        place = arguments.index("--") if "--" in arguments else len(arguments)
        own, command = arguments[:place], arguments[place + 1 :]
        for at in range(len(own) - 2, -1, -1):  # argparse takes no value that begins as an option does
            if own[at] in ("--seed-option", "--resume"):
                own[at : at + 2] = [f"{own[at]}={own[at + 1]}"]
        options = self.parse_args(own)
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


def fresh(prefix: str = "") -> Path:
    """A folder for what is recorded now."""
    return RECORDS / f"{prefix}{datetime.now().strftime('%Y-%m-%d_%H-%M-%S-%f')}"
