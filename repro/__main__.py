"""The command line behind run.sh: python -m repro TASK --workspace=DIR [KEY=VALUE ...] [--debug], and compare A B.

It hands on to the task, repro/tasks/TASK.py, and turns every error into one line and an exit code.
"""

import importlib
import os
import sys
from collections.abc import Mapping

from repro import __version__
from repro.errors import ReproError, UsageError
from repro.frameworks import FRAMEWORKS
from repro.run.launch import RESUME, leave_error
from repro.run.ranks import ProcessGroup

# The file in repro/tasks of each task of run.sh, and of the command `repro`.
TASKS = {"download": "download"} | dict.fromkeys(FRAMEWORKS, "train")
TASKS |= {task: task for task in ("sweep", "verify", "compare", "benchmark", "report")}
COMMANDS = {"record": "record", "verify": "verify_command", "compare": "compare", "report": "report"}


def main(arguments: list[str], tasks: Mapping[str, str] = TASKS) -> int:
    """Runs one task; the exit code: 0 done, 1 failed, 2 wrong usage or configuration, 3 not reproducible."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments  # the rest is a user's command
    debug = "--debug" in own
    try:
        return run([word for word in own if word != "--debug"] + arguments[len(own) :], tasks)
    except ReproError as error:
        if debug:
            raise
        leave_error(f"error: {error}")
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        place = error.filename or os.environ.get("WORKSPACE_PATH")  # a failed write does not say where
        leave_error(f"error: {place}: {error.strerror or error}; make it writable, or free space (--debug: where)")
        return 1
    except KeyboardInterrupt:
        leave_error(f"error: interrupted; {RESUME}" if tasks is TASKS else "error: interrupted")
        return 1
    except Exception as error:
        if debug:
            raise
        first = (str(error).strip().splitlines() or [""])[0]
        leave_error(f"error: {type(error).__name__}: {first} (--debug shows where)")
        return 1


def run(arguments: list[str], tasks: Mapping[str, str]) -> int:
    """Runs the task that the first argument names; its exit code where it ends well, or finds two runs to differ."""
    task = arguments[0] if arguments else "nothing"
    if task not in tasks:
        raise UsageError(f"task {task!r}: must be one of {', '.join(tasks)}")
    module = importlib.import_module(f"repro.tasks.{tasks[task]}")
    return module.run(task, arguments[1:])


USAGE = """repro record [OPTIONS] -- COMMAND...       run your own command once, and write down what it computes
repro verify [OPTIONS] -- COMMAND...       will I get it again? runs it several times, one thing changed each time
repro compare A B                          where and why two records, or two runs of the suite, differ
repro report [FILE ...]                    a page of what `verify` found, here or in the results.json that are named
repro --version

`repro record --help` and `repro verify --help` list their options.
Training, benchmark and sweep, and `verify` of the suite itself, need the repository, where each framework has an
environment of its own: ./run.sh --help says more."""


def command() -> None:
    """The command `repro` of an installed package. All that trains is run.sh's, which sets its environment up."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        print(f"repro {__version__}")
        sys.exit(0)
    if arguments[0] in TASKS and arguments[0] not in COMMANDS:
        print(f"error: task {arguments[0]!r} needs the repository: ./run.sh {arguments[0]} there", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(arguments, COMMANDS))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if code and ProcessGroup.joined:  # engines would wait for the others until they give up
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)
