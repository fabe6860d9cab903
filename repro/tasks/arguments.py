"""What follows a task's name: --workspace=DIR, and KEY=VALUE, or files."""

import os
from collections.abc import Sequence
from pathlib import Path

from repro.errors import UsageError


def parse(
    task: str, arguments: list[str], lists: Sequence[str] = (), values: Sequence[str] = (), files: bool = False
) -> tuple[Path, list[str]]:
    """The workspace, which WORKSPACE_PATH names from now on, and Hydra's overrides, or files. UsageError for all else.

    `lists` and `values` are the keys of the task's own section of train.yaml that may be given without its name: lists,
    `questions=threads,workers` for `verify.questions=[threads,workers]`, and single values.
    """
    workspaces = [argument for argument in arguments if argument.startswith("--workspace=")]
    overrides = [argument for argument in arguments if not argument.startswith("--workspace=")]
    for override in overrides:
        if override.startswith("-") or ("=" not in override and not files):
            raise UsageError(f"argument {override!r}: must be KEY=VALUE, --workspace=DIR or --debug")
    if len(workspaces) != 1:
        raise UsageError(f"--workspace=DIR must be given once, not {len(workspaces)} times")
    workspace = Path(workspaces[0].removeprefix("--workspace=")).absolute()
    if not workspace.is_dir():
        raise UsageError(f"--workspace={workspace}: there is no such folder; make it first")
    os.environ["WORKSPACE_PATH"] = str(workspace)
    if files:
        return workspace, overrides
    return workspace, [_in_full(task, override, lists, values) for override in overrides]


def _in_full(task: str, override: str, lists: Sequence[str], values: Sequence[str]) -> str:
    key, value = override.split("=", 1)
    if key in lists:
        return f"{task}.{key}=[{value.strip('[]')}]"
    return f"{task}.{override}" if key in values else override
