"""The command `verify`: several runs of a command, one thing changed in each."""

import argparse
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands import command_options, project, verify_trainers, workspace
from repro.commands.parser import Parser
from repro.errors import UsageError

if TYPE_CHECKING:
    from repro.verify.command import OwnCommand
    from repro.verify.cure import Cure
    from repro.verify.verification import Verification

log = logging.getLogger(__name__)

QUESTIONS = {
    "restart": "run again",
    "observed": "without the observer",
    "hash_seed": "with other values of PYTHONHASHSEED",
    "environment": "with another locale, time zone and user, and stray variables",
    "threads": "with 1 thread and with 4",
    "instruction_set": "with narrower vector instructions",
    "cores": "on one core",
    "file_order": "with folders listed in reverse order",
    "memory": "with fresh memory filled with other bytes",
    "cold": "with caches emptied, and as that run left them",
    "races": "with threads, workers and ranks slowed down",
    "time": "on another date, and with a faster clock",
    "resume": "stopped by SIGTERM and resumed; needs --resume",
    "kill": "killed by SIGKILL and resumed; needs --resume",
    "resume_twice": "stopped and resumed twice; needs --resume",
    "alone": "one of its trainings, as in a sweep, alone; needs --alone",
    "container": "in a container; needs --image",
    "gpu": "without the GPU",
    "seed": "with another seed, which must differ; needs --seed-option",
}
"""The change that each question makes."""
BY_NAME = ("memory", "cold", "races", "time", "resume_twice")
"""Questions that need several more runs, asked only if --ask names them."""
ALL = "all"
ALWAYS = ("restart",)  # questions that need an answer if --ask names none

SUMMARY = "run a command several times, change one thing each time, and compare"
OF_TRAINERS = "verify the reference trainers on this machine"
EPILOG = "\n".join(
    [
        "questions, all of them asked by default:",
        *(f"  {name:<18}{change}" for name, change in QUESTIONS.items() if name not in BY_NAME),
        "",
        "questions that take more runs, asked only by name (--ask all,memory adds one):",
        *(f"  {name:<18}{QUESTIONS[name]}" for name in BY_NAME),
        "",
        "Without a command, command and options are those of [tool.repro] in pyproject.toml:",
        '  command = "python train.py --out={run}"',
        "",
        "With --workspace and no command, verify tests the reference trainers. Keys, for example:",
        "  questions=threads,workers frameworks=jax numerics=portable verify.steps=100",
        "",
        "Exit codes: 0 reproducible; 1 a run failed; 3 not reproducible; 4 a requested question\ncould not be answered.",
    ]
)


def parser() -> Parser:
    trainers = "./run.sh verify --workspace=DIR [KEY=VALUE ...]"
    made = command_options.parser("verify", SUMMARY, run, EPILOG, trainers)
    made.dashed = ("--seed-option", "--resume", "--alone")
    made.add_argument("--ask", metavar="NAMES", help="questions to ask, separated by commas (default: all)")
    made.add_argument(
        "--resume", metavar="COMMAND", help="command that resumes from a checkpoint, quoted as one argument"
    )
    made.add_argument(
        "--stops", type=int, metavar="N", help="number of points to stop the command at, one run for each (default: 1)"
    )
    made.add_argument(
        "--alone", metavar="COMMAND", help="command that does one training of a sweep alone, quoted as one argument"
    )
    made.add_argument(
        "--trial", type=int, metavar="N", help="the training that --alone does, counted from 0 (default: the last)"
    )
    controls = "plant no faults in a resumed run that is the same (by default they show what would be noticed)"
    made.add_argument("--no-controls", action="store_true", help=controls)
    made.add_argument("--seed-option", metavar="'--seed={}'", help="the option that sets the seed of the command")
    varied = "try values of an option that should change nothing (repeatable); NAME batch: compare metrics and results of samples alone, up to order"
    made.add_argument(
        "--vary", action="append", default=[], metavar="NAME=OPTION{}:VALUE,VALUE|workers|ranks|compile", help=varied
    )
    made.add_argument("--image", metavar="IMAGE", help="Docker image or FILE.sif, for the question container")
    most = "number of runs at most (default: those of the questions, and 20 more to find why some differ)"
    made.add_argument("--runs", type=int, metavar="N", help=most)
    cure = "where runs differ, try remedies and name the smallest set that gives the same bits"
    made.add_argument("--cure", action="store_true", help=cure)
    made.add_argument("--to", type=Path, metavar="DIR", help="folder for the runs (default: repro-records/verify-TIME)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the answers to FILE as JSON")
    command_options.add_outputs(made, "; default: all files in {run}")
    command_options.add_portable(made)
    command_options.add_cube(made, ", or of the reference trainers")
    return made


def run(options: argparse.Namespace) -> int:
    """Asks and prints; the exit code is 3 where a training is not reproducible, 1 where a run failed, 4 without an answer."""
    if options.command is None and options.mlcube is None and options.workspace is not None:
        return _of_trainers(options)
    project.complete(options, parser())
    command_options.check(options)
    names = _questions(options)
    _check(options)
    portable = command_options.portable(options)
    from msgspec import UNSET, to_builtins

    from repro.console import log_to_console, wide_console
    from repro.files import write_json
    from repro.record.process import stop_as_interrupted
    from repro.report import answers
    from repro.report.levels import levels
    from repro.verify import results, vary
    from repro.verify.command import MORE, OwnCommand, without_local_folders
    from repro.verify.trial import Command
    from repro.verify.verification import Verification

    command = command_options.words(options, apart=True)
    varied = vary.questions(options.vary, QUESTIONS, command)
    resume, alone = _other_command(options, "resume"), _other_command(options, "alone")
    log_to_console()
    stop_as_interrupted()
    seed, image = options.seed_option, options.image
    asked = Command(
        command, resume, seed, options.output, options.every, image, options.keep, portable, alone, options.trial
    )
    own = OwnCommand(asked, names, _folder(options.to), varied, options.stops, not options.no_controls)
    log.info("runs of: %s", asked.typed)
    if own.controls and resume and {"resume", "kill"} & {*names}:
        log.info("where a resumed run is the same, one more for each part that it restores (--no-controls: none)")
    typed = (options.ask or ALL).split(",")
    named = {*typed, *(ALWAYS if ALL in typed else ()), *(question.name for question in varied)}
    verification = Verification([(own, question) for question in own.questions], named, options.runs, MORE)
    verification()
    own.trials.forget_copies()
    content = without_local_folders(verification.results(own.settings()))
    content.warnings = own.warnings or UNSET
    reached = levels([content])
    try:
        results.write(own.folder / "results.json", content)
        steps, fingerprint = own.ends
        brief = {
            "steps": steps,
            "fingerprint": fingerprint,
            "answers": [one.brief() for one in verification.answers],
            "levels": to_builtins(reached),
            "warnings": [warning.text for warning in own.warnings],
        }
        if options.json is not None:
            write_json(options.json, brief)
    finally:  # what is known is shown, though the disk may be full
        answers.show(own, verification.answers, " ".join(one.says for one in reached), wide_console())
    if verification.failure:
        raise verification.failure
    if options.cure and not verification.interrupted:
        try:
            result = _cures(own, verification)
        except KeyboardInterrupt:  # the answers are known, and what they are decides
            log.warning("interrupted; no remedy is known")
            return verification.exit_code
        if options.json is not None:
            write_json(options.json, brief | {"cures": [cure.as_json() for cure in result]})
    return verification.exit_code


def _cures(own: "OwnCommand", verification: "Verification") -> "list[Cure]":
    """The cures of what differs, shown."""
    from repro.console import wide_console
    from repro.report import cures as report
    from repro.verify.cure import cures
    from repro.verify.trial import Trial

    trials = {name: outcome for name, outcome in verification.outcomes.items() if isinstance(outcome, Trial)}
    results = cures(own, verification.answers, trials)
    report.show(results, wide_console())
    return results


def _of_trainers(options: argparse.Namespace) -> int:
    """Runs `verify` of the reference trainers, which takes none of the other options."""
    defaults = vars(parser().parse([]))
    kept = ("workspace", "parameters", "debug", "given")
    for name, value in vars(options).items():
        if name not in kept and value != defaults[name]:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"verify: {option} is for a command after --; the reference trainers take KEY=VALUE")
    options.overrides = [workspace.override(word) for word in options.parameters]
    return verify_trainers.run(options)


def _other_command(options: argparse.Namespace, name: str) -> list[str] | None:
    """The words of a command that an option holds; None without it."""
    typed = getattr(options, name)
    words = command_options.split(f"--{name}", typed) if typed is not None else None
    return command_options.words(options, words, apart=True) if words else None


def _questions(options: argparse.Namespace) -> list[str]:
    """The questions that --ask names; `all` are those that need not be named. UsageError for one that there is not."""
    names = options.ask.split(",") if options.ask is not None else [ALL]
    varied = {re.split("[=:]", text)[0] for text in options.vary}
    for name in names:
        if name == "batch" and name not in varied:
            raise UsageError("verify: --ask batch: name the option, as in --vary 'batch=--batch-size={}:1,7'")
        if name not in QUESTIONS and name != ALL and name not in varied:
            raise UsageError(f"verify: --ask {name}: must be some of {ALL},{','.join(QUESTIONS)}")
    return [name for name in QUESTIONS if name in names or (ALL in names and name not in BY_NAME)]


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError before anything is started, if it could not end well."""
    if options.seed_option is not None:
        if "{}" not in options.seed_option:
            raise UsageError(f"verify: --seed-option {options.seed_option!r}: must hold {{}}, where the seed goes")
        command_options.split("--seed-option", options.seed_option)
    if options.runs is not None and options.runs < 2:
        raise UsageError(f"verify: --runs {options.runs}: must be 2 or more, as a run is compared with another")
    if options.stops is not None and (options.stops < 1 or options.resume is None):
        why = "must be 1 or more" if options.stops < 1 else "goes with --resume"
        raise UsageError(f"verify: --stops {options.stops}: {why}")
    if options.trial is not None and (options.trial < 0 or options.alone is None):
        why = "must be 0 or more" if options.trial < 0 else "goes with --alone"
        raise UsageError(f"verify: --trial {options.trial}: {why}")
    if options.json is not None and (
        options.json.is_dir() or not os.access(options.json.absolute().parent, os.W_OK | os.X_OK)
    ):
        raise UsageError(f"verify: --json {options.json}: cannot be written; name a file in a folder that can")
    if options.image is not None:
        from repro.containers.image import runtime

        runtime(options.image)


def _folder(to: Path | None) -> Path:
    """The folder of the runs. UsageError where there is something in it."""
    if to is not None and to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"verify: {to} already exists and is not empty; name another folder with --to")
    return (to or command_options.fresh("verify-")).resolve()
