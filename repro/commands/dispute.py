"""The command `dispute`: two who each hold a record find the first step that differs, by messages."""

import argparse
from pathlib import Path

from repro.commands import command_options
from repro.commands.parser import Parser
from repro.errors import NOT_REPRODUCIBLE, UsageError
from repro.text import printable

EPILOG = """A begins:    repro dispute RECORD --to 1.json
B answers:   repro dispute RECORD 1.json --to 2.json
and so on, until a message names the first step that differs, and what in it. Each message
halves the number of steps in question. It holds hashes alone, never weights or data."""


def parser() -> Parser:
    made = Parser(
        "dispute",
        "find the first step in which the records of two people differ, by messages",
        ("repro dispute RECORD [MESSAGE] --to FILE [--receipt RECEIPT]",),
        run,
        epilog=EPILOG,
    )
    made.add_argument("record", type=Path, nargs="?", metavar="RECORD", help="folder of your own record")
    made.add_argument("message", type=Path, nargs="?", metavar="MESSAGE", help="what the other one wrote last")
    made.add_argument("--to", type=Path, metavar="FILE", help="file for your message")
    made.add_argument(
        "--receipt", type=Path, metavar="RECEIPT", help="the other one's receipt, which has signed his root"
    )
    command_options.add_signer(made, "with --receipt: ")
    return made


def run(options: argparse.Namespace) -> int:
    """Writes the next message; the exit code is 3 once a difference is named."""
    if options.record is None or options.to is None:
        raise UsageError("dispute: name the folder of your record, and a file for your message with --to")
    if options.to.exists():
        raise UsageError(f"dispute: {options.to} already exists; name another file with --to")
    if options.receipt is not None and options.message is None:
        raise UsageError("dispute: --receipt is the other one's, who has not said anything; name his message")
    import msgspec

    from repro.files import write_json
    from repro.receipt import dispute, receipt
    from repro.record import record as records

    record = records.read(options.record)
    if options.message is None:
        message = dispute.begin(record)
    else:
        signed = None
        if options.receipt is not None:
            signed = receipt.read(options.receipt, command_options.trusted(options)).steps["digest"]["sha256"]
        message = dispute.answer(record, dispute.read(options.message), signed)
    write_json(options.to, msgspec.to_builtins(message))
    if isinstance(message.result, str):
        print(printable(message.result))
        return NOT_REPRODUCIBLE if "differs" in message.result else 0
    print(printable(f"message in {options.to}, for {'B' if message.by == 'A' else 'A'} to answer"))
    return 0
