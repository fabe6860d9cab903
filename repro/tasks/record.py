"""The command `record`: one run of a command of one's own, as it stands."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.errors import NotRecordedError, ReproError, explained
from repro.tasks import own_command
from repro.tasks.parser import Parser
from repro.text import counted

if TYPE_CHECKING:
    from repro.record.record import Record

NOTHING_OBSERVED = "NOTHING WAS OBSERVED of its training: no step of an optimizer was seen, so no two runs can be called the same by it; call repro.watch in a loop of its own (python -I, -E and -S ignore the observer)"
EPILOG = "Its exit code is the command's own. `repro compare A B` compares two records."


def parser() -> Parser:
    made = own_command.parser("record", "run a command once, and record what it computes, step by step", run, EPILOG)
    made.add_argument("--to", type=Path, metavar="DIR", help="folder of the record (default: repro-records/TIME)")
    own_command.add_outputs(made)
    own_command.add_portable(made)
    own_command.add_cube(made)
    return made


def run(options: argparse.Namespace) -> int:
    """Records; the exit code is the command's own, or 128 and the number of the signal that killed it."""
    own_command.check(options)
    portable = own_command.portable(options)
    from repro.record.process import pass_through
    from repro.record.recording import Recording

    command = own_command.words(options)
    to = options.to or own_command.fresh()
    recording = Recording(command, to, options.output, options.every, options.keep, portable=portable)
    code = pass_through(recording.words, recording.environment)
    try:
        record = recording.finish(code)
    except (OSError, ReproError) as error:
        why = explained(error) if isinstance(error, OSError) else str(error).removeprefix("record: ")
        raise NotRecordedError(f"record: {why}; the command ended with code {code}, without a record", code) from error
    if recording.computed:
        own_command.say(f"repro portable: {recording.computed}")
    own_command.say(f"repro: {_summary(record)}")
    from repro.record.warnings import warnings

    for warning in warnings(record):
        own_command.say(f"repro: warning: {warning.text}")
    return code


def _summary(record: "Record") -> str:
    """What was observed, in one line."""
    from repro.compare import incomplete

    content = record.content
    parts = [_steps(record) if record.steps else NOTHING_OBSERVED]
    unseen = incomplete.unseen(record)
    parts += [unseen] if unseen else []
    if content.outputs:
        parts.append(f"outputs hashed: {len(content.outputs)}")
    parts += [note for note in content.notes if not any(text.endswith(note) for text in record.unseen)][:2]
    parts.append(f"{content.seconds:.1f} s{_overhead(record)}")
    if content.fingerprint:
        parts.append(content.fingerprint)
    return "; ".join([*parts, f"record in {record.path}"])


def _steps(record: "Record") -> str:
    every = record.content.every
    hashed = "every step" if every == 1 else f"one step in {every}"
    ranks = f" of {len(record.processes)} processes" if len(record.processes) > 1 else ""
    frameworks = dict.fromkeys(f"{k} {v}" for one in record.processes for k, v in one.about.frameworks.items())
    named = f" ({', '.join(frameworks)})" if frameworks else ""
    return f"{counted(record.steps, 'step')}{ranks} observed{named}, {hashed} hashed"


def _overhead(record: "Record") -> str:
    """The seconds of observing, of the process that spent most on it, where the observer noted them."""
    seconds = [process.observing for process in record.processes if process.observing is not None]
    if not seconds:
        return " with observing (`repro verify --ask observed` tells what that takes)" if record.steps else ""
    return f", {max(seconds):.1f} s of them for observing ({max(seconds) / record.content.seconds:.1%})"
