"""The parser of one command: argparse, with errors of one line."""

import argparse
import difflib
import shlex
from collections.abc import Callable, Collection
from typing import NoReturn

from repro.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Knows a command's options and its line in `repro --help`, and refuses what is wrong by a UsageError."""

    def __init__(
        self,
        command: str,
        summary: str,
        usages: tuple[str, ...],
        run: Callable[[argparse.Namespace], int] | None = None,
        description: str | None = None,
        epilog: str | None = None,
    ) -> None:
        super().__init__(
            prog=f"repro {command}".strip(),
            usage="\n       ".join(usages),
            description=description or f"{summary[0].upper()}{summary[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.command = command
        self.summary = summary
        self.dashed: tuple[str, ...] = ()
        """Options whose value may begin with a dash."""
        self.takes_command = False
        self.add_argument("-h", "--help", action="help", help="show this text")
        self.add_argument("--debug", action="store_true", help="show the traceback of an error")
        self.set_defaults(task=command, run=run, command=None)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.command}: {message} (see {self.prog} --help)" if self.command else message)

    def parse(self, words: list[str], command: list[str] | None = None) -> argparse.Namespace:
        """The options that the words give; `command` is what follows `--`, None without one.

        `given` holds the names of those that were typed.
        """
        if command is not None and not self.takes_command:
            self.error("it takes no command after --")
        joined = self._joined(words)
        options, unknown = self.parse_known_intermixed_args(joined)
        self._check_dashes(options, command)
        for word in sorted(unknown, key=lambda word: not word.startswith("-")):
            self.error(self._unknown(word))
        options.command = command
        named = (self.named.get(word.split("=")[0].removeprefix("--")) for word in joined if word.startswith("--"))
        options.given = frozenset(action.dest for action in named if action)
        return options

    @property
    def named(self) -> dict[str, argparse.Action]:
        """The options by their long names, without dashes."""
        actions = self._option_string_actions.items()
        return {name.removeprefix("--"): action for name, action in actions if name.startswith("--")}

    def _check_dashes(self, options: argparse.Namespace, command: list[str] | None) -> None:
        """Raises UsageError if the command stands among the options: its own options are not ours to know."""
        named = any(getattr(options, name, None) is not None for name in ("mlcube", "workspace"))
        if not self.takes_command or command is not None or named:
            return
        first = next((word for word in options.parameters if "=" not in word), None)
        if first is not None:
            self.error(f"put -- before the command, as in: {self.prog} -- {shlex.quote(first)} ...")

    def _joined(self, words: list[str]) -> list[str]:
        """The words with `--option=VALUE` for `--option VALUE` where argparse would take the value for an option."""
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in self.dashed:
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        options = [option for option in self._option_string_actions if option.startswith("--")]
        hint = nearest(word.split("=")[0], options) or f"its options are {', '.join(options)}"
        return f"unknown option {word!r}; {hint}" + ("; a command goes after --" if self.takes_command else "")


def nearest(word: str, known: Collection[str]) -> str | None:
    """The hint at the known word that may be meant; None where none is near."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else None
