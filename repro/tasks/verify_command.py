"""The task `verify` for a command of one's own: asks "will I get this again?", and prints the answers."""

import json
import logging
import os
import signal
from pathlib import Path

from repro.console import log_to_console, wide_console
from repro.containers.image import engine
from repro.errors import UsageError
from repro.files import write_atomically
from repro.report import answers
from repro.tasks.commands import Options, place, words
from repro.verify import results
from repro.verify.command import OwnCommand, anywhere
from repro.verify.command_runs import Command
from repro.verify.questions import COMMAND_NAMES
from repro.verify.verification import Verification

log = logging.getLogger(__name__)


def run(task: str, arguments: list[str]) -> int:
    """Asks and prints; the exit code is 3 where a training is not reproducible, 1 where a run failed."""
    parser = Options(task, "Runs a command several times, with one thing changed each time, and compares.")
    parser.add_argument("--ask", default=",".join(COMMAND_NAMES), metavar="NAMES", help="questions (default: all)")
    parser.add_argument("--resume", metavar="COMMAND", help="command that goes on from a checkpoint, as one text")
    parser.add_argument("--seed-option", metavar="'--seed={}'", help="option of the command that sets its seed")
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="folder of the runs (default: repro-records/verify-TIME)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the answers there, for programs")
    parser.add_argument("--image", metavar="IMAGE", help="for the question `container`: a Docker image, or a FILE.sif")
    parser.add_outputs()
    parser.add_cube()
    options, command = parser.split(arguments, apart=True)
    names = options.ask.split(",")
    unknown = [name for name in names if name not in COMMAND_NAMES]
    if unknown:
        raise UsageError(f"verify: --ask {unknown[0]}: must be some of {','.join(COMMAND_NAMES)}")
    if options.seed_option is not None and "{}" not in options.seed_option:
        raise UsageError(f"verify: --seed-option {options.seed_option!r}: must hold {{}}, where the seed goes")
    if options.json is not None:
        _check_writable(options.json)
    resume = words("--resume", options.resume) if options.resume is not None else None
    if resume and options.mlcube is not None:
        resume = parser.cube_words(options, [*options.parameters, *resume], apart=True)
    if options.image is not None:
        engine(options.image)
    if options.seed_option is not None:
        words("--seed-option", options.seed_option)
    log_to_console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what is known is kept
    asked = Command(command, resume, options.seed_option, options.output, options.every, options.image, options.keep)
    own = OwnCommand(asked, names, place(task, options.to))
    log.info("runs of: %s", " ".join(command))
    verification = Verification([(own, question) for question in own.questions])
    verification()
    results.write(own.folder / "results.json", anywhere(verification.results(own.settings())))
    answers.show(own, verification.answers, wide_console())
    if options.json is not None:
        steps, fingerprint = own.ends
        brief = [answer.brief() for answer in verification.answers]
        content = {"steps": steps, "fingerprint": fingerprint, "answers": brief}
        write_atomically(options.json, json.dumps(content, indent=2).encode() + b"\n")
    return verification.exit_code


def _check_writable(path: Path) -> None:
    """UsageError before anything is started, where the answers could not be written at the end."""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"verify: --json {path}: cannot be written; name a file in a folder that can")
