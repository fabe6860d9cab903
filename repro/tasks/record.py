"""The task `record`: runs a command of one's own as it stands, and leaves a record of what it computed."""

import sys
from pathlib import Path

from repro.record.process import pass_through
from repro.record.record import Record
from repro.record.recording import Recording
from repro.tasks.commands import Options, fresh


def run(task: str, arguments: list[str]) -> int:
    """Records; the exit code is the command's own, or 128 and the number of the signal that killed it."""
    parser = Options(task, "Runs a command as it stands, and writes down what it computes, step by step.")
    parser.add_argument("--to", type=Path, metavar="DIR", help="folder of the record (default: repro-records/TIME)")
    parser.add_outputs()
    parser.add_cube()
    options, command = parser.split(arguments)
    recording = Recording(command, options.to or fresh(), options.output, options.every, options.keep)
    code = pass_through(recording.words, recording.environment)
    print(f"repro: {_closing(recording.finish(code))}", file=sys.stderr, flush=True)
    return code


def _overhead(record: Record) -> str:
    """What observing took, of the process that it kept longest, where the observer said so."""
    seconds = [process.observing for process in record.processes if process.observing is not None]
    if not seconds:
        return " with observing (`repro verify --ask observed` tells what that takes)" if record.steps else ""
    return f", {max(seconds):.1f} s of them for observing ({max(seconds) / record.content.seconds:.1%})"


def _closing(record: Record) -> str:
    """What was observed, in one line."""
    content = record.content
    frameworks = dict.fromkeys(f"{k} {v}" for one in record.processes for k, v in one.about.frameworks.items())
    parts = []
    if record.steps:
        every = "every step" if content.every == 1 else f"one step in {content.every}"
        ranks = f" of {len(record.processes)} processes" if len(record.processes) > 1 else ""
        named = f" ({', '.join(frameworks)})" if frameworks else ""
        parts.append(f"{record.steps} steps{ranks} observed{named}, {every} hashed")
    else:
        parts.append(
            "NOTHING WAS OBSERVED of its training: no step of an optimizer was seen, so no two runs can be called the "
            "same by it; call repro.watch in a loop of its own (python -I, -E and -S ignore the observer)"
        )
    if content.outputs:
        parts.append(f"outputs hashed: {len(content.outputs)}")
    parts += content.notes[:2]
    parts.append(f"{content.seconds:.1f} s{_overhead(record)}")
    if content.fingerprint:
        parts.append(content.fingerprint)
    return "; ".join([*parts, f"record in {record.path}"])
