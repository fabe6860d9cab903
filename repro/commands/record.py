"""The command `record`: one run of a command of one's own, as it stands."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands import command_options, project, verify
from repro.commands.parser import Parser
from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE, NotRecordedError, ReproError, UsageError, explained
from repro.text import RUN, counted

if TYPE_CHECKING:
    from repro.record.record import Record
    from repro.record.recording import Recording

NOTHING_OBSERVED = "NOTHING WAS OBSERVED: no step of an optimizer was seen, so this record cannot show that two runs are the same; call repro.watch in the training loop (python -I, -E and -S ignore the observer)"
ONLY_METRICS = "no step of an optimizer was seen, so metrics and outputs alone can be compared"
EPILOG = "\n".join(
    [
        "{run} in the command, or in a GLOB, stands for an empty folder in that of the record.",
        "The exit code is that of the command. `repro compare A B` compares two records.",
        "With --against it is 3 if the run differs, and 4 if the comparison is inconclusive.",
    ]
)
STOPPED = "stopped by --against at the first difference"


def parser() -> Parser:
    made = command_options.parser("record", "run a command once and record what it computes, step by step", run, EPILOG)
    made.add_argument("--to", type=Path, metavar="DIR", help="folder for the record (default: repro-records/TIME)")
    against = "compare the run with a record as it goes, and stop it at the first difference"
    made.add_argument("--against", type=Path, metavar="RECORD", help=against)
    command_options.add_outputs(made)
    checkpoints = "checkpoints to copy whenever they change, for a receipt (repeatable)"
    made.add_argument("--checkpoints", action="append", default=[], metavar="GLOB", help=checkpoints)
    operations = "write down each operation of a step (PyTorch), so that compare can name the first that differs"
    made.add_argument("--operations", type=int, metavar="STEP", help=operations)
    modules = "write down what each module computes in these steps, as 1 or 1,2, in float64 as well; implies --keep"
    made.add_argument("--modules", metavar="STEPS", help=modules)
    command_options.add_portable(made)
    command_options.add_cube(made)
    return made


def run(options: argparse.Namespace) -> int:
    """Records; the exit code is the command's own, or 128 and the number of the signal that killed it."""
    project.complete(options, verify.parser())
    command_options.check(options)
    portable = command_options.portable(options)
    if options.operations is not None and options.operations < 1:
        raise UsageError(f"record: --operations {options.operations}: must be the number of a step, from 1")
    modules = _steps_of(options.modules)
    from repro.record.outputs import in_run
    from repro.record.recording import Recording

    command = command_options.words(options)
    other = None
    if options.against is not None:
        from repro.compare.against import recorded

        other = recorded(options.against, options.every)
    to = options.to or command_options.fresh()
    every = other.content.every if other else options.every
    folder = (
        to.absolute() / "run"
        if any(RUN in text for text in [*command, *options.output, *options.checkpoints])
        else None
    )
    recording = Recording(
        [in_run(word, folder) for word in command],
        to,
        options.output,
        every,
        options.keep,
        folder,
        portable=portable,
        narrow=options.operations,
        all_files=not options.output,
        checkpoints=options.checkpoints,
        modules=modules,
    )
    if folder:
        folder.mkdir(exist_ok=True)  # a container has it made already
    if other:
        return _compared(recording, other)
    code = recording.pass_through()
    _finished(recording, code)
    return code


def _steps_of(text: str | None) -> tuple[int, ...]:
    """The steps that --modules names; none without it. UsageError where they are none."""
    words = text.split(",") if text is not None else []
    if not all(re.fullmatch(r"0*[1-9][0-9]{0,14}", word) for word in words):
        raise UsageError(f"record: --modules {text!r}: must be numbers of steps from 1, as 1 or 1,2")
    return tuple(sorted({int(word) for word in words}))


def _finished(recording: "Recording", code: int, *remarks: str) -> "Record":
    """The record, and a line about it. NotRecordedError where it cannot be written."""
    try:
        record = recording.finish(code, *remarks)
    except (OSError, ReproError) as error:
        why = explained(error) if isinstance(error, OSError) else str(error).removeprefix("record: ")
        raise NotRecordedError(f"record: {why}; the command ended with code {code}, without a record", code) from error
    if recording.computed:
        command_options.say(f"repro portable: {recording.computed}")
    command_options.say(f"repro: {_summary(record)}")
    from repro.record.warnings import warnings

    for warning in warnings(record):
        command_options.say(f"repro: warning: {warning.text}")
    return record


def _compared(recording: "Recording", other: "Record") -> int:
    """The run beside another record; the exit code is 3 where it differs, else the command's own, or 4."""
    from repro.compare.against import Against
    from repro.compare.live import Live
    from repro.console import log_to_console
    from repro.report import comparison

    live = Live(other, recording.folder, keep=recording.keep)
    code = recording.pass_through(live.is_over)
    record = _finished(recording, code, *([STOPPED] if live.over else []))
    against = Against(live, record)
    result = against.comparison()
    if result.found and recording.keep:
        log_to_console()
        result = against.comparison() if against.keep_recorded(result.found) else result
    for line in comparison.told(result).splitlines():
        command_options.say(line)
    if result.found:
        return NOT_REPRODUCIBLE
    return code or (INCONCLUSIVE if result.unseen else 0)


def _summary(record: "Record") -> str:
    """Summarizes what was observed, in one line."""
    from repro.compare import incomplete, metrics

    content = record.content
    nothing = ONLY_METRICS if record.metrics else NOTHING_OBSERVED
    parts = [_steps(record) if record.steps else nothing]
    unseen = incomplete.unseen(record)
    parts += [unseen] if unseen else []
    parts += metrics.said(record.metrics)
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
        return " with observing (`repro verify --ask observed` measures its cost)" if record.steps else ""
    return f", {max(seconds):.1f} s of them for observing ({max(seconds) / record.content.seconds:.1%})"
