"""The command line of `repro`.

It is `repro`, `python -m repro`, and what run.sh hands over to. It turns every error into one line and an exit code. Like the parser, it imports the standard library alone,
and what it takes time to import only where Ctrl-C is one line, too.
"""

import contextlib
import os
import signal
import sys
from typing import NoReturn

EXTRA = ("antlr4", "hydra", "omegaconf", "pooch", "threadpoolctl", "yaml")
"""The packages of the extra [trainers]."""


def main(arguments: list[str]) -> int:
    """Runs one command; the exit code: 0 done, 1 failed, 2 wrong usage or configuration, 3 not reproducible.

    SystemExit for --help and --version.
    """
    at = arguments.index("--") if "--" in arguments else len(arguments)
    words, own_command = arguments[:at], arguments[at + 1 :] if at < len(arguments) else None
    task = words[0] if words else ""
    debug = "--debug" in words
    try:
        from repro.commands import commands

        options = commands.parse([word for word in words if word != "--debug"], own_command)
        return options.run(options)
    except KeyboardInterrupt:
        return _fail(f"interrupted{_resume(task)}")
    except Exception as error:
        if debug:
            raise
        return _fail(_explained(task, error), getattr(error, "exit_code", 1))


def command() -> NoReturn:
    """Runs the command that the process was started with, and ends the process."""
    try:
        code = main(sys.argv[1:])
    except Exception as error:  # with --debug
        code = _trace(error)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything is done
    ranks = sys.modules.get("repro.trainers.loop.ranks")  # only a training loads it
    if code and ranks and ranks.ProcessGroup.joined:  # engines would wait for the others until they give up
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _trace(error: Exception) -> int:
    """Prints where an error comes from, as Python does, but for what a terminal would obey; the exit code."""
    import traceback

    from repro.text import printable_lines

    print(printable_lines("".join(traceback.format_exception(error))), file=sys.stderr, flush=True)
    return getattr(error, "exit_code", 1)


def _explained(task: str, error: Exception) -> str:
    """Describes an error in one line."""
    from repro.errors import ReproError, explained

    if isinstance(error, ReproError):
        return str(error)
    if isinstance(error, OSError):
        return f"{explained(error)} (--debug: where)"
    if isinstance(error, ModuleNotFoundError) and (remedy := _remedy(task, error)):
        return remedy
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first} (--debug shows where)"


def _fail(message: str, code: int = 1) -> int:
    """Reports an error: for a rank to its parent, or else on stderr."""
    from repro.text import printable

    line = printable(f"error: {message}")
    with contextlib.suppress(OSError):  # the terminal is gone, or the reader of a pipe: nobody is left to tell
        if launch := sys.modules.get("repro.trainers.loop.launch"):
            launch.leave_error(line)
        else:
            print(line, file=sys.stderr, flush=True)
    return code


def _resume(task: str) -> str:
    from repro.frameworks import FRAMEWORKS

    if task not in FRAMEWORKS:
        return ""
    from repro.trainers.loop.launch import RESUME

    return f"; {RESUME}"


def _remedy(task: str, error: ModuleNotFoundError) -> str | None:
    """Says how to install a missing package; None if it is not one of ours."""
    from pathlib import Path

    from repro.frameworks import FRAMEWORKS

    root = Path(__file__).parents[1]
    package = (error.name or "").split(".")[0]
    if package != "repro" and (root / "requirements" / "install.sh").exists():
        name = task if task in (*FRAMEWORKS, "sweep") else "pytorch"
        return f"no complete environment for {task!r} in {root}/.venv; make it with: requirements/install.sh {name}"
    if package in EXTRA:
        return f"{task}: {package} is not installed; install it with: pip install 'repro-bits[trainers]'"
    return None


if __name__ == "__main__":
    command()
