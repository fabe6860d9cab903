"""The commands of `repro`, and the help of `repro` without one."""

import argparse
import sys

from repro import __version__
from repro.commands import (
    audit,
    benchmark,
    compare,
    dispute,
    download,
    portable,
    receipt,
    record,
    report,
    sweep,
    train,
    verify,
)
from repro.commands.parser import Parser, nearest
from repro.errors import UsageError

TITLES = ("a training of your own", "the reference trainers (./run.sh COMMAND, in the repository)")
OWN = 8
"""The number of commands for a training of one's own; they come first."""
EXIT_CODES = "Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 not reproducible; 4 inconclusive."


def parsers() -> dict[str, Parser]:
    """The parser of each command, by its name."""
    made = [record.parser(), verify.parser(), compare.parser(), report.parser(), portable.parser()]
    made += [receipt.parser(), audit.parser(), dispute.parser()]
    made += [download.parser(), *train.parsers(), sweep.parser(), benchmark.parser()]
    return {one.command: one for one in made}


def parse(words: list[str], command: list[str] | None = None) -> argparse.Namespace:
    """The options of the command that the first word names; `command` is what follows `--`, None without one.

    --help and --version end here, with SystemExit. UsageError for what is wrong.
    """
    known = parsers()
    if not words or words[0].startswith("-"):
        return _overview(known, words)
    if words[0] not in known:
        hint = nearest(words[0], known) or f"the commands are {', '.join(known)}"
        raise UsageError(f"unknown command {words[0]!r}; {hint} (see repro --help)")
    return known[words[0]].parse(words[1:], command)


def _overview(known: dict[str, Parser], words: list[str]) -> argparse.Namespace:
    """Parses `repro` without a command: its help, its version."""
    own, trainers = list(known)[:OWN], list(known)[OWN:]
    lines = [(TITLES[0], {name: known[name].summary for name in own})]
    lines += [(TITLES[1], {name: known[name].summary for name in trainers} | {"verify": verify.OF_TRAINERS})]
    text = [
        "\n".join([f"{title}:", *(f"  {name:<12}{summary}" for name, summary in group.items())])
        for title, group in lines
    ]
    overview = Parser(
        command="",
        summary="",
        usages=("repro COMMAND [OPTIONS] ...", "repro COMMAND --help"),
        description="\n\n".join(["Will you get the same training again, bit by bit?", *text]),
        epilog=EXIT_CODES,
    )
    version = f"repro {__version__}"
    overview.add_argument("--version", action="version", version=version, help="show the version")
    if not words:
        overview.print_help(sys.stderr)
        sys.exit(2)
    return overview.parse(words)
