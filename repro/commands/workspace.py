"""Arguments of the reference trainers' commands: --workspace=DIR KEY=VALUE."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from repro.commands.parser import Parser
from repro.errors import UsageError

REPOSITORY = Path(__file__).parents[2]
WORKSPACE = "existing folder for data and results; it may hold a train.yaml"


def trainer_parser(
    command: str, summary: str, run: Callable[[argparse.Namespace], int], keys: str, **texts: str
) -> Parser:
    """The parser of a command that takes a workspace and overrides; `keys` is an example of these."""
    parser = Parser(command, summary, (f"./run.sh {command} --workspace=DIR [KEY=VALUE ...]",), run, **texts)
    parser.add_argument("--workspace", metavar="DIR", help=WORKSPACE)
    parser.add_argument(
        "overrides", nargs="*", type=override, metavar="KEY=VALUE", help=f"override train.yaml, for example {keys}"
    )
    return parser


def override(word: str) -> str:
    """Raises UsageError for a word that is no KEY=VALUE."""
    if not word.partition("=")[0] or "=" not in word:
        raise UsageError(f"cannot read argument {word!r}; write KEY=VALUE, such as params.seed=1")
    return word


def read(options: argparse.Namespace, lists: Sequence[str] = (), values: Sequence[str] = ()) -> tuple[Path, list[str]]:
    """The workspace, and Hydra's overrides. UsageError without a workspace, or without the repository.

    `lists` and `values` are the keys of the command's own section of train.yaml that may be given without its name:
    lists, `questions=threads,workers` for `verify.questions=[threads,workers]`, and single values.
    """
    task = options.task
    if not (REPOSITORY / "run.sh").exists():
        raise UsageError(f"{task}: the reference trainers need the repository; there, call ./run.sh {task}")
    workspace = folder(task, options.workspace)
    return workspace, [_in_full(task, word, lists, values) for word in options.overrides]


def folder(task: str, workspace: str | None) -> Path:
    """The folder that --workspace names, absolute, as WORKSPACE_PATH is from now on. UsageError where there is none."""
    if not workspace:
        raise UsageError(f"{task}: no workspace; say where data and results lie with --workspace=DIR")
    path = Path(os.path.abspath(workspace))
    if not path.is_dir():
        raise UsageError(f"{task}: --workspace={path} is not a folder; make it first, or correct --workspace")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"{task}: --workspace={path} cannot be entered; check its permissions")
    os.environ["WORKSPACE_PATH"] = str(path)
    return path


def _in_full(task: str, word: str, lists: Sequence[str], values: Sequence[str]) -> str:
    key, value = word.split("=", 1)
    if key in lists:
        return f"{task}.{key}=[{value.strip('[]')}]"
    return f"{task}.{word}" if key in values else word
