"""[tool.repro] of pyproject.toml: a project's command, and the options of `verify` and `record` that go with it.

It is read where no command is typed. Its keys are named as the options, and options on the command line win.
"""

import argparse
import os
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.commands import command_options
from repro.commands.parser import Parser, nearest
from repro.errors import UsageError

FILE, TABLE = "pyproject.toml", "[tool.repro]"
COMMAND = "command"
NO_KEYS = ("help", "debug", "to", "mlcube", "cube_task", "platform", "workspace", "parameters")
"""Options of one call, of an MLCube and of the reference trainers."""
QUOTED = ("resume", "alone")
"""Options that hold a command, whose words may be a list."""
EXAMPLE = 'command = "python train.py --out={run}"'


def complete(options: argparse.Namespace, parser: Parser) -> None:
    """Adds what the project says, if no command is typed, and goes to its folder; `parser` is that of `verify`.

    UsageError for a key that there is not, or a value of another type, with the file, the key and what to write.
    """
    if options.command is not None or options.mlcube is not None:
        return
    project = _nearest(options.task, Path.cwd())
    if project is None:
        return
    known = project.options(parser)
    options.command = known.command
    for name, value in vars(options).items():
        if name in options.given and isinstance(value, Path):
            setattr(options, name, value.absolute())  # it counts from where it was typed
        elif name in project.names and name not in options.given:
            setattr(options, name, getattr(known, name))
    folder = project.file.parent
    command_options.say(f"repro: in {folder}, by {TABLE} of its {FILE}: {shlex.join(options.command)}")
    os.chdir(folder)


def _nearest(task: str, folder: Path) -> "_Project | None":
    """The nearest pyproject.toml with our table, in a folder or above it: there, only one of the folder's own user.

    Somebody else's could start a program of his, such as in /tmp.
    """
    owner = folder.stat().st_uid
    for place in (folder, *folder.parents):
        file = place / FILE
        if not file.is_file() or (place != folder and file.stat().st_uid != owner):
            continue
        try:
            tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{task}: {file} cannot be read ({error}); correct it, or put a command after --"
            ) from None
        if isinstance(tools, dict) and "repro" in tools:
            if not isinstance(tools["repro"], dict):
                raise UsageError(f"{task}: {file}: {TABLE} must be a table, with lines such as: {EXAMPLE}")
            return _Project(task, file, tools["repro"])
    return None


@dataclass
class _Project:
    """The table of a project, for one command of `repro`."""

    task: str
    file: Path
    table: dict[str, Any]
    names: set[str] = field(default_factory=set)
    """The options that it sets, as the parser names them."""

    def options(self, parser: Parser) -> argparse.Namespace:
        """The options and the command, as if they had been typed."""
        keys = {name: action for name, action in parser.named.items() if action.dest not in NO_KEYS}
        words: list[str] = []
        for key, value in self.table.items():
            if key in keys:
                words += self._words(key, value, keys[key])
                self.names.add(keys[key].dest)
            elif key != COMMAND:
                hint = nearest(key, [COMMAND, *keys]) or f"its keys are {', '.join([COMMAND, *keys])}"
                raise UsageError(f"{self.task}: {self.file}: {TABLE} has no key {key!r}; {hint}")
        if COMMAND not in self.table:
            raise UsageError(f"{self.task}: {self.file}: {TABLE} has no command; add one, as in: {EXAMPLE}")
        try:
            return parser.parse(words, self._command(COMMAND, self.table[COMMAND]))
        except UsageError as error:
            said = str(error).removeprefix(f"{parser.command}: ")
            raise UsageError(f"{self.task}: {self.file}: {TABLE}: {said}") from None

    def _words(self, key: str, value: object, action: argparse.Action) -> list[str]:
        """The words of the command line that an entry stands for."""
        if action.nargs == 0:
            if not isinstance(value, bool):
                raise self._refused(key, value, "true or false")
            return [f"--{key}"] if value else []
        if action.type is int:
            if not isinstance(value, int) or isinstance(value, bool):
                raise self._refused(key, value, f"a whole number, as in: {key} = 2")
            return [f"--{key}={value}"]
        if key in QUOTED:
            return [f"--{key}={shlex.join(self._command(key, value))}"]
        repeatable, joined = isinstance(action.default, list), key == "ask"
        texts: list[Any] = value if isinstance(value, list) and (repeatable or joined) else [value]
        if not all(isinstance(text, str) for text in texts):
            more = " or a list of texts" if repeatable or joined else ""
            raise self._refused(key, value, f'a text{more}, as in: {key} = "..."')
        return [f"--{key}={text}" for text in ([",".join(texts)] if joined else texts)]

    def _command(self, key: str, value: object) -> list[str]:
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:
            raise self._refused(key, value, f"a command whose quotes are closed ({error})") from None
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise self._refused(
                key, value, f'a text or a list of texts, as in: {key} = "python train.py --out={{run}}"'
            )
        return words

    def _refused(self, key: str, value: object, remedy: str) -> UsageError:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return UsageError(f"{self.task}: {self.file}: {TABLE} has {key} = {shown}; write {remedy}")
