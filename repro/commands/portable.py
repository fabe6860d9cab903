"""The command `portable`: runs a command of one's own with portable numerics."""

import argparse

from repro.commands import command_options
from repro.commands.parser import Parser
from repro.errors import UsageError

SUMMARY = "run a command with portable numerics: the same bits on any machine"
EPILOG = "The exit code is that of the command."


def parser() -> Parser:
    made = Parser("portable", SUMMARY, ("repro portable [OPTIONS] -- COMMAND...",), run, epilog=EPILOG)
    made.takes_command = True
    command_options.add_portable(made, switch=False)
    made.add_argument("parameters", nargs="*", help=argparse.SUPPRESS)  # a command without --
    return made


def run(options: argparse.Namespace) -> int:
    """Runs it; the exit code is the command's own, or 128 and the number of the signal that killed it."""
    chosen = command_options.portable(options)
    if not options.command:
        raise UsageError("portable: no command; put it after --, as in: repro portable -- python train.py")
    from repro.record import portable

    assert chosen is not None
    code, computed = portable.run(options.command, chosen)
    command_options.say(f"repro portable: {computed}")
    return code
